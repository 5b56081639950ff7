package triage

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// ratios computes the signals that are one signal over another, point by point; windows pool them (see pooled).
func (e *Engine) ratios(o *observations) {
	for _, s := range e.kb.Signals {
		if s.Ratio == nil {
			continue
		}
		q, estimate := o.ratioOf(s)
		s.Ratio = &q
		num, den := o.get(q.Num), o.get(q.Den)
		x := &observation{sig: s, state: worseState(num, den), estimate: estimate}
		if x.state != Present {
			x.why = firstWhy(num, den)
			o.all[s.ID] = x
			continue
		}
		x.expr = "(" + num.expr + ") / (" + den.expr + ")"
		x.values = newSeries(o.grid.points())
		for i := range x.values {
			// A single event may start a rate; below one in ten minutes the quotient is noise.
			if v := num.values[i] / den.values[i]; den.values[i] > 1.0/600 && v >= 0 && !math.IsInf(v, 0) {
				x.values[i] = v
			}
		}
		o.all[s.ID] = x
	}
}

func worseState(xs ...*observation) State {
	for _, want := range []State{Failed, Stale, Absent} {
		for _, x := range xs {
			if x.state == want {
				return want
			}
		}
	}
	return Present
}

func firstWhy(xs ...*observation) string {
	for _, x := range xs {
		if x.state != Present {
			return x.sig.ID + ": " + x.why
		}
	}
	return ""
}

// deriveSeries computes the signals that follow from others point by point.
func (e *Engine) deriveSeries(p *plan, o *observations) {
	k := o.points(p.rate)
	running, waiting := o.series("running"), o.series("waiting")
	first, finished := o.series("first_tokens"), o.series("finished")

	e.derive(o, "computed_prompt", func(i int) float64 { return computedPrompt(o, i) })
	computed, generated := o.series("computed_prompt"), o.series("generation_tokens")
	e.derive(o, "work", func(i int) float64 { return at(generated, i) + orZero(at(computed, i)) })
	prompts := o.series("prompt_tokens")
	e.derive(o, "uncached_share", func(i int) float64 { return min(over(at(computed, i), at(prompts, i)), 1) })
	e.derive(o, "prefill_share", func(i int) float64 {
		return over(at(computed, i), at(computed, i)+at(generated, i))
	})
	started := first
	if o.get("first_tokens").estimate {
		started = nil // Estimated from tokens or from what ends: it says nothing that flow balance does not say better.
	}
	arrivals := arrivals(running, waiting, started, finished, k, o.grid.step.Seconds())
	e.derive(o, "arrivals", func(i int) float64 {
		if at(generated, i) == 0 && at(computed, i) == 0 && at(running, i)+at(waiting, i) > 0 {
			return math.NaN() // Nothing moves: the gauges are frozen, and what arrives is not seen.
		}
		return at(arrivals, i)
	})
	arriving := o.series("arrivals")
	e.derive(o, "queue_now", func(i int) float64 {
		if at(waiting, i) == 0 {
			return 0
		}
		return over(at(waiting, i), max(at(arriving, i), 0.02))
	})
	e.derive(o, "wait_share", func(i int) float64 {
		all := at(waiting, i) + at(running, i)
		if all == 0 {
			return 0
		}
		return at(waiting, i) / all
	})
	o.get("wait_share").estimate = o.get("waiting").estimate // Where nobody waits, it does not matter how many run.
	deferred := o.series("waiting_deferred")
	e.derive(o, "deferred_share", func(i int) float64 { return over(at(deferred, i), at(waiting, i)) })
	e.derive(o, "tokens_per_arrival", func(i int) float64 { return over(at(generated, i), at(arriving, i)) })
	e.derive(o, "tokens_per_running", func(i int) float64 { return over(at(generated, i), at(running, i)) })
	e.deriveDemand(o)
	kv, prompt := o.series("kv_usage_max"), o.carried("prompt_length")
	kv = rollingMax(kv, k) // Usage drops after each preemption; what it reached is what was asked for.
	e.derive(o, "kv_headroom", func(i int) float64 {
		if o.pool.perReplica == 0 || prompt[i] == 0 {
			return math.NaN()
		}
		return (1 - at(kv, i)) * o.pool.perReplica / prompt[i]
	})
	if x := o.get("kv_headroom"); x.state == Absent && o.configErr != nil {
		x.state, x.why = Failed, "the size of the KV cache: "+failure(o.configErr)
	}
	e.derive(o, "abandoned", func(i int) float64 {
		if i < k || slices.Equal(o.get("first_tokens").instead, []string{"finished"}) {
			return math.NaN() // Counted when a request ends, all that began have ended.
		}
		// First tokens that neither finished nor are still running.
		growth := (at(running, i) - at(running, i-k)) / (float64(k) * o.grid.step.Seconds())
		if at(first, i) < 0.05 {
			return math.NaN()
		}
		return min(max((at(first, i)-at(finished, i)-max(growth, 0))/at(first, i), 0), 1)
	})
	preempted := o.series("preemptions")
	e.derive(o, "preempt_share", func(i int) float64 {
		return over(at(preempted, i), max(orZero(at(first, i)), 0.1*orZero(at(arriving, i)), 0.02))
	})
	e.derive(o, "residence", func(i int) float64 { return over(at(running, i), max(at(finished, i), 0.01)) })
	e.deriveRequests(o)
}

