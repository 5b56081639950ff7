package triage

import "math"

// deriveDemand computes the share of the KV cache that running requests need: their prompts, less what the prefix cache
// had and they may share, and on average half of their answers. Where no gauge gives the usage, it stands in.
func (e *Engine) deriveDemand(o *observations) {
	running, prompt, hits := o.series("running"), o.carried("prompt_length"), o.carried("prefix_hit_ratio")
	finished, perArrival := o.series("output_length"), o.series("tokens_per_arrival")
	longest := newSeries(o.grid.points())
	for i := range longest {
		longest[i] = max(orZero(at(finished, i)), orZero(at(perArrival, i)))
	}
	output := carry(longest, len(longest))
	e.derive(o, "kv_demand", func(i int) float64 {
		if o.pool.tokens == 0 || prompt[i] == 0 {
			return math.NaN()
		}
		return math.Min(at(running, i)*(prompt[i]*(1-min(hits[i], 1))+output[i]/2)/o.pool.tokens, 1)
	})
	for _, id := range []string{"kv_usage", "kv_usage_max"} {
		if s, ok := e.kb.Signal(id); ok {
			e.standIn(o, s)
		}
	}
}

// deriveRequests computes series about what becomes of requests: refused, parked, held in the KV cache.
func (e *Engine) deriveRequests(o *observations) {
	running, arriving := o.series("running"), o.series("arrivals")
	rejected, deferred := o.series("request_rejections"), o.series("waiting_deferred")
	e.derive(o, "rejected_share", func(i int) float64 {
		return over(at(rejected, i), at(rejected, i)+max(orZero(at(arriving, i)), 0.02))
	})
	e.derive(o, "slots_held", func(i int) float64 { return at(running, i) + at(deferred, i) })
	e.derive(o, "parked_share", func(i int) float64 { return over(at(deferred, i), at(deferred, i)+at(running, i)) })
	items, hits := o.series("mm_queries"), o.series("mm_hits")
	e.derive(o, "mm_computed", func(i int) float64 { return max(at(items, i)-orZero(at(hits, i)), 0) })
	moved, lost := o.series("kv_transfers"), o.series("kv_transfer_failures")
	e.derive(o, "kv_transfer_failed_share", func(i int) float64 {
		return over(at(lost, i), at(lost, i)+orZero(at(moved, i)))
	})
	e.deriveHeld(o)
}

// deriveHeld computes what running requests hold of the KV cache against what explains it.
func (e *Engine) deriveHeld(o *observations) {
	kv, running := o.series("kv_usage"), o.series("running")
	prompt, output := o.carried("prompt_length"), o.carried("output_length")
	against := func(i int, size float64) float64 {
		if o.pool.tokens == 0 || prompt[i] == 0 || math.IsNaN(at(running, i)) {
			return math.NaN()
		}
		return at(kv, i) * o.pool.tokens / ((at(running, i) + 1) * size)
	}
	// A running request holds its prompt and, on average, half of its answer. Shared prefixes only make it less.
	e.derive(o, "kv_per_demand", func(i int) float64 { return against(i, prompt[i]+output[i]/2) })
	// Against the prompt alone it shows how long the answers are that nobody has seen finished.
	e.derive(o, "kv_per_prompt", func(i int) float64 { return against(i, prompt[i]) })
}
