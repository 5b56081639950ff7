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

// scaled makes servers faster or bigger.
func scaled() []Variant {
	return []Variant{
		{Group: groupScale, Name: "four times as fast", Data: faster(4), Case: busier},
		{Group: groupScale, Name: "ten times as fast", Data: faster(10), Case: busier},
		{Group: groupScale, Name: "eight times as big", Data: bigger(8), Case: busier},
		{Group: groupScale, Name: "eight times as big, ten times as fast", Case: busier, Data: func(r *eval.Recording) *memstore.Store {
			return fasterStore(bigger(8)(r), 10)
		}},
		{Group: groupScale, Name: "prompts, outputs and pool in tokens eight times as long", Data: longer(8)},
	}
}

// busier accepts that a server with more requests has not too few of them any more.
func busier(c eval.Case) (eval.Case, bool) {
	if c.Bottleneck == "low_traffic" {
		c.Also = append(slices.Clone(c.Also), "healthy")
	}
	return c, true
}

// faster is a server on which everything takes a fraction of the time, under that many times the requests: counters grow
// faster, sums of seconds stay, because that many more events take that much less time each; levels stay. It turns the
// recordings' seconds on a CPU into a GPU's milliseconds.
func faster(by float64) func(*eval.Recording) *memstore.Store {
	return func(r *eval.Recording) *memstore.Store { return fasterStore(r.Data.Store(), by) }
}

func fasterStore(s *memstore.Store, by float64) *memstore.Store {
	s = s.Map(func(l labels.Labels) (labels.Labels, bool) {
		le, err := strconv.ParseFloat(l.Get("le"), 64)
		if err != nil || l.Get("le") == "+Inf" || !inSeconds(nameOf(l)) {
			return l, true
		}
		return labels.NewBuilder(l).Set("le", strconv.FormatFloat(le/by, 'g', 6, 64)).Labels(), true
	})
	return mapValues(s, func(l labels.Labels, v float64) float64 {
		name := nameOf(l)
		seconds := inSeconds(name) && strings.HasSuffix(name, "_sum")
		if isCounter(name) && isTraffic(name) && !seconds {
			return v * by
		}
		return v
	})
}

// isTraffic says whether a counter counts the work of the server, unlike those of its own process.
func isTraffic(name string) bool { return isVLLM(name) || hasPrefix(name, "http_") }

func inSeconds(name string) bool { return strings.HasSuffix(family(name), "_seconds") }

// bigger is one server instead of several equal ones: levels and counters add up, and so does the pool.
func bigger(by float64) func(*eval.Recording) *memstore.Store {
	return func(r *eval.Recording) *memstore.Store {
		s := r.Data.Store().Map(func(l labels.Labels) (labels.Labels, bool) {
			return scaleLabels(l, by, "num_gpu_blocks", "kv_cache_size_tokens"), true
		})
		return mapValues(s, func(l labels.Labels, v float64) float64 {
			name := nameOf(l)
			if isCounter(name) && isTraffic(name) || hasPrefix(name, "vllm:num_requests_") {
				return v * by
			}
			return v
		})
	}
}

// longer scales what is counted in tokens. One step then makes that many tokens of each sequence, as with speculation, so
// that the times stay.
func longer(by float64) func(*eval.Recording) *memstore.Store {
	return func(r *eval.Recording) *memstore.Store {
		s := r.Data.Store().Map(func(l labels.Labels) (labels.Labels, bool) {
			if hasPrefix(nameOf(l), "vllm:") && strings.Contains(nameOf(l), "tokens") && l.Get("le") != "" && l.Get("le") != "+Inf" {
				return scaleLabels(l, by, "le"), true
			}
			return scaleLabels(l, by, "num_gpu_blocks", "kv_cache_size_tokens"), true
		})
		return mapValues(s, func(l labels.Labels, v float64) float64 {
			name := nameOf(l)
			tokens := strings.HasSuffix(name, "_total") && strings.Contains(name, "tokens") ||
				hasPrefix(name, "vllm:prefix_cache_") && isCounter(name) ||
				strings.HasSuffix(name, "_sum") && (strings.Contains(name, "_tokens") || strings.Contains(name, "iteration_tokens"))
			if isVLLM(name) && tokens {
				return v * by
			}
			return v
		})
	}
}

func scaleLabels(l labels.Labels, by float64, names ...string) labels.Labels {
	b := labels.NewBuilder(l)
	for _, n := range names {
		if v, err := strconv.ParseFloat(l.Get(n), 64); err == nil {
			b.Set(n, fmt.Sprint(v*by))
		}
	}
	return b.Labels()
}