// derive computes one series; it is unknown where f is NaN, and its state follows from what it needs.
func (e *Engine) derive(o *observations, id string, f func(i int) float64) {
	s, ok := e.kb.Signal(id)
	if !ok {
		return
	}
	x, ok := e.begin(o, s)
	if ok {
		x.values = newSeries(o.grid.points())
		for i := range x.values {
			if v := f(i); !math.IsInf(v, 0) {
				x.values[i] = v
			}
		}
		if len(present(x.values)) == 0 {
			x.state, x.why, x.values = Absent, "what it is computed from has no values", nil
		}
	}
	o.all[id] = x
}

// begin makes the observation of a computed signal; ok is false when what it needs is not present.
func (e *Engine) begin(o *observations, s kb.Signal) (x *observation, ok bool) {
	needs := make([]*observation, 0, len(s.Needs))
	for _, id := range s.Needs {
		needs = append(needs, o.get(id))
	}
	x = &observation{sig: s, state: worseState(needs...)}
	if x.state != Present {
		x.why = firstWhy(needs...)
		return x, false
	}
	if len(needs) > 0 {
		x.expr = needs[0].expr
	}
	x.estimate = slices.ContainsFunc(needs, func(y *observation) bool { return y.estimate })
	return x, true
}

// computedPrompt is the prompt tokens that had to be computed: counted by source from 0.16.0, before that the prompt
// tokens less the share that the prefix cache had.
func computedPrompt(o *observations, i int) float64 {
	if v := o.series("prompt_tokens_computed"); v != nil {
		return at(v, i)
	}
	all := at(o.series("prompt_tokens"), i)
	if hit := at(o.series("prefix_hit_ratio"), i); !math.IsNaN(hit) {
		return all * (1 - min(hit, 1))
	}
	return all
}

func at(v []float64, i int) float64 {
	if i < 0 || i >= len(v) {
		return math.NaN()
	}
	return v[i]
}

// carried is a series of sizes in which the last one known stands for those that follow; 0 before the first. Requests that
// end seldom leave holes.
func (o *observations) carried(id string) []float64 { return carry(o.series(id), o.grid.points()) }

func carry(v []float64, n int) []float64 {
	out, last := make([]float64, n), 0.0
	for i := range out {
		if x := at(v, i); x > 0 {
			last = x
		}
		out[i] = last
	}
	return out
}

func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

func over(a, b float64) float64 {
	if b <= 0 || math.IsNaN(b) {
		return math.NaN()
	}
	return a / b
}

// deriveScalars computes the signals that are one figure for the whole incident.
func (e *Engine) deriveScalars(p *plan, o *observations) {
	for id, f := range map[string]func(*plan, *observations) map[string]float64{
		"slot_plateau":         slotPlateau,
		"limit_lowered":        limitLowered,
		"stalled":              stalled,
		"slow_per_work":        slowPerWork,
		"frontend_gap":         frontendGap,
		"requests_seen":        requestsSeen,
		"restarts":             restarts,
		"config_changes":       configChanges,
		"replicas_down":        replicasDown,
		"replicas_lost":        replicasLost,
		"replica_load_skew":    replicaLoadSkew,
		"replica_arrival_skew": replicaArrivalSkew,
		"replica_itl_skew":     replicaITLSkew,
		"replicas_gone":        replicasGone,
		"replicas_silent":      replicasSilent,
		"replicas_idle":        replicasIdle,
		"lora_adapters":        loraAdapters,
		"lora_max":             loraMax,
		"lora_pressure":        loraPressure,
		"kv_connector":         kvConnector,
		"drained":              drained,
		"stall_episodes":       stallEpisodes,
		"vanished":             vanished,
		"pool_prompts":         poolPrompts,
		"kv_max_concurrency":   kvMaxConcurrency,
		"core_missing":         coreMissing,
		"data_age":             dataAge,
		"scrapes_stopped":      scrapesStopped,
		"taken_over":           takenOver,
	} {
		s, ok := e.kb.Signal(id)
		if !ok {
			continue
		}
		x, ok := e.begin(o, s)
		if ok {
			x.scalar = f(p, o)
			if x.scalar == nil {
				x.state, x.why = Absent, tooFew(id, o)
				if y := o.gapAmong(s.BetterWith); y != nil && y.state != Present {
					x.state, x.why = y.state, y.why
				}
				if err := cmp.Or(p.unlabelled, o.loraErr); err != nil && (p.unlabelled != nil || strings.HasPrefix(id, "lora_")) {
					x.state, x.why = Failed, failure(err)
				}
			}
		}
		o.all[id] = x
	}
}

