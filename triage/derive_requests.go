package triage

import "math"

// deriveDemand computes the share of the KV cache that running requests need: their prompts, less what the prefix cache
// had and they may share, and on average half of their answers. Where no gauge gives the usage, it stands in.
func (e *Engine) deriveDemand(o *observations) {
	running, prompt, output, hits := o.series("running"), o.series("prompt_length"), o.series("output_length"), o.series("prefix_hit_ratio")
	perArrival := o.series("tokens_per_arrival")
	var lastPrompt, lastOutput, lastHit float64
	keep := func(last *float64, v float64) {
		if v > 0 {
			*last = v
		}
	}
	e.derive(o, "kv_demand", func(i int) float64 {
		keep(&lastPrompt, at(prompt, i))
		keep(&lastOutput, max(orZero(at(output, i)), orZero(at(perArrival, i))))
		keep(&lastHit, min(at(hits, i), 1))
		if o.pool.tokens == 0 || lastPrompt == 0 {
			return math.NaN()
		}
		return math.Min(at(running, i)*(lastPrompt*(1-lastHit)+lastOutput/2)/o.pool.tokens, 1)
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
	prompt, output := o.series("prompt_length"), o.series("output_length")
	var lastPrompt, lastOutput float64
	// A running request holds its prompt and, on average, half of its answer. Shared prefixes only make it less.
	e.derive(o, "kv_per_demand", func(i int) float64 {
		if v := at(prompt, i); v > 0 {
			lastPrompt = v
		}
		if v := at(output, i); v > 0 {
			lastOutput = v
		}
		if o.pool.tokens == 0 || lastPrompt == 0 || math.IsNaN(at(running, i)) {
			return math.NaN()
		}
		return at(kv, i) * o.pool.tokens / ((at(running, i) + 1) * (lastPrompt + lastOutput/2))
	})
	// Against the prompt alone it shows how long the answers are that nobody has seen finished.
	lastPrompt = 0
	e.derive(o, "kv_per_prompt", func(i int) float64 {
		if v := at(prompt, i); v > 0 {
			lastPrompt = v
		}
		if o.pool.tokens == 0 || lastPrompt == 0 || math.IsNaN(at(running, i)) {
			return math.NaN()
		}
		return at(kv, i) * o.pool.tokens / ((at(running, i) + 1) * lastPrompt)
	})
}
