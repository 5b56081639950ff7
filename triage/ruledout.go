package triage

import (
	"cmp"
	"slices"

	"vllm-triage/triage/kb"
)

// closest orders causes by how much speaks for them: a reader asks first about what looks like the answer.
func closest(a, b scored) int {
	return cmp.Or(cmp.Compare(b.support(), a.support()), cmp.Compare(a.cause.ID, b.cause.ID))
}

// support is what speaks for a cause, in log-odds, whatever speaks against it.
func (s scored) support() float64 {
	sum := 0.0
	for _, l := range s.lines {
		sum += max(l.weight, 0)
	}
	return sum
}

// ruledOut words why a cause is out: its hard condition, or its strongest key evidence against.
func ruledOut(o *observations, s scored) (Text, bool) {
	if s.refuted != nil {
		return conditionText(o, s.cause, *s.refuted), true
	}
	if s.score > -2 {
		return Text{}, false
	}
	best := s.against(func(l *line) bool { return l.p.Signal != "" })
	if best == nil {
		return Text{}, false
	}
	template, key := best.p.SayAgainst, "evidence."+s.cause.ID+"."+best.p.ID+".against"
	if template == "" {
		template, key = "{signal} {during} (before {before})", "evidence.plain"
	}
	return o.say(key, template, best.p), true
}

func conditionText(o *observations, c kb.Cause, cond kb.Condition) Text {
	template, key := cond.Say, "condition."+c.ID+"."+cond.Signal+"."+cond.Feature
	if template == "" {
		template, key = "{signal} {value}", "evidence.condition"
	}
	return o.say(key, template, kb.Predicate{Test: kb.Test{Signal: cond.Signal, Feature: cond.Feature}})
}

// runnerUp says why the second bottleneck lost: its own evidence against, or what it lacks.
func runnerUp(o *observations, w *weighed) Text {
	if len(w.bottlenecks) < 2 || w.bottlenecks[1].probability < 0.02 {
		return Text{}
	}
	s := w.bottlenecks[1]
	best := s.against(func(*line) bool { return true })
	title := word("second", s.cause.Title)
	if best != nil && best.p.Signal == "" {
		return text("runner_up.consequence", "{second} is second: here it follows from {first}", title,
			word("first", w.bottlenecks[0].cause.Title))
	}
	if best == nil {
		return text("runner_up.weaker", "{second} is second: less speaks for it than for {first}", title,
			word("first", w.bottlenecks[0].cause.Title))
	}
	template, key := best.p.SayAgainst, "runner_up."+s.cause.ID+"."+best.p.ID
	if template == "" {
		template, key = "{signal} {during} (before {before})", "runner_up.plain"
	}
	return o.say(key, "{second} is second: "+template, best.p, title)
}

// missing lists the signals that could not be read, optional ones that do not exist apart.
func (e *Engine) missing(p *plan, o *observations) []Missing {
	out := []Missing{}
	if p.discovery != nil {
		out = append(out, Missing{Signal: "discovery", State: Failed, Why: failure(p.discovery)})
	}
	for _, s := range e.kb.Signals {
		if !s.Queried() {
			continue
		}
		x := o.get(s.ID)
		if x.state == Present || x.state == Absent && s.Optional {
			continue
		}
		out = append(out, Missing{Signal: s.ID, State: x.state, Why: x.why})
	}
	slices.SortFunc(out, func(a, b Missing) int { return cmp.Compare(a.Signal, b.Signal) })
	return out
}
