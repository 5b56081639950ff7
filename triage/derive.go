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
		"kv_connector":         e.kvConnector,
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
			if o.replicaErr(id) == nil {
				x.scalar = f(p, o)
			}
			if x.scalar == nil {
				x.state, x.why = Absent, tooFew(id, o)
				if y := o.gapAmong(s.BetterWith); y != nil && y.state != Present {
					x.state, x.why = y.state, y.why
				}
				if err := unread(p, o, id); err != nil {
					x.state, x.why = Failed, failure(err)
				}
				if o.loraStopped && strings.HasPrefix(id, "lora_") {
					x.endEarly()
				}
			}
		}
		o.all[id] = x
	}
}

// unread is the error of a question that the figure rests on besides signals.
func unread(p *plan, o *observations, id string) error {
	err := o.replicaErr(id)
	switch {
	case strings.HasPrefix(id, "lora_"):
		err = o.loraErr
	case slices.Contains([]string{"scrapes_stopped", "replicas_down", "replicas_lost", "replicas_gone"}, id):
		err = o.absence.err
	}
	return cmp.Or(p.unlabelled, err)
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
