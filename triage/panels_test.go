package triage_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq/promqtest"
)

// TestThePictureShowsWhatAlerted looks at the panel of what the alert's expression watches.
func TestThePictureShowsWhatAlerted(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	s := promqtest.Serve(t, store)
	for expr, want := range map[string]string{
		"histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[1m]))) > 2": "ttft_p95",
		"sum(rate(vllm:num_preemptions_total[1m])) > 0.2":                                               "preemptions",
		// Of several signals of one metric it is the one that the cause shows.
		"max(vllm:kv_cache_usage_perc) > 0.95": "kv_usage_max",
		// What cannot be told leaves the order of old: evidence, trigger, what users feel.
		"":                           "",
		"sum(no_metric_of_ours) > 1": "",
	} {
		in := firing(now, map[string]string{"model_name": "demo", "namespace": "llm"})
		in.Alerts[0].GeneratorURL = "http://prometheus:9090/graph?g0.expr=" + url.QueryEscape(expr) + "&g0.tab=1"
		panels := triaged(t, s, in).Panels
		require.Len(t, panels, 4)
		roles := map[string]int{}
		for _, p := range panels {
			roles[p.Role]++
		}
		require.Equal(t, 1, roles["trigger"], expr)
		if want == "" {
			require.Equal(t, "evidence", panels[0].Role, expr)
			continue
		}
		require.Equal(t, want, panels[0].Signal, expr)
		require.Equal(t, "alert", panels[0].Role, expr)
	}
}
