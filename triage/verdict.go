package triage

import (
	"cmp"
	"math"

	"vllm-triage/triage/kb"
)

const (
	// sure and likely are the probabilities from which a cause is named with and without reservation.
	sure, likely = 0.6, 0.4
	// mostOfCalm is the share of its key evidence that must be known for calm.
	mostOfCalm = 0.66
	// mostKnown is the share of its key evidence that must be known for a cause that is only likely.
	mostKnown = 0.8
)

// verdict decides how the report ends.
func (e *Engine) verdict(p *plan, o *observations, w *weighed) (Verdict, *Blocked) {
	if len(w.bottlenecks) == 0 || p.unseen(o) {
		why := text("blocked.no_data", "no vLLM metrics for {scope} in the time looked at",
			word("scope", cmp.Or(p.scope.Key(), "any model")))
		if p.discovery != nil {
			why = text("blocked.prometheus", "Prometheus did not answer: {why}", word("why", failure(p.discovery)))
		}
		return Inconclusive, &Blocked{Text: why, Query: e.selector(p.anchor, p.scope)}
	}
	top := w.bottlenecks[0]
	if w.tooFew {
		why := text("blocked.too_few", "only {points} samples since the onset, one every {scrape}: too few to call it calm; ask again soon",
			number("points", float64(o.window.len()), Count), number("scrape", p.scrape.Seconds(), Seconds))
		return Inconclusive, &Blocked{Text: why, Query: o.get("serving").expr}
	}
	if w.noBefore {
		return Inconclusive, &Blocked{Text: text("blocked.no_baseline",
			"{first} fits best, but there is no data from before to compare with: {why}",
			word("first", top.cause.Title), word("why", cmp.Or(o.noBase, "too little data"))), Query: keyQuery(o, top)}
	}
	quiet := top.cause.Kind == kb.Quiet
	// A server that makes no token is calm only when it is known that nobody waits for one.
	if quiet && top.probability >= likely && top.coverage >= mostOfCalm && !top.contradicted() && o.get("stalled").state == Present {
		return NoBottleneck, nil
	}
	rival, next := scored{}, 0.0
	if len(w.bottlenecks) > 1 {
		rival, next = w.bottlenecks[1], w.bottlenecks[1].probability
	}
	if w.hidden != nil {
		next = max(next, w.hidden.probability)
	}
	switch {
	case quiet: // Calm that most of its evidence does not support is no finding.
	case top.probability >= sure && top.families >= 1:
		return CauseFound, nil
	case top.probability >= likely && top.probability >= 2*next && top.coverage >= mostKnown && !top.contradicted():
		return CauseFound, nil
	}
	b := &Blocked{}
	if l := top.contradiction(); quiet && l != nil && l.p.SayAgainst != "" {
		b.Text = o.say("contradicted."+top.cause.ID+"."+l.p.ID, "{first} fits best, but "+l.p.SayAgainst, l.p, word("first", top.cause.Title))
		b.Query = o.get(l.p.Signal).expr
		return Inconclusive, b
	}
	if h := w.hidden; h != nil && h.probability >= rival.probability {
		b.Text = text("blocked.hidden", "{first} fits best, but without {signal} ({why}) {second} cannot be ruled out",
			word("first", top.cause.Title), word("signal", h.signal.sig.Title), word("why", h.why()), word("second", h.rival.Title))
		b.Query = queryFor(e, p, h.signal)
		return Inconclusive, b
	}
	if x, ok := decider(o, top, rival); ok {
		b.Text = text("blocked.rivals_missing", "{first} and {second} are about as likely; {signal} would decide, and it is {state}",
			word("first", top.cause.Title), word("second", rival.cause.Title), word("signal", x.sig.Title), word("state", string(x.state)))
		b.Query = queryFor(e, p, x)
		return Inconclusive, b
	}
	if quiet || w.residual >= top.probability {
		b.Text = text("blocked.unexplained", "what is seen does not fit any known cause well; the best fit is {first}",
			word("first", top.cause.Title))
	} else {
		b.Text = text("blocked.rivals", "{first} and {second} are about as likely",
			word("first", top.cause.Title), word("second", rival.cause.Title))
	}
	b.Query = keyQuery(o, top)
	return Inconclusive, b
}

// keyQuery is the PromQL of the first key evidence of a cause.
func keyQuery(o *observations, s scored) string {
	for _, l := range s.lines {
		if l.p.Key && l.p.Signal != "" {
			return o.get(l.p.Signal).expr
		}
	}
	return ""
}

// contradicted says that evidence speaks clearly against a cause that other evidence put first: key evidence, or any that
// is strong.
func (s scored) contradicted() bool { return s.contradiction() != nil }

// contradiction is the evidence that contradicts a cause most clearly; nil when none does.
func (s scored) contradiction() *line {
	return s.against(func(l *line) bool { return l.p.Key && l.weight <= -1.5 || l.p.Signal != "" && l.weight <= -3 })
}

// against is the evidence of a kind that speaks most against a cause, the first of equals; nil when none does.
func (s scored) against(kind func(*line) bool) *line {
	var worst *line
	for i := range s.lines {
		if l := &s.lines[i]; l.weight < 0 && kind(l) && (worst == nil || l.weight < worst.weight) {
			worst = l
		}
	}
	return worst
}

// decider finds the unknown evidence that separates two causes best.
func decider(o *observations, a, b scored) (*observation, bool) {
	var best *observation
	most := 0.0
	for _, s := range []scored{a, b} {
		for _, l := range s.lines {
			x := o.get(l.p.Signal)
			if math.IsNaN(l.value) && x.state != Present && l.p.For-l.p.Against > most {
				best, most = x, l.p.For-l.p.Against
			}
		}
	}
	return best, best != nil
}

func queryFor(e *Engine, p *plan, x *observation) string {
	if x.expr != "" {
		return x.expr
	}
	for _, n := range x.sig.Names {
		return e.selector(n, p.scope)
	}
	return x.sig.ID
}
