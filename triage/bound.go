package triage

import (
	"cmp"
	"math"
	"slices"

	"vllm-triage/triage/kb"
)

// possible is what doubt alone leaves to the first choice: with less than that a report commits itself to nothing anyway, and
// what fits best is not improbable because it cannot be checked.
const possible = 0.35

// noticeable is the probability below which nobody asks what a cause would have at least.
const noticeable = 0.001

// bound caps each bottleneck by what it would have if evidence that this server should export, and that is missing, spoke
// for the rival that gains most by it, and against it unless it is the first: data that is gone makes nothing more
// probable. (Of the first, what could not be read speaks against it too, as does every gap of calm; what it loses by what
// is not exported is in its coverage, and how good its estimates are is doubted.) What the caps take is left to "something
// else".
func (w *weighed) bound(o *observations) {
	if len(w.bottlenecks) == 0 || w.bottlenecks[0].supportedBy(aboutGaps) || o.get("serving").state != Failed && math.IsNaN(lastOf(o.series("serving"))) {
		return // That data is missing is then what was found, or nothing serves that could export any.
	}
	rivals := w.favoured(o)
	caps := make([]float64, len(w.bottlenecks))
	for i, s := range w.bottlenecks {
		caps[i] = s.probability
		if i > 0 && s.probability < noticeable {
			continue
		}
		for _, h := range w.hiding(o, i, rivals) {
			if h.left < caps[i] {
				caps[i] = h.left
				if i == 0 && h.left < sure {
					w.hidden = &h
				}
			}
		}
		if i == 0 {
			caps[0] = max(caps[0], min(s.probability, possible))
		}
	}
	for i := range w.bottlenecks {
		s := &w.bottlenecks[i]
		if i > 0 {
			caps[i] = min(caps[i], w.bottlenecks[i-1].probability) // The order stays.
		}
		w.residual += s.probability - caps[i]
		s.probability = caps[i]
	}
}

// hidden is a rival that missing data may hide.
type hidden struct {
	rival       kb.Cause
	signal      *observation // What is missing.
	probability float64      // What the rival then has.
	left        float64      // What is then left to the cause that it competes with.
}

// why says for people what is wrong with the signal.
func (h hidden) why() string {
	if h.signal.state == Present {
		return "it is only an estimate"
	}
	return h.signal.why
}

// hiding tells for each rival what it may have, and what is then left to a bottleneck at its worst.
func (w *weighed) hiding(o *observations, i int, rivals []favoured) []hidden {
	s := w.bottlenecks[i]
	with := against
	if i == 0 && s.cause.Kind != kb.Quiet {
		with = doubted
	}
	if score, gap := s.completed(o, with); gap != nil && score < s.score {
		s.score = score
		if next, ok := w.nextTo(s, rivals); ok {
			rivals = append(slices.Clip(rivals), favoured{next.unexplained(), gap}) // It gains by what the other loses.
		}
	}
	var out []hidden
	for _, r := range rivals {
		if r.cause.ID == s.cause.ID {
			continue
		}
		c := &weighed{bottlenecks: slices.Clone(w.bottlenecks), triggers: slices.Clone(w.triggers)}
		c.put(s)
		c.put(r.scored)
		c.compete()
		p := c.probabilities()
		r.explain(p)
		c.put(r.scored)
		if (r.missing != "" || r.gap.lost()) && slices.Contains(s.cause.Parents, r.cause.ID) {
			x := s.unexplained() // It explains more now that it is more probable.
			x.explain(p)
			c.put(x)
		}
		c.compete()
		p = c.probabilities()
		out = append(out, hidden{rival: r.cause, signal: r.gap, probability: p[r.cause.ID], left: p[s.cause.ID]})
	}
	return out
}

// nextTo is the most probable other bottleneck that is not among the rivals.
func (w *weighed) nextTo(s scored, rivals []favoured) (scored, bool) {
	i := slices.IndexFunc(w.bottlenecks, func(x scored) bool {
		return x.cause.ID != s.cause.ID && !slices.ContainsFunc(rivals, func(r favoured) bool { return r.cause.ID == x.cause.ID })
	})
	if i < 0 {
		return scored{}, false
	}
	return w.bottlenecks[i], true
}

