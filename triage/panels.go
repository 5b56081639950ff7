package triage

import (
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
	for _, watched := range watchedBy(alerts) {
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
