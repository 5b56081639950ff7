package kb_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/kb"
)

// TestEveryCauseOfTheDesign keeps the ids that other systems depend on.
func TestEveryCauseOfTheDesign(t *testing.T) {
	t.Parallel()
	b := kb.Default()
	for axis, ids := range map[kb.Axis][]string{
		kb.Bottleneck: {
			"kv_cache_exhaustion", "concurrency_cap", "prefill_bound", "decode_bound", "device_slowdown", "lora_slots",
			"structured_output", "kv_transfer", "frontend_bound", "multimodal_encoder", "speculative_decoding", "engine_stalled",
			"admission_blocked", "oversize_request", "engine_asleep", "replica_down", "replica_imbalance", "client_aborts",
			"request_errors", "admission_rejections", "cpu_swapping", "low_traffic", "metrics_missing", "healthy",
		},
		kb.Trigger: {
			"traffic_surge", "longer_prompts", "longer_outputs", "sampling_n", "prefix_cache_collapse", "adapter_mix",
			"structured_output_mix", "multimodal_mix", "config_change", "restart", "replica_loss", "routing_change", "none",
		},
	} {
		var have []string
		for _, c := range b.OnAxis(axis) {
			have = append(have, c.ID)
		}
		slices.Sort(ids)
		require.Equal(t, ids, have, "axis %s", axis)
	}
}

// TestEveryCauseIsComplete asks for what a reader of a report needs of each cause.
func TestEveryCauseIsComplete(t *testing.T) {
	t.Parallel()
	for _, c := range kb.Default().Causes {
		require.NotEmpty(t, c.Sources, "%s cites nothing", c.ID)
		require.NotEmpty(t, c.Panels, "%s has nothing to draw", c.ID)
		require.NotEmpty(t, c.Evidence, "%s has no evidence", c.ID)
		supports, refutes, key := false, len(c.Requires) > 0, false
		for _, p := range c.Evidence {
			supports = supports || p.For > 0
			refutes = refutes || p.Against < 0
			key = key || p.Key
			if p.Against < 0 {
				require.NotEmpty(t, p.SayAgainst, "%s: %s speaks against without words", c.ID, p.ID)
			}
			require.True(t, p.For > 0 || p.Against < 0 || p.For == p.Against, "%s: %s weighs nothing", c.ID, p.ID)
		}
		require.True(t, supports && refutes, "%s is not two-sided", c.ID)
		if c.Kind == kb.NoTrigger {
			continue
		}
		require.True(t, key, "%s has no key evidence", c.ID)
		if c.Axis == kb.Bottleneck {
			require.NotEmpty(t, c.Actions, "%s has no next step", c.ID)
			for _, a := range c.Actions {
				require.NotEmpty(t, a.Cost, "%s: step %s does not say what it costs", c.ID, a.ID)
			}
		}
	}
}

// TestBottlenecksAreSeparated asks of every pair that the data can tell them apart, whichever of them is the truth: by
// evidence of weight that the other does not share, or by evidence that speaks against the other.
func TestBottlenecksAreSeparated(t *testing.T) {
	t.Parallel()
	all := kb.Default().OnAxis(kb.Bottleneck)
	for _, a := range all {
		for _, b := range all {
			if a.ID != b.ID {
				require.True(t, tells(a, b), "when %s is the truth, nothing tells it from %s", a.ID, b.ID)
			}
		}
	}
}

// way is a direction of a signal.
type way struct {
	signal string
	up     bool
}

func wayOf(p kb.Predicate) way { return way{p.Signal, cmp.Compare(*p.Yes, *p.No) > 0} }

// tells says whether evidence for a either does not speak for b as well, or speaks against it.
func tells(a, b kb.Cause) bool {
	shared, against := map[way]bool{}, map[way]bool{}
	for _, p := range b.Evidence {
		w := wayOf(p)
		shared[w] = shared[w] || p.For > 0
		against[way{w.signal, !w.up}] = against[way{w.signal, !w.up}] || p.Against <= -1
	}
	for _, c := range b.Requires {
		w := way{c.Signal, c.Max != nil}
		against[w] = true
	}
	return slices.ContainsFunc(a.Evidence, func(p kb.Predicate) bool {
		return p.For >= 1 && !shared[wayOf(p)] || p.For > 0 && against[wayOf(p)]
	})
}

var lowers = regexp.MustCompile(`(?i)(lower|reduce|decrease)[^.;]*gpu-memory-utilization`)

// TestNoHarmfulAdvice keeps out advice that is common and makes it worse: a smaller pool against preemptions, and more
// slots where steps are slow or the cache is full.
func TestNoHarmfulAdvice(t *testing.T) {
	t.Parallel()
	for _, c := range kb.Default().Causes {
		for _, a := range c.Actions {
			all := a.Text + " " + a.Option
			require.NotRegexp(t, lowers, all, "%s: %s", c.ID, a.ID)
			if strings.Contains(a.Option, "--gpu-memory-utilization") && len(a.Triggers) == 0 {
				require.Contains(t, a.Option, "(raise)", "%s: %s", c.ID, a.ID)
			}
			full := slices.Contains([]string{"kv_cache_exhaustion", "decode_bound", "prefill_bound", "device_slowdown", "cpu_swapping"}, c.ID)
			if full && strings.Contains(a.Option, "--max-num-seqs") {
				require.Contains(t, a.Option, "(lower)", "%s: %s raises the cap", c.ID, a.ID)
			}
		}
	}
}

// TestEverySignalIsUsed finds signals that cost a query and that nothing reads.
func TestEverySignalIsUsed(t *testing.T) {
	t.Parallel()
	b := kb.Default()
	used := map[string]bool{}
	mark := func(ids ...string) {
		for _, id := range ids {
			used[id] = true
		}
	}
	for _, s := range b.Signals {
		mark(s.Needs...)
		mark(s.BetterWith...)
		if s.Ratio != nil {
			mark(s.Ratio.Num, s.Ratio.Den)
		}
		for _, i := range s.Instead {
			mark(i.Operands()...)
		}
	}
	for _, c := range b.Causes {
		mark(c.Needs...)
		mark(c.Panels...)
		mark(c.Explains...)
		for _, p := range c.Evidence {
			mark(p.Signal)
			for _, x := range p.All {
				mark(x.Signal)
			}
			for _, x := range p.When {
				mark(x.Signal)
			}
		}
		for _, x := range c.Requires {
			mark(x.Signal)
		}
	}
	var idle []string
	for _, s := range b.Signals {
		// Quantiles stand in the impact line.
		if s.Fold != "p95" && !used[s.ID] && !readByCode[s.ID] {
			idle = append(idle, s.ID)
		}
	}
	require.Empty(t, idle, "nothing reads these signals")
}

// readByCode are signals that only code under triage/ uses.
var readByCode = map[string]bool{
	"kv_fetch_waiting": true, "external_queries": true, "prompt_tokens_computed": true, "targets": true, "queue_time": true, "lora_max": true,
}
