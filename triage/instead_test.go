package triage_test

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
)

// Most facts have more than one witness: without a metric the others tell, and the answer stays.
func TestOtherMetricsStandInForMissingOnes(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	asked := firing(now, map[string]string{"model_name": "demo"})
	before := triaged(t, promqtest.Serve(t, store), asked)
	for name, gone := range map[string][]string{
		"running":                  {"vllm:num_requests_running"},
		"waiting":                  {"vllm:num_requests_waiting"},
		"waiting and reasons":      {"vllm:num_requests_waiting", "vllm:num_requests_waiting_by_reason"},
		"time between tokens":      {"vllm:inter_token_latency_seconds"},
		"running and its stand-in": {"vllm:num_requests_running", "vllm:inter_token_latency_seconds"},
		"time to first token":      {"vllm:time_to_first_token_seconds"},
		"generated tokens":         {"vllm:generation_tokens_total"},
		"prompt tokens":            {"vllm:prompt_tokens_total"},
		"finished requests":        {"vllm:request_success_total"},
		"KV cache usage":           {"vllm:kv_cache_usage_perc"},
		"preemptions":              {"vllm:num_preemptions_total"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rest := store.Map(func(l labels.Labels) (labels.Labels, bool) {
				return l, !begins(l, gone)
			})
			r := triaged(t, promqtest.Serve(t, rest), asked)
			require.Equal(t, "kv_cache_exhaustion", r.Bottlenecks[0].ID)
			require.Equal(t, "longer_outputs", r.Triggers[0].ID)
			require.Equal(t, triage.CauseFound, r.Verdict)
			require.LessOrEqual(t, r.Bottlenecks[0].Probability, before.Bottlenecks[0].Probability, "data that vanished makes nothing surer")
		})
	}
}

// Where nothing tells whether an engine without tokens is idle or stuck, it is not called calm.
func TestSilenceWithoutGaugesIsNotCalm(t *testing.T) {
	t.Parallel()
	store, now := stored(t, "engine-stall-a", "2026-11-29T14:46:40Z")
	rest := store.Map(func(l labels.Labels) (labels.Labels, bool) {
		n := l.Get("__name__")
		return l, !strings.HasPrefix(n, "vllm:num_requests_") && n != "vllm:kv_cache_usage_perc"
	})
	r := triaged(t, promqtest.Serve(t, rest), firing(now, map[string]string{"model_name": "demo"}))
	require.NotEqual(t, triage.NoBottleneck, r.Verdict)
}
