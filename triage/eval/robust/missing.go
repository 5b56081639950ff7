package robust

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

// randomDrops is how many different random thirds of the metrics are taken away.
const randomDrops = 8

// Rows in which metrics are taken away: every one in turn, as from a server that never exported it; and those in which a
// server that exported them stops doing so when the fault begins.
const (
	eachMetric       = "each metric alone"
	eachMetricEnds   = "each metric alone, from the fault on"
	someMetricsEnded = "30 % at random, from the fault on"
)

// core are the gauges and counters that every dashboard for vLLM has had since its first release with metrics.
var core = []string{
	"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:prompt_tokens",
	"vllm:generation_tokens", "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
}

// metricsRead lists the metrics that the engine asks for.
func metricsRead(base *kb.Base) []string {
	out := []string{"vllm:cache_config_info", "vllm:lora_requests_info"} // Read for their labels.
	for _, s := range base.Signals {
		for _, n := range s.Names {
			out = append(out, family(n))
		}
	}
	return out
}

// missing takes metrics away, from the start or from the fault on: each that is read alone, and 30 % of all at random.
func missing(base *kb.Base, recs []*eval.Recording) []Variant {
	all := families(recs)
	read := metricsRead(base)
	var out []Variant
	for _, f := range all {
		if !slices.Contains(read, f) {
			continue
		}
		out = append(out, Variant{
			Group: groupMissing, Name: eachMetric, Detail: f, Blind: true,
			Data: func(r *eval.Recording) *memstore.Store {
				return without(r.Data.Store(), func(name string) bool { return name == f })
			},
		}, Variant{
			Group: groupMissing, Name: eachMetricEnds, Detail: f, Blind: true,
			Data: func(r *eval.Recording) *memstore.Store {
				return ending(r, func(name string) bool { return name == f })
			},
		})
	}
	for seed := range randomDrops {
		gone := pick(all, 0.3, uint64(seed))
		out = append(out,
			Variant{
				Group: groupMissing, Name: "30 % of the metrics at random", Detail: fmt.Sprint("seed ", seed), Blind: true,
				Data: func(r *eval.Recording) *memstore.Store {
					return without(r.Data.Store(), func(name string) bool { return slices.Contains(gone, name) })
				},
			},
			Variant{
				Group: groupMissing, Name: someMetricsEnded, Detail: fmt.Sprint("seed ", seed), Blind: true,
				Data: func(r *eval.Recording) *memstore.Store {
					return ending(r, func(name string) bool { return slices.Contains(gone, name) })
				},
			},
			Variant{
				Group: groupMissing, Name: "30 % at random, but none of the core", Detail: fmt.Sprint("seed ", seed), Blind: true,
				Data: func(r *eval.Recording) *memstore.Store {
					return without(r.Data.Store(), func(name string) bool {
						return slices.Contains(gone, name) && !slices.Contains(core, name)
					})
				},
			})
	}
	return append(out,
		group("no process and HTTP metrics", func(name string) bool { return !isVLLM(name) && name != "up" }),
		group("no up and scrape metrics", func(name string) bool { return name == "up" || hasPrefix(name, "scrape_") }),
		group("gauges and counters only, no histograms", isHistogram),
	)
}

// ending stops whole metrics when the fault begins.
func ending(r *eval.Recording, gone func(family string) bool) *memstore.Store {
	return r.Data.Store().End(r.FaultStart, func(l labels.Labels) bool { return !isAlert(nameOf(l)) && gone(family(nameOf(l))) })
}

func group(name string, gone func(family string) bool) Variant {
	return Variant{Group: groupMissing, Name: name, Blind: true, Data: func(r *eval.Recording) *memstore.Store {
		return without(r.Data.Store(), gone)
	}}
}

// pick draws a share of the names.
func pick(names []string, share float64, seed uint64) []string {
	rng := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // Chosen to be repeatable.
	var out []string
	for _, n := range names {
		if rng.Float64() < share {
			out = append(out, n)
		}
	}
	return out
}