// put puts a bottleneck in the place of itself, or adds it.
func (w *weighed) put(s scored) {
	if i := slices.IndexFunc(w.bottlenecks, func(x scored) bool { return x.cause.ID == s.cause.ID }); i >= 0 {
		w.bottlenecks[i] = s
		return
	}
	w.bottlenecks = append(w.bottlenecks, s)
}

// favoured is a bottleneck with all of its missing evidence in its favour.
type favoured struct {
	scored

	gap *observation // The first that is missing.
}

// favoured are the bottlenecks with missing evidence, those too that lack a signal which they need.
func (w *weighed) favoured(o *observations) []favoured {
	var out []favoured
	for i, s := range slices.Concat(w.bottlenecks, w.unchecked) {
		checked := i < len(w.bottlenecks)
		if !checked && (s.cause.Axis != kb.Bottleneck || !o.onlyGapsIn(s.cause.Needs)) || s.about(aboutGaps) {
			continue
		}
		s = s.unexplained()
		with := favourable
		if !checked {
			with = hoped
		}
		if score, gap := s.completed(o, with); gap != nil {
			s.score = max(score, s.score)
			out = append(out, favoured{s, gap})
		}
	}
	return out
}

// about says whether the cause asks one of these signals.
func (s scored) about(signals []string) bool {
	return slices.ContainsFunc(s.lines, func(l line) bool { return slices.Contains(signals, l.p.Signal) })
}

// supportedBy says whether one of these signals speaks for the cause.
func (s scored) supportedBy(signals []string) bool {
	return slices.ContainsFunc(s.lines, func(l line) bool { return l.weight > 0 && slices.Contains(signals, l.p.Signal) })
}

// favourable, hoped, against and doubted say what a line may come to whose signal x is missing, and unknown (NaN) or
// estimated as v: at best for its cause; at best, but with estimates as they are, for a cause that nothing yet speaks for;
// at worst; and for the first choice, of which coverage tells what is not exported: at worst when it was lost.
func favourable(v float64, _ *observation) float64 {
	if math.IsNaN(v) {
		return 1
	}
	return min(v+1, 1)
}

func hoped(v float64, _ *observation) float64 {
	if math.IsNaN(v) {
		return 1
	}
	return v
}

func against(v float64, _ *observation) float64 {
	if math.IsNaN(v) {
		return -1
	}
	return max(v-1, -1)
}

func doubted(v float64, x *observation) float64 {
	if math.IsNaN(v) && !x.lost() {
		return v
	}
	return against(v, x)
}

// completed is what a cause's score would be if each line with a gap came to what with says. gap is the first signal
// missing, nil when there is none.
func (s scored) completed(o *observations, with func(v float64, x *observation) float64) (score float64, gap *observation) {
	if o.refutes(s.cause) {
		return s.score, nil
	}
	lines := slices.Clone(s.lines)
	for i := range lines {
		l := &lines[i]
		l.weight = 0
		if l.p.ID == explainedAway {
			l.weight = s.lines[i].weight
			continue
		}
		if l.p.Signal == "" {
			continue // What the cap took: it is taken anew.
		}
		v := l.value
		if x := o.gapIn(l.p); x != nil && o.mayApply(l.p) {
			if w := o.atMost(l.p, with(v, x)); w != v && !(math.IsNaN(w) && math.IsNaN(v)) {
				v, gap = w, cmp.Or(gap, x)
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

// atMost is what a line can come to when those of its conjuncts that were measured hold it down.
func (o *observations) atMost(p kb.Predicate, v float64) float64 {
	for _, t := range append([]kb.Test{p.Test}, p.All...) {
		if x := o.value(t); !math.IsNaN(x) && o.gap(t.Signal) == nil {
			v = min(v, x) // Of an unknown line nothing is known still.
		}
	}
	return v
}

// onlyGapsIn says whether everything that is not there of some signals is missed.
func (o *observations) onlyGapsIn(ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return o.get(id).state != Present && o.gap(id) == nil })
}
