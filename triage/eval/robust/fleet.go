package robust

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
)

// replicas adds replicas and ranks beside those that were recorded.
func replicas() []Variant {
	return []Variant{
		{Group: groupFleet, Name: "one healthy replica more", Data: healthyBeside(1), Case: oneOfSeveral},
		{Group: groupFleet, Name: "five healthy replicas more", Data: healthyBeside(5), Case: oneOfSeveral},
		{Group: groupFleet, Name: "forty healthy replicas more", Data: healthyBeside(40), Case: oneOfSeveral},
		{Group: groupFleet, Name: "every replica twice", Data: everyTwice},
		{Group: groupFleet, Name: "two equal data-parallel ranks", Data: twoRanks},
		{Group: groupFleet, Name: "mixed versions: the copy exports 0.9.0", Data: mixedVersions},
	}
}

// oneOfSeveral accepts that a replica which alone is overloaded is called imbalance, and that other requests which reach
// it alone are called another routing.
func oneOfSeveral(c eval.Case) (eval.Case, bool) {
	for _, workload := range []string{"traffic_surge", "longer_prompts", "longer_outputs", "sampling_n", "prefix_cache_collapse"} {
		if slices.Contains(c.Triggers, workload) {
			c.Triggers = append(slices.Clone(c.Triggers), "routing_change")
			break
		}
	}
	if !slices.Contains([]string{"healthy", "low_traffic"}, c.Bottleneck) {
		c.Also = append(slices.Clone(c.Also), "replica_imbalance")
	}
	if c.Where == "" && !slices.Contains([]string{"healthy", "low_traffic"}, c.Bottleneck) {
		c.Where = sick(c).Get("instance")
	}
	return c, true
}

// target is what all series of one scraped server have in common.
func target(l labels.Labels) string { return l.Get("instance") }

// modelTarget is the instance of a recording that stays well the longest: not the one that the fault is about.
func modelTarget(r *eval.Recording) string {
	out := ""
	for _, s := range r.Data.Store().Series() {
		l := s.Labels
		if nameOf(l) != "vllm:num_requests_running" || l.Get("model_name") != r.Model() {
			continue
		}
		if out == "" || target(l) != r.Truth.Where && out == r.Truth.Where {
			out = target(l)
		}
	}
	return out
}

// copyOf names the n-th copy of a target.
func copyOf(l labels.Labels, n int) labels.Labels {
	return labels.NewBuilder(l).
		Set("instance", fmt.Sprintf("10.42.%d.%d:8000", 1+n/200, 20+n%200)).
		Set("pod", fmt.Sprintf("%s-copy-%d", l.Get("pod"), n)).Labels()
}

// healthyBeside adds replicas on which the calm before the fault goes on.
func healthyBeside(n int) func(*eval.Recording) *memstore.Store {
	return func(r *eval.Recording) *memstore.Store {
		first, last := r.Data.Bounds()
		segments := looped(r, last.UnixMilli()+1, last.Sub(first))
		from := modelTarget(r)
		return r.Data.Store().Apply(func(one memstore.Series) []memstore.Series {
			out := []memstore.Series{one}
			if target(one.Labels) != from || isAlert(nameOf(one.Labels)) {
				return out
			}
			calm := retime(one, segments)
			for i := range n {
				out = append(out, memstore.Series{Labels: copyOf(one.Labels, i), Samples: calm.Samples})
			}
			return out
		})
	}
}

// everyTwice adds a copy of each server with all its troubles.
func everyTwice(r *eval.Recording) *memstore.Store {
	n := map[string]int{}
	return r.Data.Store().Apply(func(one memstore.Series) []memstore.Series {
		t := target(one.Labels)
		if t == "" || isAlert(nameOf(one.Labels)) {
			return []memstore.Series{one}
		}
		if _, ok := n[t]; !ok {
			n[t] = len(n)
		}
		return []memstore.Series{one, {Labels: copyOf(one.Labels, n[t]), Samples: one.Samples}}
	})
}

// twoRanks adds a second rank with the same load to each server. num_gpu_blocks is then the sum over the ranks, and said
// on each of their rows (v1/engine/core_client.py); the HTTP process is one.
func twoRanks(r *eval.Recording) *memstore.Store {
	return r.Data.Store().Apply(func(one memstore.Series) []memstore.Series {
		l := one.Labels
		if l.Get("engine") == "" {
			return []memstore.Series{one}
		}
		b := labels.NewBuilder(l)
		if v := l.Get("num_gpu_blocks"); v != "" {
			var blocks int
			if _, err := fmt.Sscan(v, &blocks); err == nil {
				b.Set("num_gpu_blocks", strconv.Itoa(2*blocks))
			}
		}
		zero := b.Labels()
		return []memstore.Series{
			{Labels: zero, Samples: one.Samples},
			{Labels: labels.NewBuilder(zero).Set("engine", "1").Labels(), Samples: one.Samples},
		}
	})
}

// mixedVersions is a fleet during an upgrade: each server has a copy that still exports the names of 0.9.0.
func mixedVersions(r *eval.Recording) *memstore.Store {
	old := asVersion("0.9.0")(r)
	n := map[string]int{}
	copies := old.Apply(func(one memstore.Series) []memstore.Series {
		t := target(one.Labels)
		if t == "" || isAlert(nameOf(one.Labels)) || strings.HasSuffix(nameOf(one.Labels), "_created") {
			return nil
		}
		if _, ok := n[t]; !ok {
			n[t] = len(n)
		}
		return []memstore.Series{{Labels: copyOf(one.Labels, n[t]), Samples: one.Samples}}
	})
	return r.Data.Store().Merge(copies)
}