// tooFew says why a figure for the whole incident could not be computed.
func tooFew(id string, o *observations) string {
	why := "what it is computed from has too few values"
	switch {
	case strings.HasPrefix(id, "lora_"):
		why = "no LoRA adapter was in use"
	case strings.HasPrefix(id, "replica") && len(o.replicas) < 2:
		why = "there is only one replica"
	}
	return why
}

// slotPlateau looks for the signature of max_num_seqs, which no metric gives: running flat at its ceiling while requests
// wait (reference: vllm-metrics §6.35). level is the plateau, spread how flat it is.
func slotPlateau(_ *plan, o *observations) map[string]float64 {
	running, waiting := o.window.of(o.series("running")), o.window.of(o.series("waiting"))
	var flat []float64
	for i := range running {
		if at(waiting, i) >= 1 && !math.IsNaN(running[i]) {
			flat = append(flat, running[i])
		}
	}
	if n := o.late.len(); len(flat) > 2*n {
		flat = flat[len(flat)-n:] // What holds now, where there is enough of it.
	}
	switch {
	case o.get("running").estimate && len(flat) > 0:
		return map[string]float64{"level": promq.Median(flat)} // How flat the gauge would be is not known.
	case len(flat) == 0 || promq.Median(flat) == 0:
		return map[string]float64{"level": 0, "spread": 1}
	case len(flat) < 3:
		return map[string]float64{"level": promq.Median(flat)} // Two points are flat by chance.
	}
	level := promq.Median(flat)
	return map[string]float64{
		"level":  level,
		"spread": max(promq.Quantile(flat, 0.9)-promq.Quantile(flat, 0.1)-1, 0) / level,
	}
}

// limitLowered compares the most that ran before with the ceiling that binds now.
func limitLowered(_ *plan, o *observations) map[string]float64 {
	plateau := slotPlateau(nil, o)
	before := promq.Max(o.baseline.of(o.series("running")))
	if o.get("running").estimate {
		before = promq.Median(o.baseline.of(o.series("running"))) // Its single points are not what ran.
	}
	if plateau["level"] == 0 || math.IsNaN(before) {
		return map[string]float64{"level": 0}
	}
	return map[string]float64{"level": before / plateau["level"], "base": 1}
}

