package triage

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

const (
	// maxHypotheses is how many causes of an axis a report lists.
	maxHypotheses = 6
	// sure and likely are the probabilities from which a cause is named with and without reservation.
	sure, likely = 0.6, 0.4
	// mostOfCalm is the share of its key evidence that must be known for calm.
	mostOfCalm = 0.66
	// mostKnown is the share of its key evidence that must be known for a cause that is only likely.
	mostKnown = 0.8
)

// report is the last stage: it puts into words what was found. It decides nothing that changes the ranking.
func (e *Engine) report(p *plan, o *observations, w *weighed) Report {
	r := Report{
		Schema:      SchemaVersion,
		GeneratedAt: p.in.Now,
		Incident:    e.incidentInfo(p, o),
		Bottlenecks: []Hypothesis{},
		Triggers:    []Hypothesis{},
		RuledOut:    []RuledOut{},
		Missing:     e.missing(p, o),
		VLLM:        e.version(p),
		Knowledge:   e.kb.Hash,
		Residual:    round3(w.residual),
	}
	o.numbers = e.numbers(o)
	args := o.numbers
	for i, s := range w.bottlenecks {
		if i >= maxHypotheses {
			break
		}
		r.Bottlenecks = append(r.Bottlenecks, e.hypothesis(p, o, s, args, topID(w.triggers)))
	}
	for i, s := range w.triggers {
		if i >= maxHypotheses {
			break
		}
		r.Triggers = append(r.Triggers, e.hypothesis(p, o, s, args, ""))
	}
	all := slices.Concat(w.bottlenecks, w.triggers)
	slices.SortFunc(all, closest)
	for _, s := range all {
		if why, ok := ruledOut(o, s); ok {
			r.RuledOut = append(r.RuledOut, RuledOut{
				ID: s.cause.ID, Title: s.cause.Title, Why: why.Text, Reason: why,
			})
		}
	}
	for _, s := range w.unchecked {
		x := o.get(s.missing)
		t := text("not_checked", "needs {signal}: {why}", word("signal", s.missing), word("why", x.why))
		r.NotChecked = append(r.NotChecked, RuledOut{ID: s.cause.ID, Title: s.cause.Title, Why: t.Text, Reason: t})
	}
	slices.SortFunc(r.NotChecked, func(a, b RuledOut) int { return cmp.Compare(a.ID, b.ID) })
	r.Verdict, r.Inconclusive = e.verdict(p, o, w)
	r.RunnerUp = runnerUp(o, w)
	r.Chain = chain(o, w, r.Verdict)
	r.Impact = impact(o, args)
	r.Notes = e.notes(p, o)
	r.Panels = e.panels(p, o, w)
	return r
}

// closest orders causes by how much speaks for them: a reader asks first about what looks like the answer.
func closest(a, b scored) int {
	return cmp.Or(cmp.Compare(b.support(), a.support()), cmp.Compare(a.cause.ID, b.cause.ID))
}

// support is what speaks for a cause, in log-odds, whatever speaks against it.
func (s scored) support() float64 {
	sum := 0.0
	for _, l := range s.lines {
		sum += max(l.weight, 0)
	}
	return sum
}

func topID(s []scored) string {
	if len(s) == 0 {
		return ""
	}
	return s[0].cause.ID
}

func (e *Engine) incidentInfo(p *plan, o *observations) IncidentInfo {
	info := IncidentInfo{
		ID:                 p.in.ID,
		GroupKey:           p.in.GroupKey,
		Status:             p.in.Status,
		Scope:              p.scope,
		ScopeNote:          p.note,
		Onset:              o.onset,
		OnsetUncertaintyMS: o.uncertainty.Milliseconds(),
		Window:             Span{Start: o.onset, End: p.end},
		Alerts:             p.in.Alerts,
		Truncated:          p.in.Truncated,
		RunbookURL:         p.in.RunbookURL(),
		ExternalURL:        p.in.ExternalURL,
	}
	if info.Alerts == nil {
		info.Alerts = []Alert{}
	}
	if o.baseline.len() > 0 {
		b := o.span(o.baseline)
		info.Baseline = &b
	}
	if n := promq.Max(present(o.window.of(o.series("targets")))); !math.IsNaN(n) {
		info.Replicas = int(n)
	} else if n := promq.Max(present(o.window.of(o.series("serving")))); !math.IsNaN(n) {
		info.Replicas = int(n)
	}
	return info
}

