package triage

import (
	"math"
	"slices"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// numbers computes the figures that next steps use, by name. A figure whose inputs are unknown is left out, and so are
// the steps that need it.
func (e *Engine) numbers(o *observations) map[string]Arg {
	out := map[string]Arg{}
	set := func(name string, v float64, unit Unit) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[name] = Arg{Number: &v, Unit: unit}
		}
	}
	for _, s := range e.kb.Signals {
		set(s.ID, o.feature(s.ID, "level"), s.Unit)
		set(s.ID+"_before", o.feature(s.ID, "base"), s.Unit)
		set(s.ID+"_ratio", o.feature(s.ID, "ratio"), Times)
	}
	arrivals := o.feature("arrivals", "level")
	running, waiting := o.feature("running", "level"), o.feature("waiting", "level")
	finished := o.feature("finished", "level")
	replicas := promq.Max(present(o.window.of(o.series("up"))))

	// Little's law: residence in the engine is what runs over what leaves; slots that let the queue drain are arrivals
	// times residence.
	residence := over(running, finished)
	set("residence", residence, Seconds)
	slots := math.Ceil(arrivals * residence)
	if slots > running {
		set("slots_needed", slots, Requests)
	}
	if served := o.servedShare(); served < 0.98 {
		set("shed_share", 1-served, Ratio)
		if replicas >= 1 {
			needed := math.Ceil(replicas / served)
			set("replicas_needed", needed, Count)
			set("replicas_to_add", max(needed-replicas, 1), Count)
		}
	}
	set("replicas_now", replicas, Count)
	if o.pool.tokens > 0 {
		set("pool_tokens", o.pool.tokens, Tokens)
		used := o.feature("kv_usage", "level") * o.pool.tokens
		perRequest := over(used, running)
		set("tokens_per_request", perRequest, Tokens)
		need := perRequest * (running + waiting)
		if need > o.pool.tokens {
			set("tokens_needed", need, Tokens)
			set("pool_factor", need/o.pool.tokens, Times)
		}
		set("concurrency_fits", math.Floor(over(o.pool.tokens, perRequest)), Requests)
	}
	set("prompt_plateau", promq.Max(present(o.window.of(o.series("computed_prompt")))), TokensPerSec)
	set("prompt_demand", o.promptDemand(), TokensPerSec)
	if n := orZero(o.feature("requests_seen", "level")); n > 0 {
		set("requests_affected", math.Round(n), Requests)
	}
	if len(o.absence.models) > 0 {
		out["models_seen"] = Arg{Word: joinNames(o.absence.models)}
	}
	if len(o.configs.changed) > 0 {
		out["config_changes_text"] = Arg{Word: o.configs.String()}
	}
	if down := o.downReplicas(); len(down) > 0 {
		names := make([]string, 0, len(down))
		for _, r := range down {
			names = append(names, firstOf(r.place.Instance, r.place.Pod))
		}
		out["down_instances"] = Arg{Word: joinNames(names[:min(len(names), 5)])}
	}
	for name, by := range map[string]struct {
		signal string
		floor  float64
	}{"busiest_replica": {"load", 1}, "slowest_replica": {"itl", 0.004}} {
		r, f := o.worst(by.signal, by.floor, o.late)
		switch {
		case !math.IsNaN(f):
			out[name] = Arg{Word: firstOf(r.place.Instance, r.place.Pod)}
		case len(o.replicas) == 1:
			out[name] = Arg{Word: firstOf(o.replicas[0].place.Instance, o.replicas[0].place.Pod)}
		}
	}
	return out
}

// servedShare is the part of the arriving work that the servers keep up with, 0.05 to 1; NaN when unknown. Requests that
// finish lag by a whole request under overload, so several estimates are made and the most favourable one counts: advice
// to shed load must not overshoot.
func (o *observations) servedShare() float64 {
	arrivals := o.feature("arrivals", "level")
	best := math.NaN()
	take := func(v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) && (math.IsNaN(best) || v > best) {
			best = v
		}
	}
	take(over(o.feature("finished", "level"), arrivals))
	take(over(o.feature("first_tokens", "level"), arrivals))
	if o.feature("prefill_share", "level") > 0.6 {
		take(over(o.feature("computed_prompt", "level"), o.promptDemand()))
	}
	if length := o.feature("output_length", "level"); length > 0 {
		take(over(o.feature("generation_tokens", "level"), arrivals*length))
	}
	return min(max(best, 0.05), 1)
}

// promptDemand is the prompt tokens per second that the arriving requests would need computed: what the prefix cache has
// is left out.
func (o *observations) promptDemand() float64 {
	share := over(o.feature("computed_prompt", "level"), o.feature("prompt_tokens", "level"))
	if math.IsNaN(share) || share > 1 {
		share = 1
	}
	return o.feature("arrivals", "level") * o.feature("prompt_length", "level") * share
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// actions fills the next steps of a cause with the figures of this incident. A step whose figures are unknown, or whose
// conditions do not hold, is left out; steps for the trigger found come first.
func (e *Engine) actions(o *observations, c kb.Cause, args map[string]Arg, trigger string) []Action {
	var first, rest []Action
	for _, a := range c.Actions {
		if len(a.Triggers) > 0 && !slices.Contains(a.Triggers, trigger) {
			continue
		}
		if !slices.ContainsFunc(a.When, func(cond kb.Condition) bool {
			v := o.feature(cond.Signal, cond.Feature)
			return math.IsNaN(v) || !within(v, cond)
		}) {
			said, ok := fill(a.Text, args)
			if !ok {
				continue
			}
			act := Action{
				Text:   Text{Text: said, Key: "action." + c.ID + "." + a.ID, Args: used(a.Text, args)},
				Option: a.Option,
			}
			if a.Cost != "" {
				if cost, ok := fill(a.Cost, args); ok {
					act.Cost = Text{Text: cost, Key: "cost." + c.ID + "." + a.ID, Args: used(a.Cost, args)}
				}
			}
			if len(a.Triggers) > 0 {
				first = append(first, act)
			} else {
				rest = append(rest, act)
			}
		}
	}
	return slices.Concat(first, rest)
}

// used returns the arguments that a template names.
func used(template string, args map[string]Arg) map[string]Arg {
	var out map[string]Arg
	for _, name := range placeholders(template) {
		if a, ok := args[name]; ok {
			if out == nil {
				out = map[string]Arg{}
			}
			out[name] = a
		}
	}
	return out
}
