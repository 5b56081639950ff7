package slack

import (
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// Rendered is a message as Slack gets it.
type Rendered struct {
	// Text is what notifications and screen readers tell.
	Text string
	// Plain is the whole message without blocks, for when Slack refuses them.
	Plain  string
	Blocks []slackgo.Block
}

// View says how a message looks in one installation.
type View struct {
	// Interactive shows the buttons that need an endpoint of this service to answer them.
	Interactive bool
	// Charts says how panels are shown in the details when no picture can be uploaded.
	Charts Charts
}

// Charts is a way to show panels inside a message.
type Charts string

// The ways to show panels inside a message.
const (
	NoCharts     Charts = ""       // The picture shows them.
	NativeCharts Charts = "native" // Slack's data_visualization block.
	TextCharts   Charts = "text"   // Lines of block characters.
	// AutoCharts lets a Notifier choose: none while it may upload pictures, else Slack's own, else text. Render alone takes
	// it for text.
	AutoCharts Charts = "auto"
)

// Render writes a message in Block Kit. What it returns is within Slack's limits for every message.
func Render(m notify.Message, v View) Rendered {
	p := &page{words: locale.For(m.Language)}
	switch m.Kind {
	case notify.KindDetails:
		p.details(m, v)
	case notify.KindChange:
		p.change(m)
	case notify.KindResolved:
		p.resolved(m)
	case notify.KindNote:
		p.note(m)
	default:
		p.card(m, v)
	}
	if len(p.blocks) == 0 {
		// A change or a note without anything to say; Slack refuses a message without blocks and text.
		p.paragraph((&line{}).text("–"))
	}
	text, whole := p.fallback(m)
	return Rendered{Text: text, Plain: whole, Blocks: p.blocks}
}

func (p *page) card(m notify.Message, v View) {
	p.header(emoji(m) + " " + m.Headline)
	if call := mention(m.Mention); call != "" {
		p.add(slackgo.NewSectionBlock(
			&slackgo.TextBlockObject{Type: slackgo.MarkdownType, Text: call}, nil, nil), notify.Runes(call))
	}
	p.lead(m)
	p.facts(m)
	p.compare(m.Compare)
	p.glance(m)
	p.steps(m)
	p.rivals(m)
	firing := ""
	if m.Status == notify.Firing {
		firing = m.StatusText
	}
	p.context(join(" · ", firing, m.AlertsText, strings.Join(m.Counters, " · "), m.GapsText), shadow(p, m))
	p.links(m)
	if v.Interactive {
		p.feedback(m)
	}
}

// emoji shows the state before the first word is read.
func emoji(m notify.Message) string {
	switch {
	case m.Status == notify.Resolved || m.Status == notify.Recovered:
		return "🟢"
	case m.Verdict == triage.NoBottleneck:
		return "⚪"
	case m.Status == notify.Adhoc:
		return "🔎"
	case m.Verdict != triage.CauseFound:
		return "🟡"
	case m.Severity == notify.Critical:
		return "🔴"
	default:
		return "🟠"
	}
}

// lead is the second line and what explains the first.
func (p *page) lead(m notify.Message) {
	l := &line{}
	for i, part := range m.LeadParts() {
		if i == 0 {
			l.bold(part)
			continue
		}
		l.text(" · " + part)
	}
	explain := &line{}
	if m.Verdict == triage.CauseFound {
		explain.text(m.Bottleneck.Explain)
	}
	p.paragraph((&line{}).bold(m.Late), l, explain)
}

func (p *page) facts(m notify.Message) {
	var lines []*line
	if m.Status == notify.Adhoc { // Else the lead and the line of the alerts tell it.
		lines = append(lines, p.fact("ui.label.status", m.StatusText))
	}
	lines = append(lines,
		p.fact("ui.label.changed", m.ChangedBy),
		p.fact("ui.label.impact", strings.Join(m.Impact, " · ")),
		p.decides(m.Blocked))
	if len(m.Candidates) > 0 {
		l := (&line{}).bold(p.words.Text("ui.label.candidates") + ": ")
		for i, c := range m.Candidates {
			if i > 0 {
				l.text(", ")
			}
			l.link(c.Runbook, c.Title)
		}
		lines = append(lines, l)
	}
	p.paragraph(lines...)
}

// decides names the query that would decide: as a link where there is one, as the thread has its text.
func (p *page) decides(b *notify.Blocked) *line {
	l := &line{}
	switch {
	case b == nil || b.Query == nil:
	case b.Query.URL != "":
		l.bold(p.words.Text("ui.label.decides")+": ").link(b.Query.URL, p.words.Text("ui.open"))
	case notify.Runes(b.Query.PromQL) <= maxText/2:
		l.bold(p.words.Text("ui.label.decides") + ": ").code(b.Query.PromQL)
	}
	return l
}

func (p *page) fact(label, s string) *line {
	if s == "" {
		return &line{}
	}
	return (&line{}).bold(p.words.Text(label) + ": ").text(s)
}

func (p *page) compare(rows []notify.Compare) {
	items := make([]*line, 0, len(rows))
	for _, r := range rows {
		items = append(items, (&line{}).text(r.Label+": "+r.During+" → ").bold(r.Now))
	}
	p.list(p.words.Text("ui.label.compare"), slackgo.RTEListBullet, items, 1200)
}

// The card draws as many panels as say it: what alerted and what explains it best. A line of so many characters leaves room
// for the words beside it on a phone.
const (
	glanced    = 2
	glanceWide = 12
)

// glance draws the most telling panels as lines of text, for those who decide on a phone whether to open the thread.
func (p *page) glance(m notify.Message) {
	if m.Verdict == triage.NoBottleneck || len(m.Compare) > 0 { // Then and now says more.
		return
	}
	var rows []*line
	for _, panel := range m.Panels[:min(len(m.Panels), glanced)] {
		rows = append(rows, (&line{}).code(notify.Sparkline(panel.Values, glanceWide)).text("  "+panel.Label+"  ").bold(panel.Reading))
	}
	p.paragraph(rows...)
}

func (p *page) steps(m notify.Message) {
	items := make([]*line, 0, len(m.Steps))
	for _, s := range m.Steps {
		l := (&line{}).text(s.Text)
		if s.Option != "" {
			l.text("  ").code(s.Option)
		}
		if s.Cost != "" {
			l.italic("  " + p.words.Text("ui.label.cost") + ": " + s.Cost)
		}
		items = append(items, l)
	}
	title := "ui.label.next"
	if m.Status == notify.Resolved {
		title = "ui.label.next_time"
	}
	p.list(p.words.Text(title), slackgo.RTEListOrdered, items, 3500)
}

func (p *page) rivals(m notify.Message) {
	also := &line{}
	if m.Also != nil {
		also.bold(p.words.Text("ui.label.also")+": ").link(m.Also.Runbook, m.Also.Title)
	}
	p.paragraph(also, p.fact("ui.label.runner_up", m.RunnerUp))
}

func (p *page) details(m notify.Message, v View) {
	p.evidence(m)
	if chain := strings.Join(m.Chain, " → "); chain != "" {
		p.paragraph(p.fact("ui.label.chain", chain))
	}
	p.charts(m, v.Charts)
	p.reasoned("ui.label.ruled_out", m.RuledOut, 1600)
	p.reasoned("ui.label.not_checked", m.NotChecked, 700)
	p.reasoned("ui.label.gaps", m.Gaps, 900)
	p.list(p.words.Text("ui.label.notes"), slackgo.RTEListBullet, lines(m.Notes), 700)
	if m.MorePlaces > 0 || len(m.Places) > 3 {
		items := lines(m.Places)
		p.list(p.words.Text("ui.label.where")+" ("+locale.Grouped(len(m.Places)+m.MorePlaces)+")",
			slackgo.RTEListBullet, items[:min(len(items), 10)], 500)
	}
	p.timeline(m)
	p.queries(m.Queries)
	p.context(strings.Join(m.Footer, " · "))
}

// evidence is one table for both axes: Slack takes only one a message. It has two columns, which is what a phone shows
// without scrolling; the sentences are on the incident page, and here where two rows read the same signal.
func (p *page) evidence(m notify.Message) {
	var all []notify.Evidence
	count := map[string]int{}
	seen := map[[3]string]bool{}
	for _, e := range slices.Concat(m.Evidence, m.ChangeFor) {
		if e.Label == "" {
			continue // About the sum, which the incident page shows.
		}
		// Bottleneck and change often stand on the same reading.
		if key := [3]string{mark(e), e.Label, e.Reading}; !seen[key] {
			seen[key] = true
			count[e.Label]++
			all = append(all, e)
		}
	}
	var rows [][]string
	for _, e := range all {
		signal := mark(e) + e.Label
		if count[e.Label] > 1 && e.Text != "" && !e.Unknown {
			signal += ": " + e.Text
		}
		reading := e.Reading
		if reading == format.None {
			reading = p.words.Text("ui.mark.unread")
		}
		rows = append(rows, []string{signal, reading})
	}
	p.table(p.words.Text("ui.label.evidence"), []string{
		p.words.Text("ui.column.signal"), p.words.Text("ui.column.reading"),
	}, rows, 3600)
}

func mark(e notify.Evidence) string {
	switch {
	case e.Unknown:
		return "？ "
	case e.Supports:
		return "＋ "
	default:
		return "－ "
	}
}

func (p *page) reasoned(label string, rows []notify.Reasoned, budget int) {
	items := make([]*line, 0, len(rows))
	for _, r := range rows {
		l := (&line{}).bold(r.Title)
		if r.Why != "" {
			l.text(": " + r.Why)
		}
		items = append(items, l)
	}
	p.list(p.words.Text(label), slackgo.RTEListBullet, items, budget)
}

func (p *page) timeline(m notify.Message) {
	items := make([]*line, 0, len(m.Timeline))
	for _, e := range m.Timeline {
		items = append(items, (&line{}).code(e.Clock).text(" "+e.Text))
	}
	title := p.words.Text("ui.label.timeline")
	if m.Zone != "" {
		title += " (" + m.Zone + ")"
	}
	p.list(title, slackgo.RTEListBullet, items, 1100)
}

func (p *page) queries(queries []notify.Query) {
	items := make([]*line, 0, len(queries))
	for _, q := range queries {
		l := &line{}
		if q.Label != "" {
			l.link(q.URL, q.Label).text("  ")
		}
		items = append(items, l.code(q.PromQL))
	}
	p.list(p.words.Text("ui.label.queries"), slackgo.RTEListBullet, items, 2000)
}

func (p *page) change(m notify.Message) {
	if m.Change == nil {
		return
	}
	p.paragraph((&line{}).bold(m.Change.Text))
	p.list(p.words.Text("ui.label.because"), slackgo.RTEListBullet, lines(m.Change.Because), 1500)
}

func (p *page) resolved(m notify.Message) {
	p.paragraph((&line{}).bold(emoji(m)+" "+m.Headline), (&line{}).text(m.StatusText))
	p.compare(m.Compare)
}

func (p *page) note(m notify.Message) {
	if m.Note == nil {
		return
	}
	out := lines(m.Note.Lines)
	if userID.MatchString(m.Note.Actor) && len(out) > 0 {
		first := (&line{}).user(m.Note.Actor).text(" ")
		first.elements = append(first.elements, out[0].elements...)
		first.runes += out[0].runes
		out[0] = first
	}
	p.paragraph(out...)
}

func lines(texts []string) []*line {
	out := make([]*line, 0, len(texts))
	for _, s := range texts {
		out = append(out, (&line{}).text(s))
	}
	return out
}

func shadow(p *page, m notify.Message) string {
	if m.Shadow {
		return p.words.Text("ui.shadow")
	}
	return ""
}

func join(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), separator)
}
