package triage

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// maxHypotheses is how many causes of an axis a report lists.
const maxHypotheses = 6

// report is the last stage: it puts into words what was found. It decides nothing that changes the ranking.
func (e *Engine) report(p *plan, o *observations, w *weighed) Report {
	r := Report{
		Schema:      SchemaVersion,
		GeneratedAt: p.in.Now,
		Incident:    e.incidentInfo(p, o),
		Bottlenecks: []Hypothesis{},
		Triggers:    []Hypothesis{},
		RuledOut:    []RuledOut{},
		Missing:     e.missing(p, o),
		VLLM:        e.version(p),
		Knowledge:   e.kb.Hash,
		Residual:    round3(w.residual),
	}
	o.numbers = e.numbers(o)
	args := o.numbers
	for i, s := range w.bottlenecks {
		if i >= maxHypotheses {
			break
		}
		r.Bottlenecks = append(r.Bottlenecks, e.hypothesis(p, o, s, args, topID(w.triggers)))
	}
	for i, s := range w.triggers {
		if i >= maxHypotheses {
			break
		}
		r.Triggers = append(r.Triggers, e.hypothesis(p, o, s, args, ""))
	}
	all := slices.Concat(w.bottlenecks, w.triggers)
	slices.SortFunc(all, closest)
	for _, s := range all {
		if why, ok := ruledOut(o, s); ok {
			r.RuledOut = append(r.RuledOut, RuledOut{
				ID: s.cause.ID, Title: s.cause.Title, Why: why.Text, Reason: why,
			})
		}
	}
	for _, s := range w.unchecked {
		x := o.get(s.missing)
		t := text("not_checked", "needs {signal}: {why}", word("signal", s.missing), word("why", x.why))
		r.NotChecked = append(r.NotChecked, RuledOut{ID: s.cause.ID, Title: s.cause.Title, Why: t.Text, Reason: t})
	}
	slices.SortFunc(r.NotChecked, func(a, b RuledOut) int { return cmp.Compare(a.ID, b.ID) })
	r.Verdict, r.Inconclusive = e.verdict(p, o, w)
	r.RunnerUp = runnerUp(o, w)
	r.Chain = chain(o, w, r.Verdict)
	r.Impact = impact(o, args)
	r.Notes = e.notes(p, o)
	r.Panels = e.panels(p, o, w)
	return r
}

func topID(s []scored) string {
	if len(s) == 0 {
		return ""
	}
	return s[0].cause.ID
}

func (e *Engine) incidentInfo(p *plan, o *observations) IncidentInfo {
	info := IncidentInfo{
		ID:                 p.in.ID,
		GroupKey:           p.in.GroupKey,
		Status:             p.in.Status,
		Scope:              p.scope,
		ScopeNote:          p.note,
		Onset:              o.onset,
		OnsetUncertaintyMS: o.uncertainty.Milliseconds(),
		Window:             Span{Start: o.onset, End: p.end},
		Alerts:             p.in.Alerts,
		Truncated:          p.in.Truncated,
		RunbookURL:         p.in.RunbookURL(),
		ExternalURL:        p.in.ExternalURL,
	}
	if info.Alerts == nil {
		info.Alerts = []Alert{}
	}
	if o.baseline.len() > 0 {
		b := o.span(o.baseline)
		info.Baseline = &b
	}
	if n := promq.Max(present(o.window.of(o.series("targets")))); !math.IsNaN(n) {
		info.Replicas = int(n)
	} else if n := promq.Max(present(o.window.of(o.series("serving")))); !math.IsNaN(n) {
		info.Replicas = int(n)
	}
	return info
}

// hypothesis words one cause.
func (e *Engine) hypothesis(p *plan, o *observations, s scored, args map[string]Arg, trigger string) Hypothesis {
	h := Hypothesis{
		ID:          s.cause.ID,
		Title:       s.cause.Title,
		Probability: round3(s.probability),
		Score:       round3(s.score),
		Prior:       round3(s.prior),
		Coverage:    round3(s.coverage),
		Where:       o.where(p, s.cause),
		Evidence:    []Evidence{},
	}
	for _, l := range s.lines {
		if l.weight == 0 && !l.p.Key {
			continue
		}
		h.Evidence = append(h.Evidence, e.evidence(o, s.cause, l))
	}
	slices.SortStableFunc(h.Evidence, func(a, b Evidence) int {
		return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight))
	})
	if s.refuted != nil {
		why := conditionText(o, s.cause, *s.refuted)
		h.Evidence = append([]Evidence{{
			Signal: s.refuted.Signal, Text: why, Supports: false, Weight: round3(s.score - s.prior),
		}}, h.Evidence...)
	}
	if s.cause.Axis == kb.Bottleneck {
		h.Since = o.onset
		for _, id := range s.cause.Explains {
			if _, ok := o.onsets[id]; ok {
				h.Consequences = append(h.Consequences, id)
			}
		}
		h.Actions = e.actions(o, s.cause, args, trigger)
	} else {
		h.Since = o.onset
		for _, l := range s.lines {
			if i, ok := o.onsets[l.p.Signal]; ok && l.weight > 0 {
				h.Since = o.time(i)
				break
			}
		}
	}
	return h
}

// String lists the changed fields: "num_gpu_blocks 2048 → 500".
func (c configChange) String() string {
	parts := make([]string, 0, len(c.changed))
	for _, f := range c.changed {
		parts = append(parts, f.field+" "+cmp.Or(f.before, "–")+" → "+cmp.Or(f.after, "–"))
	}
	return strings.Join(parts, ", ")
}

// where names the replicas that a cause is about; a place without an instance means all of them.
func (o *observations) where(p *plan, c kb.Cause) []Place {
	whole := []Place{{Model: p.scope.Model}}
	if o.only != nil && c.Axis == kb.Bottleneck {
		return placesOf([]replica{*o.only}, p.scope.Model)
	}
	if len(o.replicas) == 1 && c.Where != "" {
		return placesOf(o.replicas, p.scope.Model)
	}
	rs := o.deviating(c)
	if len(rs) == 0 || c.Place != "replicas" && len(rs) == len(o.replicas) {
		return whole
	}
	return placesOf(rs, p.scope.Model)
}

// finite rounds to six significant digits, so that the last bits of a sum do not show, and is nil for unknown values.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	if v != 0 {
		scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
		if !math.IsInf(scale, 0) && scale != 0 {
			v = math.Round(v*scale) / scale
		}
	}
	return &v
}

func round3(v float64) float64 { return math.Round(v*1000) / 1000 }
