package triage_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq/memstore"
	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
	"vllm-triage/triage/eval/example"
	"vllm-triage/triage/kb"
)

// ended is a store in which the metrics that begin so are exported no more from a moment on.
func ended(s *memstore.Store, at time.Time, prefixes ...string) *memstore.Store {
	return s.End(at, func(l labels.Labels) bool { return begins(l, prefixes) })
}

// begins says that a series' name begins with one of some prefixes.
func begins(l labels.Labels, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(x string) bool { return strings.HasPrefix(l.Get("__name__"), x) })
}

func stateOf(r triage.Report, signal string) (triage.State, string) {
	for _, m := range r.Missing {
		if m.Signal == signal {
			return m.State, m.Why
		}
	}
	return triage.Present, ""
}

const seriesEnd = "its samples end, while the same replicas go on exporting others"

// What a server exported and exports no more is stale, other metrics tell the same where there are any, and nobody is
// surer of anything by it.
func TestMetricsThatStopAreMissed(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	asked := firing(now, map[string]string{"model_name": "demo"})
	before := triaged(t, promqtest.Serve(t, store), asked)
	for name, tt := range map[string]struct {
		gone    []string
		signal  string
		state   triage.State
		verdict triage.Verdict
	}{
		"nothing stands in":                 {[]string{"http_requests"}, "http_requests", triage.Stale, triage.CauseFound},
		"a stand-in":                        {[]string{"vllm:time_to_first_token_seconds"}, "first_tokens", triage.Present, triage.CauseFound},
		"the anchor":                        {[]string{"vllm:num_requests_running"}, "running", triage.Present, triage.CauseFound},
		"the anchor and what stands in":     {[]string{"vllm:num_requests_running", "vllm:num_requests_waiting"}, "serving", triage.Present, ""},
		"all gauges":                        {[]string{"vllm:num_requests", "vllm:kv_cache_usage_perc"}, "serving", triage.Present, triage.Inconclusive},
		"a counter that only some may have": {[]string{"vllm:admission_rejections"}, "request_rejections", triage.Stale, triage.CauseFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := triaged(t, promqtest.Serve(t, ended(store, now.Add(-time.Minute), tt.gone...)), asked)
			state, why := stateOf(r, tt.signal)
			require.Equal(t, tt.state, state)
			if state == triage.Stale {
				require.Equal(t, seriesEnd, why)
			}
			if tt.verdict != "" {
				require.Equal(t, tt.verdict, r.Verdict)
			}
			if r.Verdict == triage.CauseFound {
				require.Equal(t, before.Bottlenecks[0].ID, r.Bottlenecks[0].ID)
				require.LessOrEqual(t, r.Bottlenecks[0].Probability, before.Bottlenecks[0].Probability)
			}
		})
	}
}

// A target whose up is not stored any more is not down while its metrics go on.
func TestUpThatStopsIsNoOutage(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	r := triaged(t, promqtest.Serve(t, ended(store, now.Add(-20*time.Second), "up")), firing(now, map[string]string{"model_name": "demo"}))
	require.Equal(t, "kv_cache_exhaustion", r.Bottlenecks[0].ID)
	for _, b := range r.Bottlenecks {
		require.NotEqual(t, "replica_down", b.ID)
	}
}

// When all data ends, nothing of it stopped by itself: where nothing marks the end, gauges seem to outlive rates.
func TestDataThatEndsAsAWholeHasNotStopped(t *testing.T) {
	t.Parallel()
	store, last := kvLongerOutputs(t)
	for _, lag := range []time.Duration{time.Minute, 3 * time.Minute, 6 * time.Minute, 20 * time.Minute} {
		r := triaged(t, promqtest.Serve(t, store), firing(last.Add(lag), map[string]string{"model_name": "demo"}))
		for _, m := range r.Missing {
			require.NotEqual(t, seriesEnd, m.Why, "%s: %s", lag, m.Signal)
		}
	}
}

// Adapters that a restart turned off are not missed; a gauge that a running server drops is.
func TestAdaptersTurnedOffAndAdaptersUnseen(t *testing.T) {
	t.Parallel()
	base := kb.Default()
	cause, ok := base.Cause("lora_slots")
	require.True(t, ok)
	x := cause.Examples[slices.IndexFunc(cause.Examples, func(x kb.Example) bool { return x.Expect.Trigger == "adapter_mix" })]
	store, err := example.Store(base.Examples[x.Base], x.Series)
	require.NoError(t, err)
	fault := example.Start.Add(x.StartsAt - 7*time.Minute)
	gone := ended(store.Cut(time.Time{}, example.Start.Add(x.At)), fault, "vllm:lora_requests_info")

	seen := triaged(t, promqtest.Serve(t, store), example.Incident(x))
	require.Equal(t, "lora_slots", seen.Bottlenecks[0].ID)
	r := triaged(t, promqtest.Serve(t, gone), example.Incident(x))
	require.Equal(t, triage.Inconclusive, r.Verdict, r.Bottlenecks[0].ID)
	require.Equal(t, "blocked.hidden", r.Inconclusive.Key)
	require.Equal(t, "LoRA slots taken", r.Inconclusive.Args["second"].Word)

	restarted := gone.Apply(func(one memstore.Series) []memstore.Series {
		if one.Labels.Get("__name__") != "process_start_time_seconds" {
			return []memstore.Series{one}
		}
		out := slices.Clone(one.Samples)
		for i := range out {
			if out[i].At >= fault.UnixMilli() {
				out[i].Value = float64(fault.Unix())
			}
		}
		return []memstore.Series{{Labels: one.Labels, Samples: out}}
	})
	r = triaged(t, promqtest.Serve(t, restarted), example.Incident(x))
	if r.Inconclusive != nil {
		require.NotEqual(t, "LoRA slots taken", r.Inconclusive.Args["second"].Word)
	}
	_, why := stateOf(r, "lora_adapters")
	require.NotEqual(t, seriesEnd, why)
}
