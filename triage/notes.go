package triage

import (
	"cmp"
	"strings"
	"time"
)

// notes are facts about the data that a reader should know.
func (e *Engine) notes(p *plan, o *observations) []Text {
	var out []Text
	if o.baseline.len() == 0 {
		out = append(out, text("note.no_baseline", "no usable baseline: {why}; evidence that compares with before is unknown",
			word("why", cmp.Or(o.noBase, "there is too little data before the onset"))))
	}
	if !p.edge.IsZero() && p.end.Sub(p.edge) > 2*time.Minute {
		out = append(out, text("note.stale", "the newest sample is {age} old: Prometheus has no fresh data of this scope",
			number("age", p.end.Sub(p.edge).Seconds(), Seconds)))
	}
	if o.absence.stopped {
		out = append(out, text("note.stopped", "Prometheus has no fresh sample of any target: it stopped scraping, lags behind or has another "+
			"clock, so what is missing says nothing about vLLM"))
	}
	if o.only != nil {
		out = append(out, text("note.focus", "{replica} stands out from its peers and was judged by its own figures",
			word("replica", firstOf(o.only.place.Instance, o.only.place.Pod))))
	}
	if p.failed > 0 {
		out = append(out, text("note.failed", "{failed} of {asked} queries had no answer: what they would have shown is unknown",
			number("failed", float64(p.failed), Count), number("asked", float64(p.asked), Count)))
	}
	if p.partial > 0 {
		out = append(out, text("note.partial", "{partial} of {asked} answers may be incomplete: {warning}",
			number("partial", float64(p.partial), Count), number("asked", float64(p.asked), Count),
			word("warning", strings.Join(p.warnings[:min(len(p.warnings), 2)], "; "))))
	}
	return out
}
