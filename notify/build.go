package notify

import (
	"slices"
	"strings"
	"time"

	"vllm-triage/notify/format"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// Thresholds of what the card mentions.
const (
	lateFrom      = time.Minute // Less is the normal way of things.
	alsoFrom      = 0.3         // A second bottleneck as likely as this limits too.
	maxCandidates = 3
	maxCompare    = 6
)

// NewMessage makes a report ready for people. The same report and options give the same message.
func NewMessage(r triage.Report, o Options) Message {
	b := newBuilder(r, o)
	m := Message{
		Kind:       KindCard,
		IncidentID: Clean(r.Incident.ID, maxName),
		Language:   b.words.Language(),
		Status:     b.status(),
		Verdict:    b.told.Verdict,
		Severity:   severity(r.Incident.Alerts),
		Mention:    o.Mention,
		Shadow:     o.Shadow,
		Subject:    b.subject(),
	}
	m.Bottleneck = b.claim("bottleneck", first(b.told.Bottlenecks))
	m.Changed = b.claim("trigger", first(b.told.Triggers))
	m.Changed.Title = b.changedTitle(m.Changed)
	b.verdict(&m)
	b.when(&m)
	b.where(&m)
	b.reasons(&m)
	b.gaps(&m)
	m.Impact = b.sayAll(r.Impact.Lines)
	m.Timeline = b.timeline()
	m.Zone = b.f.Zone(r.GeneratedAt)
	if len(m.Timeline) > 0 {
		m.Zone = b.f.Zone(m.Timeline[0].At)
	}
	m.Queries = b.queries()
	m.Panels = b.panels()
	m.Links = b.links(m)
	m.AlertsText = b.alertsText()
	m.Counters = b.counters()
	m.Footer = b.footer()
	m.Change = b.change(m)
	b.headlines(&m)
	return m
}

// builder holds what every part of a message needs.
type builder struct {
	r     triage.Report
	o     Options
	words *locale.Catalogue
	f     format.Formatter
	// told is the report whose cause the message tells: the previous one when the incident is over and only it found one.
	told triage.Report
}

func newBuilder(r triage.Report, o Options) *builder {
	words := locale.For(o.Language)
	b := &builder{r: r, o: o, words: words, f: format.New(words.Language(), o.Location, r.GeneratedAt), told: r}
	over := r.Incident.Status == triage.StatusResolved || r.Verdict == triage.NoBottleneck
	if over && r.Verdict != triage.CauseFound && o.Previous != nil && o.Previous.Verdict == triage.CauseFound {
		b.told = *o.Previous
	}
	return b
}

func (b *builder) zone() *time.Location {
	if b.o.Location == nil {
		return time.UTC
	}
	return b.o.Location
}

func (b *builder) status() Status {
	switch {
	case b.r.Incident.Status == triage.StatusResolved:
		return Resolved
	case b.r.Incident.Status == triage.StatusAdhoc:
		return Adhoc
	case b.r.Verdict == triage.NoBottleneck && b.told.Verdict == triage.CauseFound:
		return Recovered
	default:
		return Firing
	}
}

func severity(alerts []triage.Alert) Severity {
	for _, a := range alerts {
		switch strings.ToLower(a.Labels["severity"]) {
		case "critical", "page", "emergency", "disaster", "sev1", "p1":
			if a.Status == triage.StatusFiring {
				return Critical
			}
		}
	}
	return Warning
}

// subject is what the incident is about: the model where it is known, else the narrowest label there is.
func (b *builder) subject() string {
	s := b.r.Incident.Scope
	name := ""
	for _, candidate := range []string{s.Model, s.Service, s.Pod, s.Instance, s.Job} {
		if name = Clean(candidate, maxSubject); name != "" {
			break
		}
	}
	if name == "" && len(b.r.Incident.Alerts) > 0 {
		name = Clean(b.r.Incident.Alerts[0].Name, maxSubject)
	}
	if name == "" {
		name = "vLLM"
	}
	if ns := Clean(s.Namespace, maxSpace); ns != "" {
		return b.words.Fill("ui.subject", "model", name, "namespace", ns)
	}
	return name
}

func (b *builder) claim(axis string, h triage.Hypothesis) Claim {
	level := LevelOf(h.Probability)
	c := Claim{
		ID:         Clean(h.ID, maxName),
		Title:      b.title(axis, h.ID, h.Title),
		Level:      level,
		Confidence: b.words.Text("ui.confidence." + string(level)),
	}
	c.Explain, _ = b.words.Find(axis + "." + h.ID + ".explain")
	if axis == "bottleneck" && c.ID != "" && c.ID != "healthy" {
		c.Runbook = runbookURL(b.o.BaseURL, h.ID, b.r.Incident.ID, b.words.Language())
	}
	return c
}

// changedTitle words a trigger by how sure it is.
func (b *builder) changedTitle(c Claim) string {
	switch c.ID {
	case "":
		return ""
	case "none":
		return c.Title
	default:
		return b.words.Fill("ui.changed."+string(c.Level), "trigger", c.Title)
	}
}

// verdict fills in what follows from the kind of verdict.
func (b *builder) verdict(m *Message) {
	switch b.told.Verdict {
	case triage.CauseFound:
		m.Steps = b.steps(first(b.told.Bottlenecks), first(b.told.Triggers))
		m.RunnerUp = b.say(b.told.RunnerUp)
		if second := nth(b.told.Bottlenecks, 1); second.Probability >= alsoFrom && hasSupport(second) {
			c := b.claim("bottleneck", second)
			m.Also = &c
		}
		m.ChangedBy = b.changedBy()
	case triage.NoBottleneck:
		m.Steps = b.steps(first(b.told.Bottlenecks), triage.Hypothesis{})
	default: // Inconclusive, and verdicts this build does not know.
		m.Blocked = b.blocked()
		for i := range min(len(b.told.Bottlenecks), maxCandidates) {
			m.Candidates = append(m.Candidates, b.claim("bottleneck", b.told.Bottlenecks[i]))
		}
	}
	if m.Status == Resolved || m.Status == Recovered {
		m.Compare = b.compare()
	}
}

func (b *builder) blocked() *Blocked {
	in := b.told.Inconclusive
	if in == nil {
		return &Blocked{Text: b.words.Text("ui.blocked")}
	}
	out := &Blocked{Text: b.say(in.Text)}
	if out.Text == "" {
		out.Text = b.words.Text("ui.blocked")
	}
	out.Query = b.query("", in.Query)
	return out
}

func (b *builder) steps(hypotheses ...triage.Hypothesis) []Step {
	var steps []Step
	for _, h := range hypotheses {
		if LevelOf(h.Probability) == None {
			continue
		}
		for _, a := range h.Actions {
			s := Step{Text: b.say(a.Text), Option: Clean(a.Option, maxName), Cost: b.say(a.Cost)}
			if a.Cost.Text == "none" {
				s.Cost = "" // Free steps need no word about it.
			}
			if s.Text != "" && !slices.Contains(steps, s) {
				steps = append(steps, s)
			}
		}
	}
	return steps
}

// changedBy is the sentence of the strongest evidence for the change.
func (b *builder) changedBy() string {
	trigger := first(b.told.Triggers)
	if trigger.ID == "none" {
		return "" // What stayed the same is in the details.
	}
	for _, e := range trigger.Evidence {
		if e.Supports && e.Signal != "" {
			if s := b.say(e.Text); s != "" {
				return s
			}
			return b.label(e.Signal) + " " + b.f.Change(e.Before, e.During, e.Unit)
		}
	}
	return ""
}

func (b *builder) when(m *Message) {
	if m.Bottleneck.ID != "" && b.told.Verdict != triage.NoBottleneck {
		since := first(b.told.Bottlenecks).Since
		if since.IsZero() {
			since = b.told.Incident.Onset
		}
		m.Since = b.since(since)
	}
	m.StatusText = b.statusText(m.Status)
	if b.o.Late >= lateFrom && m.Status != Adhoc {
		key := "ui.late.firing"
		if m.Status == Resolved {
			key = "ui.late.resolved"
		}
		m.Late = b.words.Fill(key, "duration", b.f.Duration(b.o.Late))
	}
}

func (b *builder) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	spread := millis(b.told.Incident.OnsetUncertaintyMS)
	if spread <= 0 {
		return b.words.Fill("ui.since", "clock", b.f.Clock(t))
	}
	return b.words.Fill("ui.since_about", "clock", b.f.Clock(t), "spread", b.f.Duration(spread))
}

