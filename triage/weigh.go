package triage

import (
	"cmp"
	"math"
	"slices"
	"time"

	"vllm-triage/triage/kb"
)

const (
	// familyDiscount is what each further predicate of a family still counts: facts that come from one mechanism are one
	// fact told several times (reference: ranking §3.6).
	familyDiscount = 0.4
	// maxScore caps a cause's log-odds: no finite amount of evidence is certainty.
	maxScore = 6
	// leak is the score of "something else": what no cause of the knowledge base explains.
	leak = 0.5
	// mostSure caps every probability: no recorded data set supports more.
	mostSure = 0.97
	// reserved caps what must not be named without reservation.
	reserved = sure - 0.01
	// undecided caps the first choice when too little was seen to choose.
	undecided = 0.55
	// explained is what a likely parent takes from the score of its consequence.
	explained = 2.0
	// shortBaseline is the length of a baseline below which nothing is sure: what was before may be the fault's own begin.
	shortBaseline = 75 * time.Second
	// slowScrape is the scrape interval from which a young incident has only a few points.
	slowScrape = 30 * time.Second
	// explainedAway is the predicate of the line by which a score is lowered by a more basic cause.
	explainedAway = "explained_away"
	// refuted is the score of a cause whose hard condition does not hold.
	refuted = -6
)

// weighed is the outcome of the third stage.
type weighed struct {
	bottlenecks []scored // Sorted by probability.
	triggers    []scored
	// seen is the probability of the first bottleneck by what was seen alone, before any doubt.
	seen float64
	// residual is the probability of "something else" on the bottleneck axis.
	residual float64
	// unchecked lists causes that lack a signal that they need.
	unchecked []scored
	// hidden is the rival that missing data may hide so well that the first choice is not sure; nil when there is none.
	hidden *hidden
	// tooFew says that there are too few samples since the onset to call the server calm.
	tooFew bool
	// noBefore says that key evidence compares with before, and that there is no before.
	noBefore bool
}

// scored is one cause with the sum of its evidence.
type scored struct {
	cause       kb.Cause
	prior       float64
	score       float64
	lines       []line
	coverage    float64
	families    int // Families that support it.
	probability float64
	refuted     *kb.Condition // The hard condition that does not hold.
	missing     string        // The needed signal that is not present.
}

// line is one predicate with what it came to.
type line struct {
	p      kb.Predicate
	value  float64 // -1 to 1; NaN is unknown.
	weight float64 // Log-odds after the family discount; 0 when unknown.
}

// weigh is the third stage: it sums the evidence for and against each cause, lets bottlenecks and triggers compete
// jointly, and turns scores into probabilities.
func (e *Engine) weigh(p *plan, o *observations) *weighed {
	w := &weighed{}
	for _, c := range e.kb.Causes {
		s := e.score(p, o, c)
		switch {
		case s.missing != "":
			w.unchecked = append(w.unchecked, s)
		case c.Axis == kb.Bottleneck:
			w.bottlenecks = append(w.bottlenecks, s)
		default:
			w.triggers = append(w.triggers, s)
		}
	}
	w.compete()
	explainAway(w)
	w.compete()
	if len(w.bottlenecks) > 0 {
		w.seen = w.bottlenecks[0].probability
	}
	w.bound(o)
	w.temper(p, o)
	return w
}

// unseen says that nothing of the engine is there.
func (p *plan) unseen(o *observations) bool {
	return len(p.names) == 0 || !slices.ContainsFunc(coreSignals, func(id string) bool {
		return o.get(id).wasRead()
	})
}

// temper caps the probabilities where the data does not carry certainty, and leaves the rest to "something else".
func (w *weighed) temper(p *plan, o *observations) {
	limit := mostSure
	if len(w.bottlenecks) > 0 && !w.bottlenecks[0].moving(o) {
		limit = reserved
	}
	if p.partial > 0 || p.failed > 0 && p.failed*10 >= p.asked {
		limit = min(limit, reserved)
	}
	if p.unseen(o) {
		limit = min(limit, undecided)
	}
	if len(w.bottlenecks) > 0 {
		switch w.bottlenecks[0].cause.Kind {
		case kb.Quiet:
			// Calm is said by data: until a rate window and a scrape have passed since the onset of a firing alert, every rate
			// still holds what was before.
			w.tooFew = p.in.Status == StatusFiring && o.lasts(o.window) < p.rate+p.scrape
		case kb.Saturation:
			// Without a before, what is full may always have been so.
			w.noBefore = o.baseline.len() == 0 && w.bottlenecks[0].coverage < 1
		case kb.Service, kb.Workload, kb.Change, kb.NoTrigger:
		}
		if w.tooFew || w.noBefore {
			limit = min(limit, undecided)
		}
	}
	if thin := o.lasts(o.baseline); thin > 0 && thin < shortBaseline || p.scrape >= slowScrape && o.lasts(o.window) < p.rate+p.scrape {
		limit = min(limit, reserved)
	}
	scale := func(list []scored) (lost float64) {
		if len(list) == 0 || list[0].probability <= limit {
			return 0
		}
		factor := limit / list[0].probability
		for i := range list {
			lost += list[i].probability * (1 - factor)
			list[i].probability *= factor
		}
		return lost
	}
	w.residual += scale(w.bottlenecks)
	scale(w.triggers)
}