// hypothesis words one cause.
func (e *Engine) hypothesis(p *plan, o *observations, s scored, args map[string]Arg, trigger string) Hypothesis {
	h := Hypothesis{
		ID:          s.cause.ID,
		Title:       s.cause.Title,
		Probability: round3(s.probability),
		Score:       round3(s.score),
		Prior:       round3(s.prior),
		Coverage:    round3(s.coverage),
		Where:       o.where(p, s.cause),
		Evidence:    []Evidence{},
	}
	for _, l := range s.lines {
		if l.weight == 0 && !l.p.Key {
			continue
		}
		h.Evidence = append(h.Evidence, e.evidence(o, s.cause, l))
	}
	slices.SortStableFunc(h.Evidence, func(a, b Evidence) int {
		return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight))
	})
	if s.refuted != nil {
		why := conditionText(o, s.cause, *s.refuted)
		h.Evidence = append([]Evidence{{
			Signal: s.refuted.Signal, Text: why, Supports: false, Weight: round3(s.score - s.prior),
		}}, h.Evidence...)
	}
	if s.cause.Axis == kb.Bottleneck {
		h.Since = o.onset
		for _, id := range s.cause.Explains {
			if _, ok := o.onsets[id]; ok {
				h.Consequences = append(h.Consequences, id)
			}
		}
		h.Actions = e.actions(o, s.cause, args, trigger)
	} else {
		h.Since = o.onset
		for _, l := range s.lines {
			if i, ok := o.onsets[l.p.Signal]; ok && l.weight > 0 {
				h.Since = o.time(i)
				break
			}
		}
	}
	return h
}

func (e *Engine) evidence(o *observations, c kb.Cause, l line) Evidence {
	x := o.get(l.p.Signal)
	ev := Evidence{
		Signal:   l.p.Signal,
		Unit:     x.sig.Unit,
		Before:   finite(o.feature(l.p.Signal, "base")),
		During:   finite(o.during(l.p)),
		Supports: l.weight > 0,
		Weight:   round3(l.weight),
		Query:    x.expr,
	}
	if l.p.Signal == "" {
		ev.Text = Text{Text: l.p.Say, Key: "evidence." + l.p.ID}
		return ev
	}
	template, key := l.p.Say, "evidence."+c.ID+"."+l.p.ID
	if l.weight < 0 || math.IsNaN(l.value) {
		if l.p.SayAgainst != "" {
			template, key = l.p.SayAgainst, key+".against"
		} else {
			template, key = "{signal} {during} (before {before})", "evidence.plain"
		}
	}
	if math.IsNaN(l.value) {
		ev.Text = text("evidence.unknown", "{signal}: not known", word("signal", x.sig.Title))
		return ev
	}
	ev.Text = o.say(key, template, l.p)
	return ev
}

// during is the figure that a predicate is about, for people: what the feature measures, in the signal's unit.
func (o *observations) during(p kb.Predicate) float64 {
	switch p.Feature {
	case "max", "peak":
		return o.feature(p.Signal, "max")
	case "min", "high":
		return o.feature(p.Signal, p.Feature)
	case "mean", "events":
		return o.feature(p.Signal, p.Feature)
	default:
		return o.feature(p.Signal, "level")
	}
}

// say words a line: placeholders are what the predicate measured, or a figure of the incident (see numbers).
func (o *observations) say(key, template string, p kb.Predicate, more ...textArg) Text {
	args := append(o.sayArgs(p), more...)
	for _, name := range placeholders(template) {
		if a, ok := o.numbers[name]; ok && !slices.ContainsFunc(args, func(x textArg) bool { return x.name == name }) {
			args = append(args, textArg{name, a})
		}
	}
	return text(key, template, args...)
}

