package web

import (
	"math"
	"slices"
	"time"

	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/promq"
	"vllm-triage/triage"
	"vllm-triage/triage/kb/runbook"
)

// NewFilling collects what a runbook can show of an incident: the numbers of its evidence, its place and its time. The
// same page opened by somebody else shows the same numbers: they are the report's, not the present ones.
func NewFilling(r triage.Report, language string, zone *time.Location) *runbook.Filling {
	f := format.New(language, zone, r.GeneratedAt)
	m := notify.NewMessage(r, notify.Options{Language: language, Location: zone})
	in := &runbook.Filling{
		Numbers: map[string]map[string]string{}, Scope: m.Subject, Where: m.Where, Matchers: matchers(r.Incident.Scope),
	}
	since := r.Incident.Onset
	if len(r.Bottlenecks) > 0 && !r.Bottlenecks[0].Since.IsZero() {
		since = r.Bottlenecks[0].Since
	}
	if !since.IsZero() {
		in.Since = f.Clock(since)
	}
	if in.Where == "" {
		in.Where = in.Scope
	}
	put := func(signal, when string, v *float64, unit triage.Unit) {
		if v == nil || signal == "" {
			return
		}
		if in.Numbers[signal] == nil {
			in.Numbers[signal] = map[string]string{}
		}
		if _, taken := in.Numbers[signal][when]; !taken {
			in.Numbers[signal][when] = f.Value(*v, unit)
		}
	}
	for _, hs := range [][]triage.Hypothesis{r.Bottlenecks, r.Triggers} {
		for _, h := range hs {
			for _, e := range h.Evidence {
				put(e.Signal, "before", e.Before, e.Unit)
				put(e.Signal, "during", e.During, e.Unit)
			}
		}
	}
	// Numbers that advice was computed from, such as the size of the pool. They are arguments by the signal's name.
	for _, hs := range [][]triage.Hypothesis{r.Bottlenecks, r.Triggers} {
		for _, h := range hs {
			for _, a := range h.Actions {
				for name, arg := range a.Args {
					put(name, "during", arg.Number, arg.Unit)
				}
			}
		}
	}
	for _, x := range r.Panels {
		put(x.Signal, "during", last(x.Values), x.Unit)
		if r.Incident.Baseline != nil {
			put(x.Signal, "before", level(x, *r.Incident.Baseline), x.Unit)
		}
	}
	for id, other := range stands {
		if in.Numbers[id] == nil && in.Numbers[other] != nil {
			in.Numbers[id] = in.Numbers[other]
		}
	}
	return in
}

// stands says which signal stands in for one that runbooks show when a report has only the other. With one replica the
// two are the same; with several the fullest replica is the one that the reader must look at.
var stands = map[string]string{"kv_usage": "kv_usage_max"}

// level is the median of a panel's values within a span; nil without any.
func level(p triage.Panel, s triage.Span) *float64 {
	var values []float64
	for i, v := range p.Values {
		at := p.Start.Add(time.Duration(i) * time.Duration(p.StepMS) * time.Millisecond)
		if v != nil && !math.IsNaN(*v) && !at.Before(s.Start) && !at.After(s.End) {
			values = append(values, *v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	return &values[len(values)/2]
}

// matchers are the scope as PromQL matchers, without braces.
func matchers(s triage.Scope) string {
	out := ""
	for _, x := range []struct{ name, value string }{
		{"model_name", s.Model},
		{"namespace", s.Namespace},
		{"cluster", s.Cluster},
		{"job", s.Job},
		{"service", s.Service},
		{"instance", s.Instance},
		{"pod", s.Pod},
	} {
		if x.value == "" {
			continue
		}
		if out != "" {
			out += ","
		}
		out += promq.Equal(x.name, x.value).String()
	}
	return out
}