// moving says whether a cause stands on facts of two kinds, a level and something that moves: gauges freeze when the
// engine does not step, and counters alone do not say what is full (reference: field cases, rule 12). Causes that are
// about the scrape itself, and those of a quiet server, have only one kind to stand on.
func (s scored) moving(o *observations) bool {
	if s.cause.Kind == kb.Quiet {
		return true
	}
	levels, events := false, false
	for _, l := range s.lines {
		if l.weight <= 0 {
			continue
		}
		switch o.get(l.p.Signal).sig.Class {
		case kb.StateClass:
			levels = true
		case kb.SourceClass:
			return true
		case kb.EventClass, kb.FirstToken, kb.FinishClass:
			events = true
		}
	}
	return levels && events
}

// score sums the evidence of one cause.
func (e *Engine) score(p *plan, o *observations, c kb.Cause) scored {
	s := scored{cause: c, prior: c.Prior + alertShift(p.in, c)}
	for _, id := range c.Needs {
		if o.get(id).state != Present {
			s.missing = id
			break
		}
	}
	keys, known, sufficient := 0, 0, false
	for _, pr := range c.Evidence {
		value, applies := o.test(pr)
		if c.Kind == kb.Quiet && o.get(pr.Signal).estimate && value > 0 {
			value = math.NaN() // Calm is said by what was measured.
		}
		l := line{p: pr, value: value}
		if !math.IsNaN(l.value) {
			l.weight = interpolate(l.value, pr.Against, pr.For)
		}
		if pr.Key && applies {
			keys++
			if !math.IsNaN(l.value) {
				known++
			}
		}
		sufficient = sufficient || pr.Sufficient && value > 0
		s.lines = append(s.lines, l)
	}
	discountFamilies(s.lines)
	s.coverage = 1
	if keys > 0 && !sufficient {
		s.coverage = float64(known) / float64(keys)
	}
	s.score = s.prior
	supporting := map[string]bool{}
	for i := range s.lines {
		l := &s.lines[i]
		if l.weight > 0 {
			// What speaks for a cause counts only as far as the evidence that it stands on could be read at all.
			l.weight *= s.coverage
		}
		s.score += l.weight
		if l.weight > 0.3 {
			supporting[l.p.Family] = true
		}
	}
	s.families = len(supporting)
	for i := range c.Requires {
		if !o.holds(c.Requires[i]) {
			s.refuted = &c.Requires[i]
			s.score = refuted
			break
		}
	}
	if capped := min(max(s.score, -maxScore), maxScore); capped != s.score {
		// The lines of a report add up to its score, so what the cap takes is a line too.
		s.lines = append(s.lines, line{
			p:     kb.Predicate{ID: "capped", Family: "capped", Say: "more of the same evidence does not make it more certain"},
			value: -1, weight: capped - s.score,
		})
		s.score = capped
	}
	return s
}

// alertShift is the small shift of the prior by what alerted.
func alertShift(in Incident, c kb.Cause) float64 {
	shift := 0.0
	for _, a := range in.Alerts {
		if a.Status != StatusFiring {
			continue
		}
		for _, pattern := range c.AlertPatterns() {
			if pattern.Matches(a.Name) && math.Abs(pattern.Shift) > math.Abs(shift) {
				shift = pattern.Shift
			}
		}
	}
	return shift
}

// test evaluates a predicate: -1 to 1, NaN when it is unknown. It does not apply when a guard is known not to hold.
func (o *observations) test(p kb.Predicate) (value float64, applies bool) {
	known := true
	for _, c := range p.When {
		v := o.feature(c.Signal, c.Feature)
		switch {
		case math.IsNaN(v):
			known = false
		case !within(v, c):
			return math.NaN(), false
		}
	}
	if !known {
		return math.NaN(), true
	}
	out := o.value(p.Test)
	for _, t := range p.All {
		v := o.value(t)
		if math.IsNaN(v) {
			// An unknown conjunct cannot lift the others, but a known "no" is a no.
			if out >= 0 {
				out = math.NaN()
			}
			continue
		}
		if math.IsNaN(out) {
			if v < 0 {
				out = v
			}
			continue
		}
		out = min(out, v)
	}
	return out, true
}

// value maps a feature to -1 (No or beyond) … 1 (Yes or beyond).
func (o *observations) value(t kb.Test) float64 {
	v := o.feature(t.Signal, t.Feature)
	if math.IsNaN(v) {
		return v
	}
	return min(max(2*(v-*t.No)/(*t.Yes-*t.No)-1, -1), 1)
}