func (b *builder) statusText(s Status) string {
	if s == Adhoc {
		return b.words.Fill("ui.status.adhoc", "clock", b.f.Clock(b.r.GeneratedAt))
	}
	fired, ended := alertTimes(b.r.Incident.Alerts)
	start, end, known, unknown := fired, b.r.GeneratedAt, "ui.status.firing", "ui.status.fired"
	switch s {
	case Resolved:
		start, end, known, unknown = b.onset(fired), ended, "ui.status.resolved", "ui.status.ended"
	case Recovered:
		start, known = b.onset(fired), "ui.status.recovered"
	case Firing, Adhoc:
	}
	if start.IsZero() || end.IsZero() || end.Before(start) {
		return b.words.Text(unknown)
	}
	return b.words.Fill(known, "duration", b.f.Duration(end.Sub(start)))
}

// onset is when the incident began: in the data where that is known, else when the first alert fired.
func (b *builder) onset(fired time.Time) time.Time {
	if on := b.told.Incident.Onset; !on.IsZero() {
		return on
	}
	return fired
}

// alertTimes returns when the first alert fired that still does (or the first of all), and when the last one ended.
func alertTimes(alerts []triage.Alert) (fired, ended time.Time) {
	var firing, all time.Time
	for _, a := range alerts {
		all = earlier(all, a.StartsAt)
		if a.Status == triage.StatusFiring {
			firing = earlier(firing, a.StartsAt)
		} else if a.EndsAt.After(ended) {
			ended = a.EndsAt
		}
	}
	if !firing.IsZero() {
		return firing, ended
	}
	return all, ended
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (b *builder) counters() []string {
	var out []string
	if b.o.Flaps > 0 {
		out = append(out, b.words.Count("ui.flaps", b.o.Flaps))
	}
	if b.o.Updates > 0 {
		out = append(out, b.words.Count("ui.updates", b.o.Updates))
	}
	return out
}

func (b *builder) footer() []string {
	out := []string{}
	if base := b.r.Incident.Baseline; base != nil {
		out = append(out, b.words.Fill("ui.baseline", "start", b.f.Clock(base.Start), "end", b.f.Clock(base.End)))
	}
	if b.r.Queries > 0 {
		out = append(out, b.words.Count("ui.footer.queries", b.r.Queries, "time", b.f.Duration(millis(b.r.QueryMS))))
	}
	if v := Clean(b.r.VLLM.Text, maxName); v != "" {
		out = append(out, b.words.Fill("ui.footer.vllm", "range", v))
	}
	if id := Clean(b.r.Incident.ID, maxName); id != "" {
		out = append(out, b.words.Fill("ui.footer.incident", "id", id))
	}
	return out
}

// headlines writes the two lines and the summary, which need all the rest.
func (b *builder) headlines(m *Message) {
	title := m.Bottleneck.Title
	key := "ui.headline.plain"
	switch {
	case m.Status == Resolved && b.told.Verdict == triage.NoBottleneck:
		key = "ui.headline.ended"
	case m.Status == Resolved && b.told.Verdict != triage.CauseFound:
		key = "ui.headline.unexplained"
	case m.Status == Resolved:
		key = "ui.headline.resolved"
	case m.Status == Recovered:
		key = "ui.headline.recovered"
	case b.told.Verdict == triage.CauseFound, b.told.Verdict == triage.NoBottleneck:
	default:
		key = "ui.headline.inconclusive"
	}
	m.Headline = b.words.Fill(key, "title", title, "subject", m.Subject)
	m.Lead = strings.Join(m.LeadParts(), " · ")
	parts := []string{m.Headline, m.Lead}
	if len(m.Steps) > 0 && m.Status != Resolved {
		parts = append(parts, b.words.Text("ui.label.next")+": "+m.Steps[0].Text)
	}
	m.Summary = Clean(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " — "), maxSentence)
}

