package triage

import (
	"math"

	"vllm-triage/promq"
)

// progress is a rate that is above zero whenever the engine produces anything, and zero only when it does not: tokens,
// or, where those are only counted when a request ends, steps. It is nil when nothing tells.
func (o *observations) progress() []float64 {
	for _, id := range []string{"generation_tokens", "steps"} {
		if x := o.get(id); x.state == Present && !x.estimate {
			return x.values
		}
	}
	return nil
}

// stallStart is the first grid index of the stretch without any token that lasts to the end; ok is false without one. The
// last token came about one rate window before.
func stallStart(o *observations) (start int, ok bool) {
	gen, prompt := o.progress(), o.series("prompt_tokens")
	start = tailFrom(o.grid.points(), func(i int) bool { return at(gen, i) == 0 && !(at(prompt, i) > 0) })
	return start, start < o.grid.points()
}

// tailFrom is where the stretch begins that something holds for and that lasts to the end of n points; n without one.
func tailFrom(n int, holds func(i int) bool) int {
	for n > 0 && holds(n-1) {
		n--
	}
	return n
}

// integral is how many events a rate counts in a range.
func (o *observations) integral(id string, r promRange) float64 {
	have := present(r.of(o.series(id)))
	if len(have) == 0 {
		return math.NaN()
	}
	return promq.Mean(have) * float64(r.len()) * o.grid.step.Seconds()
}

// stalledSince dates a stall that lasts to the end: tokens stopped while requests run or wait. Gauges freeze with the
// engine, so nothing else deviates.
func (o *observations) stalledSince(p *plan) (int, bool) {
	start, ok := stallStart(o)
	if !ok {
		return 0, false
	}
	for i := start; i < o.grid.points(); i++ {
		if !o.busy(i) {
			return 0, false
		}
	}
	return max(start-o.points(p.rate), 0), start >= minBasePoints
}

// busy says that requests run or wait at a point of the grid. Where nobody knows how many run, blocks in use say that some
// do: an idle engine holds none.
func (o *observations) busy(i int) bool {
	running := at(o.series("running"), i)
	if math.IsNaN(running) && !o.get("kv_usage_max").estimate {
		running = at(o.series("kv_usage_max"), i)
	}
	return orZero(running)+orZero(at(o.series("waiting"), i)) > 0
}

// drained is for how long, in seconds up to five minutes before the tokens stopped, requests still finished while others
// waited and none started: the engine works, but admits nothing. When an engine dies or hangs, both stop at once.
func drained(_ *plan, o *observations) map[string]float64 {
	start, ok := stallStart(o)
	first, finished, waiting := o.series("first_tokens"), o.series("finished"), o.series("waiting")
	if !ok || first == nil || finished == nil || start == 0 {
		return nil
	}
	if o.get("first_tokens").estimate || len(o.get("first_tokens").instead) > 0 {
		return nil // Made of what ends: that both stop at once says nothing.
	}
	points := 0
	for i := max(start-o.points(5*minuteOf), 0); i < o.grid.points(); i++ {
		if at(first, i) == 0 && at(finished, i) > 0 && at(waiting, i) >= 1 {
			points++
		}
	}
	return map[string]float64{"level": float64(points) * o.grid.step.Seconds(), "base": 0}
}

// stallEpisodes counts earlier stretches in which nothing ran, requests waited and no token came, and which ended without
// a restart: a request that can never start leaves with its client.
func stallEpisodes(p *plan, o *observations) map[string]float64 {
	gen, running, waiting := o.progress(), o.series("running"), o.series("waiting")
	if gen == nil || running == nil || waiting == nil {
		return nil
	}
	last, ok := stallStart(o)
	if !ok {
		last = o.grid.points()
	}
	n, length := 0.0, 0
	for i := range last {
		switch {
		case at(gen, i) == 0 && at(running, i) == 0 && at(waiting, i) >= 1:
			length++
		case length > 0:
			if length > o.points(p.rate)/2 && !o.restartedNear(i, o.points(p.rate)+length) {
				n++
			}
			length = 0
		}
	}
	return map[string]float64{"level": n, "base": 0}
}

func (o *observations) restartedNear(i, points int) bool {
	for _, r := range o.restarts {
		if r >= i-points && r <= i+points {
			return true
		}
	}
	return false
}

// oneRequest is the least that counts as a request where rates that extrapolate are summed up.
const oneRequest = 0.5

// vanished compares the requests that the gauges still show after the tokens stopped with the HTTP requests that ended at
// that moment without finishing in the engine. When all of them ended at once and nothing has come since, the engine is
// idle and its gauges are stale: they are written by a step, and an idle engine makes none (field case FC-69). An engine
// that hangs lets its clients run into their time-outs one by one instead.
func vanished(p *plan, o *observations) map[string]float64 {
	start, ok := stallStart(o)
	k, end := o.points(p.rate), o.grid.points()
	if !ok || o.series("http_requests") == nil || end < start+2*k {
		return nil // Too soon to tell whether more of them leave later.
	}
	held := promq.Median(present(promRange{start, end}.of(o.series("running"))))
	burst := promRange{max(start-2*k, 0), min(start+k, end)}
	gone := o.integral("http_requests", burst) - orZero(o.integral("finished", burst))
	since := orZero(o.integral("http_requests", promRange{min(start+k, end), end}))
	if !(held >= oneRequest) || math.IsNaN(gone) {
		return nil
	}
	if since > oneRequest || gone < oneRequest {
		gone = 0
	}
	return map[string]float64{"level": min(max(gone/held, 0), 1), "base": 0}
}

// poolPrompts is how many of the longest prompts seen fit into an empty KV cache.
func poolPrompts(_ *plan, o *observations) map[string]float64 {
	longest := promq.Max(present(o.series("prompt_length")))
	if o.pool.perReplica == 0 || !(longest > 0) {
		return nil
	}
	return map[string]float64{"level": o.pool.perReplica / longest}
}

// kvMaxConcurrency is how many requests of max_model_len fit into the KV cache, as the server computed it at its start
// (label of vllm:cache_config_info from 0.24.0). Below 1, vLLM accepts requests that it can never start.
func kvMaxConcurrency(_ *plan, o *observations) map[string]float64 {
	least := math.NaN()
	for _, s := range o.configAfter {
		if v := labelNumber(s.Metric, "kv_cache_max_concurrency"); v > 0 && !(v >= least) {
			least = v
		}
	}
	if math.IsNaN(least) {
		return nil
	}
	return map[string]float64{"level": least}
}

// stalled is how long, up to the end, no token has come although requests run or wait.
func stalled(p *plan, o *observations) map[string]float64 {
	gen, prompt := o.progress(), o.series("prompt_tokens")
	seconds := 0.0
	if last := o.grid.points() - 1; at(gen, last) == 0 && math.IsNaN(at(o.series("running"), last)) && !o.busy(last) {
		return nil // Idle or stuck: who holds requests is not known.
	}
	for i := o.grid.points() - 1; i >= 0; i-- {
		if math.IsNaN(at(gen, i)) || at(gen, i) > 0 || at(prompt, i) > 0 || !o.busy(i) {
			break
		}
		// A rate of zero says that nothing happened for a whole rate window.
		if seconds == 0 {
			seconds = p.rate.Seconds()
		}
		seconds += o.grid.step.Seconds()
	}
	return map[string]float64{"level": seconds, "base": 0}
}
