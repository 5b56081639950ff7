package triage

import (
	"math"
)

// frontendGap is the part of the time to first token that is neither queue nor prefill, as means of the same window.
// While requests wait it is unknown: the queue time of those that wait is not observed yet (reference: vllm-metrics §4).
// A request that arrives during a step is seen at its end, so one step belongs to the engine.
func frontendGap(_ *plan, o *observations) map[string]float64 {
	gap := o.gapOfFirstToken
	if o.get("ttft_sum").estimate {
		gap = o.gapOfWhole
	}
	now, before := gap(o.late), math.NaN()
	if math.IsNaN(now) {
		now = gap(o.window)
	}
	if o.baseline.len() > 0 {
		before = max(gap(o.baseline), 0)
	}
	if math.IsNaN(now) {
		return nil
	}
	now = max(now, 0)
	out := map[string]float64{"level": now, "mean": now}
	if ttft := now + o.queueTime(o.late) + o.pooled(o.get("prefill_time"), o.late); ttft > 0 {
		out["spread"] = min(now/ttft, 1) // Share of the time to first token.
	}
	if !math.IsNaN(before) {
		out["base"], out["delta"] = before, now-before
		out["ratio"] = (now + 0.05) / (before + 0.05)
	}
	return out
}

// gapOfFirstToken is what queue, prefill and one step leave of the time to first token.
func (o *observations) gapOfFirstToken(r promRange) float64 {
	return o.pooled(o.get("ttft"), r) - o.queueTime(r) - o.pooled(o.get("prefill_time"), r) - orZero(o.pooled(o.get("itl"), r))
}

// queueTime is the mean time in the queue: as the server measures it, else by Little's law from those that wait.
func (o *observations) queueTime(r promRange) float64 {
	if o.get("queue_time").state == Present || o.get("waiting").estimate {
		return o.pooled(o.get("queue_time"), r)
	}
	return over(o.mean("waiting", r), o.mean("first_tokens", r))
}

// gapOfWhole is what queue and engine leave of a whole request, where the time to first token is not exported.
func (o *observations) gapOfWhole(r promRange) float64 {
	if o.get("e2e_sum").instead != nil {
		return math.NaN() // Computed from the parts: what they leave is nothing by construction.
	}
	engine := o.mean("inference_sum", r)
	if math.IsNaN(engine) {
		engine = o.mean("prefill_sum", r) + o.mean("decode_sum", r)
	}
	return o.pooled(o.get("e2e"), r) - o.queueTime(r) - over(engine, o.mean("e2e_count", r)) -
		orZero(o.pooled(o.get("itl"), r))
}