// LeadParts are the pieces of Lead, for renderers that set them apart.
func (m Message) LeadParts() []string {
	var parts []string
	switch {
	case m.Verdict == triage.CauseFound:
		parts = []string{m.Where, m.Bottleneck.Confidence, m.Since}
		if m.Status == Resolved || m.Status == Recovered {
			parts = []string{m.Where, m.Since, m.StatusText}
		}
		// What changed comes first, unless it is that nothing did, or nobody knows.
		if m.Changed.ID == "none" || m.Changed.Level == None {
			parts = append(parts, m.Changed.Title)
		} else {
			parts = append([]string{m.Changed.Title}, parts...)
		}
	case m.Verdict == triage.NoBottleneck && m.Status == Resolved:
		parts = []string{m.Bottleneck.Explain, m.StatusText}
	case m.Verdict == triage.NoBottleneck:
		parts = []string{m.Bottleneck.Explain}
	case m.Blocked != nil:
		parts = []string{m.Blocked.Text, m.Since}
		if m.Status == Resolved {
			parts = append(parts, m.StatusText)
		}
	}
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

func first(hs []triage.Hypothesis) triage.Hypothesis { return nth(hs, 0) }

func nth(hs []triage.Hypothesis, i int) triage.Hypothesis {
	if i < len(hs) {
		return hs[i]
	}
	return triage.Hypothesis{}
}

func hasSupport(h triage.Hypothesis) bool {
	return slices.ContainsFunc(h.Evidence, func(e triage.Evidence) bool { return e.Supports })
}

// millis converts milliseconds to a duration without overflow.
func millis(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
}
