package promq_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
)

func TestRequired(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string][]string{
		`rate(a[5m]) > 0.1`:           {"a"},
		`a != scalar(b)`:              {"a"},
		`info(a, {__name__="b"}) > 0`: {"a"},
		`sum by (x) (rate(a_sum[5m])) / sum by (x) (rate(a_count[5m])) > 1 and on (x) b > 0`: {"a_count", "a_sum", "b"},
		`a > 1 or b > 1`:                         {},
		`(a or b) > 1 and c`:                     {"c"},
		`a unless b`:                             {"a"},
		`absent(a) == 1`:                         {},
		`absent_over_time(a[5m]) and b`:          {"b"},
		`a + fill(0) b`:                          {},
		`max_over_time(rate(a[1m])[5m:15s]) > 0`: {"a"},
		`{job="vllm"} > 0`:                       {},
		`{__name__="a"} > 0`:                     {"a"},
		`{__name__=~"a|b"} > 0`:                  {},
		`1 > bool 0`:                             {},
		`a >`:                                    {},
		`a + a`:                                  {"a"},
	} {
		require.ElementsMatch(t, want, promq.Required(expr), expr)
	}
}

// The expression comes with a webhook.
func FuzzRequired(f *testing.F) {
	f.Add(`sum by (x) (rate(a_sum[5m])) / sum by (x) (rate(a_count[5m])) > 1 and on (x) b > 0`)
	f.Add(`info(a, {__name__="b"}) > scalar(c) or absent(d) unless e`)
	f.Add(`{"a.b"} offset -5m @ end()`)
	f.Fuzz(func(t *testing.T, expr string) {
		names := promq.Required(expr)
		require.True(t, slices.IsSorted(names))
		for _, n := range names {
			require.NotEmpty(t, n)
		}
	})
}
