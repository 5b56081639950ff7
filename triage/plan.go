package triage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// plan is what the first stage settles: which series the incident is about, at which resolution they can be read, and
// which metric names exist for them.
type plan struct {
	in    Incident
	scope Scope
	note  Text // Which scope was taken and why, when the labels did not settle it.
	// end is the last moment that may be read: in.Now, or when the alert ended.
	end time.Time
	// active is when the alert's condition began, as far as Prometheus or the alert says.
	active time.Time
	scrape time.Duration // Scrape interval, measured from the data.
	rate   time.Duration // Rate window: two and a half scrapes.
	grid   grid
	// names holds the metric names that exist in the scope; nil when discovery failed.
	names map[string]bool
	// ray says that some of them are spelled as Ray does.
	ray bool
	// anchor is a regular expression of the metric names that tell scope, scrape interval and targets.
	anchor string
	// discovery is the error of the discovery call, if it failed.
	discovery error
	// replicaKeys are the labels that tell replicas apart, in this scope.
	replicaKeys []string
	// targetKeys are the labels that join series without model_name to the scope's targets.
	targetKeys []string
	// rows is how many series the anchor had at most, replicas times engines; 0 when unknown. sampled is one of them.
	rows    int
	sampled Place
	// unlabelled is why nobody knows by which labels targets and replicas are told apart; nil when they are known.
	unlabelled error
	// focus holds the instances that the alerts name, sorted.
	focus []string
	// asked, failed and partial count the requests to Prometheus, those without and those with an incomplete answer.
	asked, failed, partial int
	// warnings are what Prometheus said beside its answers.
	warnings []string
	// edge is the newest sample seen; much older than end means that Prometheus has no fresh data.
	edge time.Time
}

// grid is the time axis of all range queries of a triage.
type grid struct {
	start, end time.Time
	step       time.Duration
}

func (g grid) points() int { return int(g.end.Sub(g.start)/g.step) + 1 }

// maxPoints keeps a range query below what every server allows and the answer small.
const maxPoints = 290

// anyVLLM matches the metric names of vLLM in its own and in Ray's spelling.
const anyVLLM = `vllm:.+|vllm_.+|ray_vllm_.+`

func (e *Engine) plan(ctx context.Context, log *queryLog, in Incident) *plan {
	p := &plan{in: in, scope: in.Scope, end: in.Now}
	if end := in.EndsAt(); !end.IsZero() {
		p.end = end
	}
	p.active = in.StartsAt()
	if p.active.IsZero() {
		p.active = p.end.Add(-cmp.Or(in.For, 5*time.Minute))
	}
	if p.active.After(p.end) {
		p.active = p.end
	}
	p.focus = focusOf(in)
	e.resolve(ctx, log, p)
	p.anchor = e.anchorOf(p.names)
	for n := range p.names {
		p.ray = p.ray || strings.HasPrefix(n, "vllm_") || strings.HasPrefix(n, "ray_vllm_")
	}
	e.resolution(ctx, log, p)
	return p
}