// stalled is how long, up to the end, no token has come although requests run or wait.
func stalled(p *plan, o *observations) map[string]float64 {
	gen, prompt := o.progress(), o.series("prompt_tokens")
	running, waiting := o.series("running"), o.series("waiting")
	seconds := 0.0
	if last := o.grid.points() - 1; at(gen, last) == 0 && math.IsNaN(at(running, last)) && !(at(waiting, last) > 0) {
		return nil // Idle or stuck: who holds requests is not known.
	}
	for i := o.grid.points() - 1; i >= 0; i-- {
		if math.IsNaN(at(gen, i)) || at(gen, i) > 0 || at(prompt, i) > 0 || !(orZero(at(running, i))+orZero(at(waiting, i)) > 0) {
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

// slowPerWork asks whether steps take longer than the work in them explains: the growth of the inter-token latency over
// the growth of what was processed. A busier server processes more tokens; a slower device takes longer for the same or less.
func slowPerWork(_ *plan, o *observations) map[string]float64 {
	itl := o.feature("itl", "ratio")
	work := o.feature("work", "ratio")
	if math.IsNaN(itl) || math.IsNaN(work) || cachedShareHidden(o) {
		return nil
	}
	return map[string]float64{"level": itl / max(work, 0.2), "base": 1, "ratio": itl / max(work, 0.2)}
}

// cachedShareHidden says that prompts are most of the tokens and nothing tells how many of them come from the prefix
// cache: when hits stop, the same prompts are many times the work.
func cachedShareHidden(o *observations) bool {
	if o.series("prompt_tokens_computed") != nil || o.get("prefix_hit_ratio").state == Present {
		return false
	}
	return o.feature("prefill_share", "level") > 0.5 || o.feature("prefill_share", "base") > 0.5
}

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

// mean of the known points of a signal in a range.
func (o *observations) mean(id string, r promRange) float64 { return promq.Mean(r.of(o.series(id))) }

func requestsSeen(_ *plan, o *observations) map[string]float64 {
	events := o.feature("first_tokens", "events")
	if math.IsNaN(events) {
		return nil
	}
	if slices.Equal(o.get("first_tokens").instead, []string{"finished"}) {
		// Only those that ended are counted: those still there come on top, if they are known.
		if math.IsNaN(lastOf(o.series("running"))) {
			return nil
		}
		events += o.feature("running", "max")
	}
	seconds := float64(o.window.len()) * o.grid.step.Seconds()
	out := map[string]float64{"level": events + orZero(o.feature("waiting", "max")), "mean": events / max(seconds/60, 1e-9)}
	if base := o.feature("first_tokens", "base"); !math.IsNaN(base) {
		out["base"] = base * seconds
	}
	return out
}

// restarts counts process starts from shortly before the onset to the end. Where neither start times nor scrapes can be
// seen, that there were none is not known.
func restarts(p *plan, o *observations) map[string]float64 {
	if len(o.restarts) == 0 && len(present(o.series("start_time"))) == 0 && len(present(o.series("up"))) == 0 {
		return nil
	}
	n := 0.0
	for _, r := range o.restarts {
		if r >= o.onsetIdx-o.points(p.rate+minuteOf) {
			n++
		}
	}
	return map[string]float64{"level": n, "base": 0}
}

func configChanges(_ *plan, o *observations) map[string]float64 {
	if !o.configs.known {
		return nil
	}
	return map[string]float64{"level": float64(len(o.configs.changed)), "base": 0}
}

// replicasDown counts targets of the scope that do not answer their scrape now.
func replicasDown(_ *plan, o *observations) map[string]float64 {
	up, targets := o.series("up"), o.series("targets")
	last := len(up) - 1
	if last < 0 || o.prometheusStopped() {
		return nil
	}
	now, all := at(up, last), at(targets, last)
	if math.IsNaN(now) || math.IsNaN(all) {
		// No target at all any more.
		now, all = 0, orZero(promq.Max(present(targets)))
	}
	return map[string]float64{"level": all - now, "base": 0}
}

// replicasLost counts how many fewer replicas answer than in the baseline: down now, or gone from service discovery.
func replicasLost(_ *plan, o *observations) map[string]float64 {
	up := o.series("up")
	if up == nil || o.baseline.len() == 0 || o.prometheusStopped() {
		return nil
	}
	before := promq.Median(present(o.baseline.of(up)))
	now := promq.Min(present(o.window.of(up)))
	last := at(up, len(up)-1)
	if math.IsNaN(before) || math.IsNaN(now) {
		return nil
	}
	return map[string]float64{"level": before - orZero(last), "max": before - now, "base": 0}
}

// replicasGone counts replicas that do not answer now, and those that service discovery dropped while others lack them:
// a pod that is gone leaves no target behind.
func replicasGone(p *plan, o *observations) map[string]float64 {
	down := replicasDown(p, o)
	if down == nil {
		return nil
	}
	n := down["level"]
	if lost := replicasLost(p, o); lost != nil && lost["level"] > n {
		n = lost["level"]
	}
	return map[string]float64{"level": max(n, 0), "base": 0}
}

// signsOfConnector are the signals that move only where a KV connector is at work. The counters exist without one too.
var signsOfConnector = []string{"external_queries", "kv_transfers", "kv_fetch_waiting", "kv_transfer_failures"}

// kvConnector counts the signs that a KV connector is at work: look-ups in an external cache, transfers, requests that
// wait for remote KV. Without any it is known to be none only when no sign is missing.
func kvConnector(_ *plan, o *observations) map[string]float64 {
	n, missing := 0.0, false
	for _, id := range signsOfConnector {
		if promq.Max(present(o.series(id))) > 0 {
			n++
		}
		missing = missing || o.gap(id) != nil
	}
	if n == 0 && missing {
		return nil
	}
	return map[string]float64{"level": n, "base": 0}
}
