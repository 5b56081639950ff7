package triage_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
)

func TestQuantitiesAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		v    float64
		unit triage.Unit
		want string
	}{
		{0.42, triage.Seconds, "420 ms"},
		{0.0004, triage.Seconds, "0 ms"},
		{0.99951, triage.Seconds, "1 s"},
		{12.44, triage.Seconds, "12.4 s"},
		{330, triage.Seconds, "6 min"},
		{9000, triage.Seconds, "2.5 h"},
		{0.98, triage.Ratio, "98 %"},
		{0.004, triage.Ratio, "0.4 %"},
		{0, triage.Ratio, "0 %"},
		{1, triage.Ratio, "100 %"},
		{1340, triage.TokensPerSec, "1340 tok/s"},
		{28913, triage.Tokens, "28.9k tokens"},
		{1.5e6, triage.Tokens, "1.5M tokens"},
		{3.2, triage.Times, "3.2×"},
		{2, triage.RequestsPerSec, "2 req/s"},
		{-0.001, triage.Requests, "0"},
		{math.NaN(), triage.Seconds, "–"},
		{math.Inf(1), triage.Seconds, "–"},
	} {
		require.Equal(t, tc.want, triage.FormatQuantity(tc.v, tc.unit), "%v %s", tc.v, tc.unit)
	}
}