func (o *observations) sayArgs(p kb.Predicate) []textArg {
	x := o.get(p.Signal)
	args := []textArg{word("signal", x.sig.Title)}
	add := func(name string, v float64, unit Unit) {
		if math.IsNaN(v) {
			args = append(args, word(name, "unknown"))
			return
		}
		args = append(args, number(name, v, unit))
	}
	add("during", o.during(p), x.sig.Unit)
	add("before", o.feature(p.Signal, "base"), x.sig.Unit)
	add("ratio", o.feature(p.Signal, "ratio"), Times)
	add("skew", o.feature(p.Signal, "skew"), Times)
	add("value", o.feature(p.Signal, p.Feature), x.sig.Unit)
	for i, t := range p.All {
		y := o.get(t.Signal)
		n := strconv.Itoa(i + 1)
		args = append(args, word("signal"+n, y.sig.Title))
		add("during"+n, o.feature(t.Signal, "level"), y.sig.Unit)
		add("before"+n, o.feature(t.Signal, "base"), y.sig.Unit)
		add("ratio"+n, o.feature(t.Signal, "ratio"), Times)
	}
	if p.Signal == "config_changes" {
		args = append(args, word("changes", o.configs.String()))
	}
	return args
}

// String lists the changed fields: "num_gpu_blocks 2048 → 500".
func (c configChange) String() string {
	parts := make([]string, 0, len(c.changed))
	for _, f := range c.changed {
		parts = append(parts, f.field+" "+cmp.Or(f.before, "–")+" → "+cmp.Or(f.after, "–"))
	}
	return strings.Join(parts, ", ")
}

// where names the replicas that a cause is about; a place without an instance means all of them.
func (o *observations) where(p *plan, c kb.Cause) []Place {
	whole := []Place{{Model: p.scope.Model}}
	if o.only != nil && c.Axis == kb.Bottleneck {
		return placesOf([]replica{*o.only}, p.scope.Model)
	}
	if len(o.replicas) == 1 && c.Where != "" {
		return placesOf(o.replicas, p.scope.Model)
	}
	rs := o.deviating(c)
	if len(rs) == 0 || c.Place != "replicas" && len(rs) == len(o.replicas) {
		return whole
	}
	return placesOf(rs, p.scope.Model)
}

// ruledOut words why a cause is out: its hard condition, or its strongest key evidence against.
func ruledOut(o *observations, s scored) (Text, bool) {
	if s.refuted != nil {
		return conditionText(o, s.cause, *s.refuted), true
	}
	if s.score > -2 {
		return Text{}, false
	}
	best := s.against(func(l *line) bool { return l.p.Signal != "" })
	if best == nil {
		return Text{}, false
	}
	template, key := best.p.SayAgainst, "evidence."+s.cause.ID+"."+best.p.ID+".against"
	if template == "" {
		template, key = "{signal} {during} (before {before})", "evidence.plain"
	}
	return o.say(key, template, best.p), true
}

func conditionText(o *observations, c kb.Cause, cond kb.Condition) Text {
	template, key := cond.Say, "condition."+c.ID+"."+cond.Signal+"."+cond.Feature
	if template == "" {
		template, key = "{signal} {value}", "evidence.condition"
	}
	return o.say(key, template, kb.Predicate{Test: kb.Test{Signal: cond.Signal, Feature: cond.Feature}})
}

