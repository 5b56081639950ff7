package triage

import (
	"math"

	"vllm-triage/triage/kb"
)

// flipMargin is by how much a rival must come close, in log-odds, when its unread evidence is taken as favourable.
const flipMargin = 0.5

// flip asks whether evidence that could not be read, because a query failed or a source went stale, could turn the
// ranking: each rival is given all of its unread evidence, the first choice loses by its own. It returns the signal that
// would decide. Metrics that a version does not export are no gap: they are the same for everybody and always.
func (w *weighed) flip(o *observations) *observation {
	if len(w.bottlenecks) == 0 {
		return nil
	}
	top := w.bottlenecks[0]
	pessimistic, topGap := top.score, (*observation)(nil)
	for _, l := range top.lines {
		if x, unread := o.unread(l); unread {
			pessimistic += l.p.Against
			topGap = firstObservation(topGap, x)
		}
	}
	for _, s := range w.bottlenecks[1:] {
		if s.refuted != nil {
			continue
		}
		best, gap := 0.0, topGap
		if s.coverage > 0 {
			best = s.prior
		}
		for _, l := range s.lines {
			x, unread := o.unread(l)
			switch {
			case unread:
				best += l.p.For
				gap = firstObservation(gap, x)
			case l.weight > 0 && s.coverage > 0:
				best += l.weight / s.coverage
			default:
				best += l.weight
			}
		}
		if gap != nil && best >= pessimistic-flipMargin {
			return gap
		}
	}
	for _, s := range w.unchecked {
		x := o.get(s.missing)
		lost := x.state == Failed || x.state == Stale || x.state == Absent && x.sig.Queried() && !x.sig.Optional
		if s.cause.Axis == top.cause.Axis && s.cause.Kind != kb.Quiet && lost {
			return x // Not even asked: nobody knows whether it fits better.
		}
	}
	return nil
}

// unread says whether a line is unknown because its signal could not be read.
func (o *observations) unread(l line) (*observation, bool) {
	if !math.IsNaN(l.value) {
		return nil, false
	}
	x := o.get(l.p.Signal)
	return x, x.state == Failed || x.state == Stale
}

func firstObservation(a, b *observation) *observation {
	if a != nil {
		return a
	}
	return b
}
