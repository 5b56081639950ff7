package triage_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
	"vllm-triage/triage/eval/example"
	"vllm-triage/triage/kb"
)

// TestNeighbours joins what other exporters tell about the hosts and pods of the replicas, and only of those.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	gpus := func(labels string) string {
		return `DCGM_FI_DEV_SM_CLOCK{` + labels + `}  1980x135 705x48
			DCGM_FI_DEV_XID_ERRORS{` + labels + `}  0x150 63x33
			DCGM_FI_DEV_GPU_TEMP{` + labels + `}  66x130 91x53
			DCGM_FI_DEV_POWER_USAGE{` + labels + `}  560x135 310x48
			DCGM_FI_DEV_GPU_UTIL{` + labels + `}  97x183`
	}
	pod := `namespace="chat",container="vllm",`
	for name, c := range map[string]struct {
		base, series string
		model        string
		want         map[string]float64 // Signal of the first choice's evidence to its value during the incident.
		supports     bool
		first        string
	}{
		"by host name": {
			base: "device_slow", model: "llama-3.3-70b", series: gpus(`Hostname="gpu-1",gpu="0",instance="10.0.0.9:9400"`), first: "device_slowdown",
			want:     map[string]float64{"gpu_clock": 705, "gpu_xid": 63, "gpu_temperature": 91, "gpu_power": 310},
			supports: true,
		},
		"by the exporter's instance": {
			base: "device_slow", model: "llama-3.3-70b", series: gpus(`gpu="0",instance="gpu-1:9400"`), first: "device_slowdown",
			want: map[string]float64{"gpu_clock": 705}, supports: true,
		},
		"by exported pod": {
			base: "prefill_longer_prompts", model: "llama-3.3-70b", first: "prefill_bound",
			series: gpus(`exported_pod="search-vllm-0",pod="dcgm-exporter-x",gpu="0"`),
		},
		"another host": {
			base: "device_slow", model: "llama-3.3-70b", series: gpus(`Hostname="gpu-17",gpu="0",instance="gpu-17:9400"`), first: "device_slowdown",
		},
		"throttled container": {
			base: "frontend_busy", model: "qwen3-32b", first: "frontend_bound",
			series: `container_cpu_cfs_throttled_periods_total{pod="other",container="vllm"}  0+10x183`,
		},
		"restarts of the pod": {
			base: "restart_burst", model: "llama-3.3-70b", first: "concurrency_cap",
			series: `kube_pod_container_status_restarts_total{` + pod + `pod="chat-vllm-0"}  2x140 3x43
				kube_pod_container_status_restarts_total{` + pod + `pod="chat-vllm-7"}  0x140 9x43`,
			want: map[string]float64{"pod_restarts": 3}, supports: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := kb.Default()
			now := example.Start.Add(42 * time.Minute)
			ask := func(series string) triage.Report {
				store := exampleStore(t, base.Examples[c.base], series).Cut(time.Time{}, now)
				e := triage.NewEngine(base, promqtest.Serve(t, store).Client(), triage.Options{})
				r, err := e.Triage(t.Context(), triage.NewAdhoc(triage.Scope{Model: c.model}, now, 0))
				require.NoError(t, err)
				return r
			}
			with, without := ask(c.series), ask("")
			require.Equal(t, c.first, with.Bottlenecks[0].ID, outcome(with))
			require.Equal(t, c.first, without.Bottlenecks[0].ID, outcome(without))
			got := map[string]float64{}
			for _, ev := range slices.Concat(with.Bottlenecks[0].Evidence, with.Triggers[0].Evidence) {
				if (strings.HasPrefix(ev.Signal, "gpu_") || ev.Signal == "pod_restarts") && ev.Weight != 0 {
					got[ev.Signal] = *ev.During
					require.Equal(t, c.supports, ev.Supports, ev.Signal)
				}
			}
			for signal, during := range c.want {
				require.InDelta(t, during, got[signal], 0.5, "%s: %v", signal, got)
			}
			if len(c.want) == 0 {
				require.Empty(t, got)
			}
			for _, ev := range without.Bottlenecks[0].Evidence {
				require.False(t, strings.HasPrefix(ev.Signal, "gpu_"), "absent devices are no evidence: %s", ev.Signal)
			}
			require.LessOrEqual(t, with.Queries, 90)
			require.LessOrEqual(t, without.Queries, 90)
			for _, m := range with.Missing {
				require.False(t, strings.HasPrefix(m.Signal, "gpu_") || strings.HasPrefix(m.Signal, "pod_"), m.Signal)
			}
		})
	}
}