// missing lists the signals that could not be read, optional ones that do not exist apart.
func (e *Engine) missing(p *plan, o *observations) []Missing {
	out := []Missing{}
	if p.discovery != nil {
		out = append(out, Missing{Signal: "discovery", State: Failed, Why: failure(p.discovery)})
	}
	for _, s := range e.kb.Signals {
		if !s.Queried() {
			continue
		}
		x := o.get(s.ID)
		if x.state == Present || x.state == Absent && s.Optional {
			continue
		}
		out = append(out, Missing{Signal: s.ID, State: x.state, Why: x.why})
	}
	slices.SortFunc(out, func(a, b Missing) int { return cmp.Compare(a.Signal, b.Signal) })
	return out
}

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
	if x := w.undecided; x != nil {
		why := text("blocked.unread", "{first} fits best, but {signal} could not be read ({why}) and could change that",
			word("first", top.cause.Title), word("signal", x.sig.Title), word("why", x.why))
		return Inconclusive, &Blocked{Text: why, Query: queryFor(e, p, x)}
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
	if h := w.hidden; h != nil {
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

// runnerUp says why the second bottleneck lost: its own evidence against, or what it lacks.
func runnerUp(o *observations, w *weighed) Text {
	if len(w.bottlenecks) < 2 || w.bottlenecks[1].probability < 0.02 {
		return Text{}
	}
	s := w.bottlenecks[1]
	best := s.against(func(*line) bool { return true })
	title := word("second", s.cause.Title)
	if best != nil && best.p.Signal == "" {
		return text("runner_up.consequence", "{second} is second: here it follows from {first}", title,
			word("first", w.bottlenecks[0].cause.Title))
	}
	if best == nil {
		return text("runner_up.weaker", "{second} is second: less speaks for it than for {first}", title,
			word("first", w.bottlenecks[0].cause.Title))
	}
	template, key := best.p.SayAgainst, "runner_up."+s.cause.ID+"."+best.p.ID
	if template == "" {
		template, key = "{signal} {during} (before {before})", "runner_up.plain"
	}
	return o.say(key, "{second} is second: "+template, best.p, title)
}

// chain is the causal line in order: trigger, bottleneck, consequences by their onsets.
func chain(o *observations, w *weighed, v Verdict) []ChainLink {
	if v == NoBottleneck || len(w.bottlenecks) == 0 {
		return nil
	}
	var out []ChainLink
	if len(w.triggers) > 0 && w.triggers[0].cause.Kind != kb.NoTrigger && w.triggers[0].probability >= likely {
		t := w.triggers[0].cause
		out = append(out, ChainLink{ID: t.ID, Kind: "trigger", Title: t.Title, Since: o.onset})
	}
	b := w.bottlenecks[0].cause
	out = append(out, ChainLink{ID: b.ID, Kind: "bottleneck", Title: b.Title, Since: o.onset})
	var rest []ChainLink
	for _, id := range b.Explains {
		if i, ok := o.onsets[id]; ok {
			rest = append(rest, ChainLink{ID: id, Kind: "consequence", Title: o.get(id).sig.Title, Since: o.time(i)})
		}
	}
	slices.SortStableFunc(rest, func(a, b ChainLink) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return append(out, rest...)
}

// impact says what users feel.
func impact(o *observations, args map[string]Arg) Impact {
	var im Impact
	for _, id := range []string{"ttft_p95", "itl_p95", "e2e_p95"} {
		now, before := o.feature(id, "level"), o.feature(id, "base")
		x := o.get(id)
		switch {
		case math.IsNaN(now):
		case !math.IsNaN(o.feature(id, "high")) && x.values == nil && (math.IsNaN(before) || now > before):
			im.Lines = append(im.Lines, text("impact.at_least", "{signal} at least {during}: the histogram ends there",
				word("signal", x.sig.Title), number("during", now, x.sig.Unit)))
		case math.IsNaN(before):
			im.Lines = append(im.Lines, text("impact.now", "{signal} {during}", word("signal", x.sig.Title), number("during", now, x.sig.Unit)))
		case now >= 1.5*before+x.sig.Floor:
			im.Lines = append(im.Lines, text("impact.change", "{signal} {before} → {during}", word("signal", x.sig.Title),
				number("before", before, x.sig.Unit), number("during", now, x.sig.Unit)))
		}
	}
	if n, ok := args["requests_affected"]; ok && n.Number != nil && *n.Number >= 1 {
		im.Lines = append(im.Lines, text("impact.requests", "about {requests_affected} requests started or waited since the onset",
			textArg{"requests_affected", n}))
	}
	return im
}

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

// finite rounds to six significant digits, so that the last bits of a sum do not show, and is nil for unknown values.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	if v != 0 {
		scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
		if !math.IsInf(scale, 0) && scale != 0 {
			v = math.Round(v*scale) / scale
		}
	}
	return &v
}

func round3(v float64) float64 { return math.Round(v*1000) / 1000 }