// holds says whether a hard condition holds; an unknown feature does not refute unless the condition wants it known.
func (o *observations) holds(c kb.Condition) bool {
	v := o.feature(c.Signal, c.Feature)
	if math.IsNaN(v) {
		return !c.Known
	}
	return within(v, c)
}

func within(v float64, c kb.Condition) bool {
	return (c.Min == nil || v >= *c.Min) && (c.Max == nil || v <= *c.Max)
}

func interpolate(v, against, support float64) float64 {
	if v >= 0 {
		return v * support
	}
	return -v * against
}

// discountFamilies leaves the strongest line of a family as it is and shrinks each further one.
func discountFamilies(lines []line) {
	byFamily := map[string][]int{}
	for i, l := range lines {
		if l.weight != 0 {
			byFamily[l.p.Family] = append(byFamily[l.p.Family], i)
		}
	}
	for _, idx := range byFamily {
		slices.SortStableFunc(idx, func(a, b int) int {
			return cmp.Compare(math.Abs(lines[b].weight), math.Abs(lines[a].weight))
		})
		factor := 1.0
		for _, i := range idx {
			lines[i].weight *= factor
			factor *= familyDiscount
		}
	}
}

// affinity is how well a bottleneck and a trigger go together, in log-odds.
func affinity(b, t kb.Cause) float64 {
	k := b.With[t.ID] + t.With[b.ID]
	switch {
	case b.Kind == kb.Saturation && t.Kind == kb.NoTrigger:
		k -= 1.5 // Saturation wants a driver.
	case b.Kind == kb.Service && t.Kind == kb.NoTrigger:
		k += 0.5
	case b.Kind == kb.Service && t.Kind == kb.Workload:
		k--
	case b.Kind == kb.Quiet && t.Kind == kb.NoTrigger:
		k += 0.5
	}
	return k
}

// compete turns scores into probabilities: a softmax over all pairs of a bottleneck and a trigger, "something else"
// included on both axes, marginalised to each.
func (w *weighed) compete() {
	bn, tn := len(w.bottlenecks), len(w.triggers)
	pb, pt := make([]float64, bn+1), make([]float64, tn+1)
	total := 0.0
	for i := 0; i <= bn; i++ {
		for j := 0; j <= tn; j++ {
			s := 0.0
			if i < bn {
				s += w.bottlenecks[i].score
			} else {
				s += leak
			}
			if j < tn {
				s += w.triggers[j].score
			} else {
				s += leak - 0.5
			}
			if i < bn && j < tn {
				s += affinity(w.bottlenecks[i].cause, w.triggers[j].cause)
			}
			x := math.Exp(s)
			pb[i] += x
			pt[j] += x
			total += x
		}
	}
	for i := range w.bottlenecks {
		w.bottlenecks[i].probability = pb[i] / total
	}
	for j := range w.triggers {
		w.triggers[j].probability = pt[j] / total
	}
	w.residual = pb[bn] / total
	sortScored(w.bottlenecks)
	sortScored(w.triggers)
}

func sortScored(s []scored) {
	slices.SortStableFunc(s, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.probability, a.probability), cmp.Compare(a.cause.ID, b.cause.ID))
	})
}

// explainAway takes from a cause what a likely parent explains: a prefill overload ends with the KV cache full, and the
// full cache is then a consequence.
func explainAway(w *weighed) {
	parents := w.explanations()
	for i := range w.bottlenecks {
		w.bottlenecks[i].explain(parents)
	}
}

// probabilities are those of the bottlenecks, by cause.
func (w *weighed) probabilities() map[string]float64 {
	p := map[string]float64{}
	for _, s := range w.bottlenecks {
		p[s.cause.ID] = s.probability
	}
	return p
}

// explanations are the probabilities of the bottlenecks that may explain others, by cause: what is clearly contradicted
// explains nothing.
func (w *weighed) explanations() map[string]float64 {
	p := map[string]float64{}
	for _, s := range w.bottlenecks {
		if s.against(func(l *line) bool { return l.p.Key && l.weight <= -2.5 }) == nil {
			p[s.cause.ID] = s.probability
		}
	}
	return p
}

// explain takes from the score what a likely parent explains.
func (s *scored) explain(probability map[string]float64) {
	if s.refuted != nil {
		return
	}
	most := 0.0
	for _, parent := range s.cause.Parents {
		most = max(most, probability[parent])
	}
	if most < 0.1 {
		return
	}
	most = min(most/0.25, 1)
	lowered := max(s.score-explained*most, -maxScore)
	weight := lowered - s.score
	s.score = lowered
	s.lines = append(slices.Clip(s.lines), line{
		p: kb.Predicate{
			ID: explainedAway, Family: explainedAway,
			Say: "a more basic cause explains this as its consequence",
		},
		value: -1, weight: weight,
	})
}

// unexplained is the cause before more basic ones explained it.
func (s scored) unexplained() scored {
	for i, l := range s.lines {
		if l.p.ID == explainedAway {
			s.lines = slices.Delete(slices.Clone(s.lines), i, i+1)
			s.score -= l.weight
			break
		}
	}
	return s
}
