package triage

import (
	"context"
	"math"
	"slices"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// spared says that a signal which only stands in for others is not needed: all of them have names of their own here.
func (e *Engine) spared(p *plan, s kb.Signal) bool {
	if len(s.SpareFor) == 0 {
		return false
	}
	return p.discovery != nil || !slices.ContainsFunc(s.SpareFor, func(id string) bool {
		other, ok := e.kb.Signal(id)
		return ok && len(p.found(other.Spellings())) == 0
	})
}

// askSpares asks for the signals that only stand in for others whose names exist, now that some of those were lost.
func (e *Engine) askSpares(ctx context.Context, log *queryLog, p *plan, o *observations) {
	for _, s := range e.kb.Signals {
		lost := slices.ContainsFunc(s.SpareFor, func(id string) bool { return o.get(id).lost() })
		if lost && p.discovery == nil && ctx.Err() == nil && o.get(s.ID).state == Absent && e.room(log, p, o) {
			o.all[s.ID] = e.ask(ctx, log, p, s)
		}
	}
}

// substitute computes the signals that could not be read from others that could, as the catalogue says. It goes through
// the catalogue twice, because one stand-in may rest on another.
func (e *Engine) substitute(o *observations) {
	for range 2 {
		for _, s := range e.kb.Signals {
			if s.Ratio == nil && len(s.Instead) > 0 {
				e.standIn(o, s)
			}
		}
	}
}

// standIn computes one signal from others when it is not there.
func (e *Engine) standIn(o *observations, s kb.Signal) {
	x := o.get(s.ID)
	if x.state == Present {
		return
	}
	for _, alt := range s.Instead {
		parts := make([]*observation, 0, len(alt.Plus)+len(alt.Minus))
		for _, id := range alt.Operands() {
			parts = append(parts, o.get(id))
		}
		if worseState(parts...) != Present || slices.ContainsFunc(parts, func(y *observation) bool { return y.values == nil }) {
			continue
		}
		y := &observation{sig: s, state: Present, expr: sumExpr(o, alt), instead: alt.Operands(), estimate: alt.Estimate}
		y.estimate = y.estimate || slices.ContainsFunc(parts, func(z *observation) bool { return z.estimate })
		y.values = combine(alt, o.grid.points(), o.series)
		if len(present(y.values)) == 0 {
			continue
		}
		o.all[s.ID] = y
		return
	}
}

// combine adds and takes away series, point by point; what should be a level or a rate is never below zero.
func combine(alt kb.Instead, n int, series func(string) []float64) []float64 {
	out := newSeries(n)
	per := 1.0
	if q := alt.Per; q != nil {
		den := promq.Mean(series(q.Den))
		if per = promq.Mean(series(q.Num)) / den; !(per > 0) {
			return out
		}
	}
	for i := range out {
		v := 0.0
		for _, id := range alt.Plus {
			v += at(series(id), i)
		}
		for _, id := range alt.Minus {
			v -= at(series(id), i)
		}
		out[i] = math.Max(v, 0) / per // NaN stays NaN.
	}
	return out
}

func sumExpr(o *observations, alt kb.Instead) string {
	out := ""
	for i, id := range slices.Concat(alt.Plus, alt.Minus) {
		switch {
		case i == 0:
		case i < len(alt.Plus):
			out += " + "
		default:
			out += " - "
		}
		out += "(" + o.get(id).expr + ")"
	}
	if alt.Per != nil {
		out = "(" + out + ") / (" + o.get(alt.Per.Num).expr + " / " + o.get(alt.Per.Den).expr + ")"
	}
	return out
}

// holdRunning says how many requests a server holds that stopped making tokens, where no gauge does: what decoded before,
// plus those that started and less those that finished until then. A server that fell idle comes out at none, and
// then nothing is said.
func (o *observations) holdRunning(p *plan) {
	x := o.get("running")
	first, finished := o.series("first_tokens"), o.series("finished")
	stop, ok := stallStart(o)
	k := o.points(p.rate)
	from := stop - 2*k
	if !ok || !x.estimate || x.state != Present || from < 0 || first == nil || finished == nil || math.IsNaN(at(x.values, from)) {
		return
	}
	held := at(x.values, from)
	for i := from + 1; i < stop; i++ {
		held += (orZero(at(first, i)) - orZero(at(finished, i))) * o.grid.step.Seconds()
	}
	if held < max(1, at(x.values, from)/2) {
		return
	}
	for i := stop; i < o.grid.points(); i++ {
		x.values[i] = held
	}
}

// substituteReplicas does the same for each replica.
func (e *Engine) substituteReplicas(o *observations) {
	for range 2 {
		for _, s := range e.kb.Signals {
			if !s.Replica || o.get(s.ID).instead == nil {
				continue
			}
			for _, alt := range s.Instead {
				if !slices.Equal(alt.Operands(), o.get(s.ID).instead) {
					continue
				}
				for _, r := range o.replicas {
					if r.series(s.ID) == nil && !slices.ContainsFunc(alt.Operands(), func(id string) bool { return r.series(id) == nil }) {
						r.values[s.ID] = combine(alt, o.grid.points(), r.series)
					}
				}
			}
		}
	}
}

// ratioOf is how a ratio is computed here: the first way in the catalogue whose signals were measured, else the first
// whose signals are there, and whether it is only an estimate.
func (o *observations) ratioOf(s kb.Signal) (kb.RatioOf, bool) {
	ways := slices.Concat([]kb.Instead{{Ratio: s.Ratio}}, s.Instead)
	for _, measured := range []bool{true, false} {
		for _, way := range ways {
			num, den := o.get(way.Ratio.Num), o.get(way.Ratio.Den)
			estimate := way.Estimate || num.estimate || den.estimate
			if num.values != nil && den.values != nil && (!measured || !estimate) {
				return *way.Ratio, estimate
			}
		}
	}
	return *s.Ratio, false
}
