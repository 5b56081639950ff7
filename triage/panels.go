package triage

import (
	"net/url"
	"regexp"
	"slices"
	"time"

	"vllm-triage/triage/kb"
)

// panels picks the small charts: what alerted, the best evidence and the trigger, and where there are fewer, what users feel.
func (e *Engine) panels(p *plan, o *observations, w *weighed) []Panel {
	const most = 4
	var out []Panel
	add := func(id, role string) {
		x := o.get(id)
		if len(out) >= most || x.state != Present || x.values == nil {
			return
		}
		for _, have := range out {
			if have.Signal == id {
				return
			}
		}
		out = append(out, newPanel(o, x, role))
	}
	if id := e.alerted(p, o, w); id != "" {
		add(id, "alert")
	}
	if len(w.bottlenecks) > 0 {
		for i, id := range w.bottlenecks[0].cause.Panels {
			if i < 2 {
				add(id, "evidence")
			}
		}
	}
	if len(w.triggers) > 0 && w.triggers[0].cause.Kind != kb.NoTrigger {
		for i, id := range w.triggers[0].cause.Panels {
			if i < 1 {
				add(id, "trigger")
			}
		}
	}
	for _, id := range []string{"waiting", "ttft", "itl", "running", "generation_tokens"} {
		add(id, "alert")
	}
	return out
}

// alerted is the signal that the first alert with a known expression watches: one that the expression names and that has
// values here; of several, one that the cause shows too. It is empty when that cannot be told.
func (e *Engine) alerted(p *plan, o *observations, w *weighed) string {
	alerts := slices.SortedStableFunc(slices.Values(p.in.Alerts), func(a, b Alert) int { return a.StartsAt.Compare(b.StartsAt) })
	for _, watched := range expressionsOf(alerts) {
		first := ""
		for _, s := range e.kb.Signals {
			if !watches(watched, s) {
				continue
			}
			if x := o.get(s.ID); x.state != Present || x.values == nil {
				continue
			}
			if len(w.bottlenecks) > 0 && slices.Contains(w.bottlenecks[0].cause.Panels, s.ID) {
				return s.ID
			}
			if first == "" {
				first = s.ID
			}
		}
		if first != "" {
			return first
		}
	}
	return ""
}

var metricPattern = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)

// watches says that an alert's expression, taken apart, names one of the metrics of a signal.
func watches(watched map[string]bool, s kb.Signal) bool {
	return slices.ContainsFunc(s.Spellings(), func(name string) bool { return watched[name] })
}

// expressionsOf are the words of the alerts' expressions that may be names of metrics, each expression once, in the order
// of the alerts: a rule fires for thousands of replicas. Prometheus puts the expression into the link to where an alert
// comes from.
func expressionsOf(alerts []Alert) []map[string]bool {
	var out []map[string]bool
	seen := map[string]bool{}
	for _, a := range alerts {
		if seen[a.GeneratorURL] {
			continue
		}
		seen[a.GeneratorURL] = true
		u, err := url.Parse(a.GeneratorURL)
		if err != nil {
			continue
		}
		expr := u.Query().Get("g0.expr")
		if expr == "" || seen[expr] {
			continue
		}
		seen[expr] = true
		words := map[string]bool{}
		for _, name := range metricPattern.FindAllString(expr, -1) {
			words[name] = true
		}
		out = append(out, words)
	}
	return out
}

// newPanel thins a series to what a small chart can show.
func newPanel(o *observations, x *observation, role string) Panel {
	const most = 150
	stride := max((len(x.values)+most-1)/most, 1)
	pl := Panel{
		Signal: x.sig.ID, Title: x.sig.Title, Unit: x.sig.Unit, Role: role,
		Start: o.grid.start, StepMS: (o.grid.step * time.Duration(stride)).Milliseconds(), Values: []*float64{},
	}
	for i := 0; i < len(x.values); i += stride {
		pl.Values = append(pl.Values, finite(x.values[i]))
	}
	return pl
}