// focusOf lists the instances that firing alerts name.
func focusOf(in Incident) []string {
	var out []string
	for _, a := range in.Alerts {
		if v := a.Labels["instance"]; v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// resolve finds the scope that has data: the alert's labels as they are, then with fewer of them, then whatever model
// there is. The report says what was taken.
func (e *Engine) resolve(ctx context.Context, log *queryLog, p *plan) {
	start := p.active.Add(-e.opts.LookBack)
	for i, s := range wider(p.scope) {
		names, err := log.names(ctx, "discovery", []string{e.selector(anyVLLM, s)}, start, p.end)
		if err != nil {
			p.discovery = err
			return
		}
		if len(names) == 0 {
			continue
		}
		if i > 0 {
			p.note = text("scope.widened", "no vLLM series carry {asked}; taken instead: {taken}",
				word("asked", p.scope.Key()), word("taken", cmp.Or(s.Key(), "every vLLM series")))
		}
		p.scope = s
		p.names = toSet(names)
		break
	}
	if p.names == nil {
		p.names = map[string]bool{}
		return
	}
	if p.scope.Model == "" {
		p.anchor = e.anchorOf(p.names)
		e.findModel(ctx, log, p)
	}
}

// wider lists the scope and its wider forms, narrowest first.
func wider(s Scope) []Scope {
	out := []Scope{s}
	next := func(change func(*Scope)) {
		w := out[len(out)-1]
		change(&w)
		if w != out[len(out)-1] {
			out = append(out, w)
		}
	}
	next(func(s *Scope) { s.Service = "" })
	next(func(s *Scope) { s.Cluster = "" })
	next(func(s *Scope) { s.Job = "" })
	if s.Instance != "" {
		next(func(s *Scope) { s.Pod = "" })
	}
	next(func(s *Scope) { s.Namespace = "" })
	if s.Model == "" {
		next(func(s *Scope) { s.Instance, s.Pod, s.Engine = "", "", "" })
	}
	return out
}

// findModel resolves a scope without a model: the model of the replica that the alert names, else the only one there is,
// else the one with the longest queue.
func (e *Engine) findModel(ctx context.Context, log *queryLog, p *plan) {
	sel := e.selector(p.anchor, p.scope)
	window := promDuration(e.opts.LookBack + p.end.Sub(p.active))
	a := log.instant(ctx, "models", fmt.Sprintf(
		"topk(20, count by (model_name, namespace, cluster) (last_over_time(%s[%s])))", sel, window), p.end)
	vec, ok := a.value.(model.Vector)
	if !ok || len(vec) == 0 {
		return
	}
	pick := vec[0].Metric
	switch {
	case len(vec) > 1:
		q := e.selector(strings.Join(kb.Spellings("vllm:num_requests_waiting"), "|"), p.scope)
		b := log.instant(ctx, "models", fmt.Sprintf(
			"topk(1, sum by (model_name, namespace, cluster) (avg_over_time(%s[%s]))) > 0", q, promDuration(5*time.Minute)), p.end)
		w, ok := b.value.(model.Vector)
		if !ok || len(w) == 0 {
			p.note = text("scope.fleet", "the alert names no model and {count} models have data: all of them are taken together",
				number("count", float64(len(vec)), Count))
			return
		}
		pick = w[0].Metric
		p.note = text("scope.longest_queue",
			"the alert names no model and {count} models have data: taken is the one with the longest queue, {model}",
			number("count", float64(len(vec)), Count), word("model", string(pick["model_name"])))
	case p.scope.Instance != "" || p.scope.Pod != "":
		p.note = text("scope.of_replica", "the alert names a replica, not a model: taken is its model, {model}",
			word("model", string(pick["model_name"])))
	default:
		p.note = text("scope.only_model", "the alert names no model: taken is the only one with data, {model}",
			word("model", string(pick["model_name"])))
	}
	if pick["model_name"] == "" {
		return
	}
	p.scope = Scope{Model: string(pick["model_name"]), Namespace: string(pick["namespace"]), Cluster: string(pick["cluster"])}
	names, err := log.names(ctx, "discovery", []string{e.selector(anyVLLM, p.scope)}, p.active.Add(-e.opts.LookBack), p.end)
	if err == nil && len(names) > 0 {
		p.names = toSet(names)
	}
}

// resolution measures the scrape interval, finds how far the data reaches back, and lays the time grid.
func (e *Engine) resolution(ctx context.Context, log *queryLog, p *plan) {
	e.sample(ctx, log, p)
	e.reanchor(ctx, log, p)
	sel := e.selector(p.anchor, p.scope)
	start := p.active.Add(-e.opts.LookBack)
	if p.in.For > 0 {
		start = p.end.Add(-p.in.For - e.opts.LookBack)
	}
	if first := p.end.Add(-e.opts.MaxWindow - e.opts.LookBack); start.Before(first) {
		start = first
	}
	coarse := grid{start: start, end: p.end, step: ceilTo(p.end.Sub(start)/120, 5*time.Second)}

	a := log.ranged(ctx, "extent", "count("+sel+")", coarse)
	if m, ok := a.value.(model.Matrix); ok && len(m) > 0 && len(m[0].Values) > 0 {
		for _, v := range m[0].Values {
			p.rows = max(p.rows, int(v.Value))
		}
		first := m[0].Values[0].Timestamp.Time().Add(-coarse.step)
		if first.After(start) {
			start = first
		}
	}
	p.scrape = cmp.Or(p.scrape, 15*time.Second)
	// Two intervals and a half always hold two samples, a late scrape included. Longer windows smear a change over a young
	// incident: with four scrapes of 20 s, 14 of 69 recorded cases lost their cause; with two and a half, 5 did.
	p.rate = max(p.scrape*5/2, 15*time.Second)
	step := p.scrape
	if n := p.end.Sub(start) / step; n >= maxPoints {
		step = ceilTo(p.end.Sub(start)/(maxPoints-1), p.scrape)
	}
	// The grid ends exactly at the last moment that may be read, so that the newest scrape counts.
	n := max(p.end.Sub(start)/step, 1)
	p.grid = grid{start: p.end.Add(-n * step).UTC(), end: p.end.UTC(), step: step}
	e.conditionBegan(ctx, log, p)
}

// sample reads one replica's raw samples: its labels tell which label names exist, the gaps are the scrape interval.
func (e *Engine) sample(ctx context.Context, log *queryLog, p *plan) {
	sel := e.selector(p.anchor, p.scope)
	window := promDuration(e.opts.LookBack + p.end.Sub(p.active))
	a := log.instant(ctx, "sample", fmt.Sprintf("topk(1, last_over_time(%s[%s]))", sel, window), p.end)
	p.unlabelled = a.err
	vec, ok := a.value.(model.Vector)
	if !ok || len(vec) == 0 {
		return
	}
	series := vec[0].Metric
	p.sampled = Place{Instance: string(series["instance"]), Pod: string(series["pod"]), Engine: string(series["engine"])}
	for _, k := range []string{"instance", "pod", "engine"} {
		if series[model.LabelName(k)] != "" && (k != "pod" || series["instance"] == "") {
			p.replicaKeys = append(p.replicaKeys, k)
		}
	}
	for _, k := range []string{"cluster", "namespace", "job", "instance", "pod"} {
		if series[model.LabelName(k)] != "" {
			p.targetKeys = append(p.targetKeys, k)
		}
	}
	ms := make([]*labels.Matcher, 0, len(series))
	for k, v := range series {
		ms = append(ms, promq.Equal(string(k), string(v)))
	}
	slices.SortFunc(ms, func(a, b *labels.Matcher) int { return cmp.Compare(a.Name, b.Name) })
	one := &strings.Builder{}
	one.WriteString("{")
	for i, m := range ms {
		if i > 0 {
			one.WriteString(",")
		}
		one.WriteString(m.String())
	}
	one.WriteString("}")
	// last_over_time keeps the name in Prometheus and VictoriaMetrics; where a server drops it, the anchor puts it back.
	if series[model.MetricNameLabel] == "" {
		s := one.String()
		one.Reset()
		one.WriteString(strings.TrimSuffix(s, "}") + `,__name__=~"` + p.anchor + `"}`)
	}
	raw := log.instant(ctx, "scrape_interval", one.String()+"["+promDuration(10*time.Minute)+"]", p.end)
	m, ok := raw.value.(model.Matrix)
	if !ok || len(m) == 0 {
		return
	}
	var gaps []float64
	for i := 1; i < len(m[0].Values); i++ {
		gaps = append(gaps, m[0].Values[i].Timestamp.Sub(m[0].Values[i-1].Timestamp).Seconds())
	}
	if n := len(m[0].Values); n > 0 {
		p.edge = m[0].Values[n-1].Timestamp.Time()
	}
	if len(gaps) > 0 {
		p.scrape = max(roundTo(time.Duration(promq.Median(gaps)*float64(time.Second)), time.Second), time.Second)
	}
}

// conditionBegan asks since when the alert's condition holds: startsAt is when it fired, after the rule's "for".
func (e *Engine) conditionBegan(ctx context.Context, log *queryLog, p *plan) {
	var alertNames []string
	for _, a := range p.in.Alerts {
		if a.Name != "" && !slices.Contains(alertNames, a.Name) {
			alertNames = append(alertNames, a.Name)
		}
	}
	if len(alertNames) == 0 {
		return
	}
	ms := []*labels.Matcher{promq.AnyOf("alertname", alertNames)}
	if p.in.Scope.Model != "" {
		ms = append(ms, promq.Equal("model_name", p.in.Scope.Model))
	}
	expr, err := promq.AddMatchers("ALERTS_FOR_STATE", ms...)
	if err != nil {
		return
	}
	a := log.instant(ctx, "condition_began", "min("+expr+")", p.end)
	vec, ok := a.value.(model.Vector)
	if !ok || len(vec) == 0 {
		return
	}
	began := time.UnixMilli(int64(float64(vec[0].Value) * 1000)).UTC()
	// A condition that has been true for hours before this alert belongs to an older incident.
	if began.Before(p.active) && p.active.Sub(began) < time.Hour {
		p.active = began
	}
}

// selector is an instant selector for the metric names (a regular expression) in the scope.
func (e *Engine) selector(names string, s Scope) string {
	ms := append([]*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, names)}, e.matchers(s)...)
	parts := make([]string, 0, len(ms))
	for _, m := range ms {
		parts = append(parts, m.String())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// matchers are the scope and the engine's own matchers, as every selector gets them.
func (e *Engine) matchers(s Scope) []*labels.Matcher {
	var out []*labels.Matcher
	for _, f := range s.fields() {
		if f.value != "" {
			out = append(out, promq.Equal(f.label, f.value))
		}
	}
	return append(out, e.opts.Matchers...)
}

func toSet(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}

func ceilTo(d, unit time.Duration) time.Duration {
	if d <= unit {
		return unit
	}
	return (d + unit - 1) / unit * unit
}

func roundTo(d, unit time.Duration) time.Duration { return (d + unit/2) / unit * unit }

// promDuration spells a duration as PromQL does, at least one second.
func promDuration(d time.Duration) string {
	return model.Duration(max(ceilTo(d, time.Second), time.Second)).String()
}
