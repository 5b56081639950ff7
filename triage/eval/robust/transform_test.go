package robust_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/eval/robust"
	"vllm-triage/triage/kb"
)

func load(t *testing.T, ids ...string) []*eval.Recording {
	t.Helper()
	dirs := make([]string, 0, len(ids))
	for _, id := range ids {
		dirs = append(dirs, incidents+"/"+id)
	}
	recs, err := eval.LoadRecordings(dirs...)
	require.NoError(t, err)
	return recs
}

// data is the series of a recording under one transformation.
func data(t *testing.T, r *eval.Recording, name string) *memstore.Store {
	t.Helper()
	for _, v := range robust.Variants(kb.Default(), []*eval.Recording{r}) {
		if v.Name == name && v.Data != nil {
			s := v.Data(r)
			require.NotNil(t, s)
			return s
		}
	}
	t.Fatalf("there is no transformation %q", name)
	return nil
}

func counter(name string) bool {
	return slices.ContainsFunc([]string{"_total", "_sum", "_count", "_bucket"}, func(s string) bool { return strings.HasSuffix(name, s) })
}

// falls counts how often counters fall.
func falls(s *memstore.Store) int {
	n := 0
	for _, one := range s.Series() {
		last := 0.0
		for _, x := range one.Samples {
			if !counter(one.Labels.Get("__name__")) || x.IsStale() {
				continue
			}
			if x.Value < last {
				n++
			}
			last = x.Value
		}
	}
	return n
}

// Pieces of a recording put together anew are still what a server could have exported: no counter falls.
func TestCountersKeepGrowing(t *testing.T) {
	t.Parallel()
	for _, r := range load(t, "kv-longer-outputs-a", "replica-imbalance-a") {
		require.Zero(t, falls(r.Data.Store()), "the recording itself has no restart")
		for _, name := range []string{
			"30 min of calm before", "the same incident 20 min earlier", "alert fires 30 min late, 30 min of calm before",
			"resolved alert, asked an hour later", "five healthy replicas more", "every 60 s, 30 min of calm before, 10 min into the fault",
			"10 % of the samples lost", "ten times as fast",
		} {
			require.Zero(t, falls(data(t, r, name)), "%s: %s", r.ID, name)
		}
		require.Positive(t, falls(data(t, r, "counters start anew 20 s after the fault")), r.ID)
	}
}

func names(s *memstore.Store) map[string]bool {
	out := map[string]bool{}
	for _, one := range s.Series() {
		out[one.Labels.Get("__name__")] = true
	}
	return out
}

// The name sets of older versions, against the fingerprints of the versions that the knowledge base knows.
func TestOldVersionsExportOldNames(t *testing.T) {
	t.Parallel()
	r := load(t, "lora-slots-a")[0]
	old := data(t, r, "vLLM 0.8.0")
	have := names(old)
	for _, n := range []string{"vllm:gpu_cache_usage_perc", "vllm:time_per_output_token_seconds_sum", "vllm:gpu_prefix_cache_hits_total", "vllm:num_requests_running"} {
		require.True(t, have[n], n)
	}
	for _, n := range []string{
		"vllm:kv_cache_usage_perc", "vllm:inter_token_latency_seconds_sum", "vllm:prefix_cache_hits_total",
		"vllm:num_requests_waiting_by_reason", "vllm:prompt_tokens_by_source_total", "http_requests_total",
	} {
		require.False(t, have[n], n)
	}
	for _, one := range old.Series() {
		if strings.HasPrefix(one.Labels.Get("__name__"), "vllm:") {
			require.Empty(t, one.Labels.Get("engine"), "%s", one.Labels)
		}
	}
	both := names(data(t, r, "vLLM 0.10.0"))
	require.True(t, both["vllm:gpu_cache_usage_perc"] && both["vllm:kv_cache_usage_perc"], "0.9.2 to 0.10.2 export both")
	require.Equal(t, names(r.Data.Store()), func() map[string]bool {
		all := names(data(t, r, "vLLM 0.26.0"))
		for _, young := range []string{"admission_rejections", "prompt_tokens_cached_by_source"} {
			all["vllm:"+young+"_total"], all["vllm:"+young+"_created"] = true, true
		}
		for _, part := range []string{"bucket", "sum", "count", "created"} {
			all["vllm:request_num_preemptions_"+part] = true
		}
		return all
	}(), "0.26.0 lacks what 0.30 and 0.32 brought, and nothing else")
	ray := names(data(t, r, "Ray"))
	require.True(t, ray["ray_vllm_num_requests_running"] && ray["ray_vllm_generation_tokens"])
	for n := range ray {
		require.False(t, strings.HasPrefix(n, "vllm:"), n)
	}
}

// Healthy neighbours stay healthy: they never have more to do than before the fault.
func TestHealthyReplicasStayHealthy(t *testing.T) {
	t.Parallel()
	r := load(t, "kv-traffic-surge-a")[0]
	most := 0.0
	for _, one := range r.Data.Store().Cut(time.Time{}, r.FaultStart).Series() {
		if one.Labels.Get("__name__") == "vllm:num_requests_running" {
			for _, x := range one.Samples {
				most = max(most, x.Value)
			}
		}
	}
	healthy := map[string]bool{}
	for _, one := range data(t, r, "forty healthy replicas more").Series() {
		if one.Labels.Get("__name__") != "vllm:num_requests_running" || !strings.Contains(one.Labels.Get("pod"), "copy") {
			continue
		}
		healthy[one.Labels.Get("instance")] = true
		for _, x := range one.Samples {
			require.LessOrEqual(t, x.Value, most)
		}
	}
	require.Len(t, healthy, 40)
}

func TestFleetHasOneSickReplica(t *testing.T) {
	t.Parallel()
	r := load(t, "device-slow-a")[0]
	replicas := map[string]int{}
	for _, one := range robust.Fleet(r, 20, 10*time.Minute, 15*time.Second) {
		if one.Labels.Get("__name__") == "vllm:num_requests_running" {
			replicas[one.Labels.Get("instance")]++
			gap := one.Samples[1].At - one.Samples[0].At
			require.InDelta(t, 15_000, gap, 1500, "scraped every 15 s")
		}
	}
	require.Len(t, replicas, 21)
	require.Equal(t, 1, replicas["10.42.0.10:8000"])
}
