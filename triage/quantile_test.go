package triage_test

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq/memstore"
	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
)

// withTTFT counts ten first tokens a scrape: for six minutes within 30 s, then so many within 60 s and so many above.
func withTTFT(below, above float64) *memstore.Store {
	start := time.Unix(1_800_000_000, 0)
	var out []memstore.Series
	const calm = 24
	add := func(name, le string, before, after float64) {
		l := labels.NewBuilder(labels.FromStrings("__name__", name, "model_name", "m", "instance", "gpu-1:8000", "job", "vllm"))
		if le != "" {
			l.Set("le", le)
		}
		s := memstore.Series{Labels: l.Labels()}
		for i := range 41 {
			v := before*float64(min(i, calm)) + after*float64(max(i-calm, 0))
			s.Samples = append(s.Samples, memstore.Sample{At: start.Add(time.Duration(i) * 15 * time.Second).UnixMilli(), Value: v})
		}
		out = append(out, s)
	}
	add("vllm:num_requests_running", "", 0, 0)
	add("vllm:num_requests_waiting", "", 0, 0)
	add("vllm:time_to_first_token_seconds_bucket", "30", 10, 0)
	add("vllm:time_to_first_token_seconds_bucket", "60", 10, below)
	add("vllm:time_to_first_token_seconds_bucket", "+Inf", 10, below+above)
	return memstore.New(out)
}

func ttftLine(t *testing.T, s *memstore.Store) string {
	t.Helper()
	end := time.Unix(1_800_000_000+600, 0)
	r := triaged(t, promqtest.Serve(t, s), triage.NewAdhoc(triage.Scope{Model: "m"}, end, 0))
	require.NotEmpty(t, r.Impact.Lines)
	return r.Impact.Lines[0].Text
}

// Field case FC-75: a quantile in the last bucket is a lower bound, https://github.com/vllm-project/vllm/pull/15202.
func TestQuantileAtTheLastBucketIsALowerBound(t *testing.T) {
	t.Parallel()
	require.Contains(t, ttftLine(t, withTTFT(1, 9)), "at least 60 s")
	require.NotContains(t, ttftLine(t, withTTFT(10, 0)), "at least")
}
