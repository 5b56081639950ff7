package triage

import (
	"math"
	"slices"

	"vllm-triage/triage/kb"
)

// hidden is a rival that missing data may hide.
type hidden struct {
	rival       kb.Cause
	signal      *observation // What is missing of its evidence.
	probability float64      // What the rival may have at most.
}

// why says for people what is wrong with the signal.
func (h hidden) why() string {
	if h.signal.state == Present {
		return "it is only an estimate"
	}
	return h.signal.why
}

// bound caps each bottleneck by what it would have if evidence that this server should export, and that is missing, spoke
// for its rivals, and against it unless it is the first: data that is gone makes nothing more probable. (What the first
// loses by its own gaps is in its coverage.) What the caps take is left to "something else".
func (w *weighed) bound(o *observations) {
	if len(w.bottlenecks) == 0 || w.bottlenecks[0].supportedBy(aboutGaps) || math.IsNaN(lastOf(o.series("serving"))) {
		return // That data is missing is then what was found, or nothing serves that could export any.
	}
	rivals, best := w.favoured(o)
	if rivals == nil {
		return
	}
	most := 1.0
	for i := range w.bottlenecks {
		s := &w.bottlenecks[i]
		c := &weighed{bottlenecks: slices.Clone(rivals), triggers: slices.Clone(w.triggers)}
		c.bottlenecks[i].score = s.score
		if score, gap := s.completed(o, -1); gap != nil && i > 0 {
			c.bottlenecks[i].score = min(score, s.score)
		}
		c.compete()
		most = min(most, c.of(s.cause.ID))
		if i == 0 && best != nil && most < min(s.probability, sure) {
			best.probability = c.of(best.rival.ID)
			w.hidden = best
		}
		w.residual += max(s.probability-most, 0)
		s.probability = min(s.probability, most)
		most = s.probability // The order stays.
	}
}

// favoured are the bottlenecks with all of their missing evidence in their favour, in their order, and after them those
// that lack a signal which they need; nil when nothing is missing. best is the one after the first that then scores most.
func (w *weighed) favoured(o *observations) (rivals []scored, best *hidden) {
	missing, most := false, math.Inf(-1)
	for i, s := range slices.Concat(w.bottlenecks, w.unchecked) {
		checked := i < len(w.bottlenecks)
		if !checked && (s.cause.Axis != kb.Bottleneck || o.gap(s.missing) == nil) {
			continue
		}
		score, gap := s.completed(o, 1)
		found := gap != nil && !s.about(aboutGaps)
		if found {
			missing, s.score = true, max(score, s.score)
			if i > 0 && s.score > most {
				best, most = &hidden{rival: s.cause, signal: gap}, s.score
			}
		}
		if checked || found {
			rivals = append(rivals, s)
		}
	}
	if !missing {
		return nil, nil
	}
	return rivals, best
}

// of is the probability of a bottleneck, 0 when it is not among them.
func (w *weighed) of(id string) float64 {
	for _, s := range w.bottlenecks {
		if s.cause.ID == id {
			return s.probability
		}
	}
	return 0
}

// about says whether the cause asks one of these signals.
func (s scored) about(signals []string) bool {
	return slices.ContainsFunc(s.lines, func(l line) bool { return slices.Contains(signals, l.p.Signal) })
}

// supportedBy says whether one of these signals speaks for the cause.
func (s scored) supportedBy(signals []string) bool {
	return slices.ContainsFunc(s.lines, func(l line) bool { return l.weight > 0 && slices.Contains(signals, l.p.Signal) })
}

// completed is what a cause's score would be if all of its missing evidence spoke for it (sign 1) or against it (-1), and
// estimates in its place did not say the opposite. gap is the first signal missing, nil when there is none.
func (s scored) completed(o *observations, sign float64) (score float64, gap *observation) {
	if s.refuted != nil {
		return s.score, nil
	}
	lines := slices.Clone(s.lines)
	for i := range lines {
		l := &lines[i]
		l.weight = 0
		if l.p.Signal == "" {
			continue // No evidence: what the cap or a more basic cause took.
		}
		v := l.value
		if unknown := math.IsNaN(v); unknown || v*sign < 0 {
			if x := o.gapIn(l.p); x != nil && o.mayApply(l.p) {
				gap = firstObservation(gap, x)
				if v = 0; unknown {
					v = sign
				}
			}
		}
		if !math.IsNaN(v) {
			l.weight = interpolate(v, l.p.Against, l.p.For)
		}
	}
	discountFamilies(lines)
	score = s.prior
	for _, l := range lines {
		score += l.weight
	}
	return min(max(score, -maxScore), maxScore), gap
}

// mayApply says whether a predicate applies as far as its guards are measured.
func (o *observations) mayApply(p kb.Predicate) bool {
	return !slices.ContainsFunc(p.When, func(c kb.Condition) bool {
		v := o.feature(c.Signal, c.Feature)
		return !math.IsNaN(v) && !within(v, c) && o.gap(c.Signal) == nil
	})
}

// gapIn returns what is missing of the signals that a predicate reads, nil when nothing is.
func (o *observations) gapIn(p kb.Predicate) *observation {
	x := o.gap(p.Signal)
	for _, t := range p.All {
		x = firstObservation(x, o.gap(t.Signal))
	}
	for _, c := range p.When {
		x = firstObservation(x, o.gap(c.Signal))
	}
	return x
}

// gap returns what is missing of a signal that this server should export: it could not be read, has no samples, or is
// estimated from others. It is nil for what only some servers have: nobody misses that.
func (o *observations) gap(id string) *observation {
	x := o.get(id)
	switch {
	case x.whole:
		return nil
	case x.state == Failed || x.state == Stale:
		return x
	case x.sig.Queried():
		optional := x.sig.Optional && !slices.ContainsFunc(x.sig.Names, func(n string) bool { return o.due[n] })
		if x.state == Absent && !optional && !x.sig.Neighbour() || x.state == Present && x.estimate {
			return x
		}
		return nil
	case x.sig.Pool && o.pool.tokens == 0:
		return x
	}
	parts := slices.Concat(x.sig.Needs, x.sig.BetterWith)
	if r := x.sig.Ratio; r != nil {
		parts = append(parts, r.Num, r.Den)
	}
	for _, part := range parts {
		if y := o.gap(part); y != nil {
			return y
		}
	}
	return nil
}
