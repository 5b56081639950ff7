package triage

import (
	"math"
	"slices"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// numbers computes the figures that next steps use, by name. A figure whose inputs are unknown is left out, and so are
// the steps that need it.
func (e *Engine) numbers(p *plan, o *observations) map[string]Arg {
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
	// What the server can take is what it finishes now; the rest of the arrivals is excess.
	capacity := finished
	if excess := 1 - over(capacity, arrivals); excess > 0.02 {
		set("shed_share", min(excess, 0.99), Ratio)
		if replicas >= 1 {
			set("replicas_needed", math.Ceil(replicas*over(arrivals, capacity)), Count)
			set("replicas_to_add", max(math.Ceil(replicas*over(arrivals, capacity))-replicas, 1), Count)
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
	set("prompt_demand", o.feature("arrivals", "level")*o.feature("prompt_length", "level"), TokensPerSec)
	if n := orZero(o.feature("requests_seen", "level")); n > 0 {
		set("requests_affected", math.Round(n), Requests)
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
	if r, f := o.worst("load", 1, o.late); !math.IsNaN(f) {
		out["busiest_replica"] = Arg{Word: firstOf(r.place.Instance, r.place.Pod)}
	}
	if r, f := o.worst("itl", 0.004, o.late); !math.IsNaN(f) {
		out["slowest_replica"] = Arg{Word: firstOf(r.place.Instance, r.place.Pod)}
	}
	return out
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
