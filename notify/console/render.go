package console

import (
	"slices"
	"strconv"
	"strings"

	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// How many rows of a list a terminal shows before it counts the rest.
const (
	maxRows    = 12
	maxQueries = 5
)

// ANSI styles. Sixteen colours only: they follow the reader's own palette, light or dark.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	cyan   = "36"
)

// Render writes a message as lines of text, each ended by a line feed.
func Render(m notify.Message, colour bool) string {
	p := &page{words: locale.For(m.Language), colour: colour, bar: barColour(m)}
	switch m.Kind {
	case notify.KindDetails:
		p.details(m)
	case notify.KindChange:
		p.change(m)
	case notify.KindResolved:
		p.heading(bold+";"+p.bar, "● ", m.Headline)
		p.paragraph("  ", m.StatusText, "")
		p.compare(m.Compare)
	case notify.KindNote:
		p.note(m)
	default:
		p.card(m)
	}
	return p.out.String()
}

func barColour(m notify.Message) string {
	switch {
	case m.Status == notify.Resolved || m.Status == notify.Recovered:
		return green
	case m.Verdict == triage.NoBottleneck:
		return blue
	case m.Verdict == triage.CauseFound && m.Severity == notify.Critical:
		return red
	case m.Verdict == triage.CauseFound:
		return yellow
	default:
		return cyan
	}
}

func (p *page) card(m notify.Message) {
	if m.Shadow {
		p.line(p.style(dim, p.words.Text("ui.shadow")))
	}
	p.heading(bold+";"+p.bar, "● ", m.Headline)
	p.paragraph("  ", m.Lead, "")
	if m.Verdict == triage.CauseFound {
		p.paragraph("  ", m.Bottleneck.Explain, dim)
	}
	if m.Late != "" {
		p.paragraph("  ", m.Late, bold)
	}
	p.blank()
	if m.Status != notify.Resolved && m.Status != notify.Recovered {
		p.labelled("ui.label.status", []string{m.StatusText})
	}
	p.labelled("ui.label.changed", []string{m.ChangedBy})
	p.labelled("ui.label.impact", m.Impact)
	p.compare(m.Compare)
	if m.Blocked != nil && m.Blocked.Query != nil {
		p.labelled("ui.label.decides", []string{m.Blocked.Query.PromQL})
	}
	p.candidates(m.Candidates)
	p.steps(m.Steps)
	if m.Also != nil {
		p.labelled("ui.label.also", []string{m.Also.Title})
	}
	p.labelled("ui.label.runner_up", []string{m.RunnerUp})
	p.panels(m.Panels)
	p.labelled("ui.label.alerts", []string{strings.Join(append([]string{m.AlertsText}, m.Counters...), " · ")})
	p.labelled("ui.label.gaps", []string{m.GapsText})
	p.links(m.Links)
}

func (p *page) details(m notify.Message) {
	p.heading(bold, "", p.words.Text("ui.label.details")+" · "+m.Headline)
	p.blank()
	p.evidence("ui.label.evidence", m.Evidence)
	p.evidence("ui.label.change_evidence", m.ChangeFor)
	p.labelled("ui.label.chain", []string{strings.Join(m.Chain, " → ")})
	p.reasoned("ui.label.ruled_out", m.RuledOut)
	p.reasoned("ui.label.not_checked", m.NotChecked)
	p.reasoned("ui.label.gaps", m.Gaps)
	p.labelled("ui.label.notes", m.Notes)
	events := make([]string, 0, len(m.Timeline))
	for _, e := range m.Timeline {
		events = append(events, e.Clock+"  "+e.Text)
	}
	p.labelled("ui.label.timeline", p.cut(events, maxRows))
	queries := make([]string, 0, len(m.Queries))
	for _, q := range m.Queries {
		queries = append(queries, q.PromQL)
	}
	p.labelled("ui.label.queries", p.cut(queries, maxQueries))
	p.paragraph("  ", strings.Join(m.Footer, " · "), dim)
}

func (p *page) change(m notify.Message) {
	if m.Change == nil {
		return
	}
	p.line(p.style(bold, m.Change.Text))
	p.labelled("ui.label.because", m.Change.Because)
}

func (p *page) note(m notify.Message) {
	if m.Note == nil {
		return
	}
	for _, s := range m.Note.Lines {
		p.paragraph("", s, "")
	}
}

func (p *page) compare(rows []notify.Compare) {
	if len(rows) == 0 {
		return
	}
	cells := [][]string{{"", p.words.Text("ui.column.during"), p.words.Text("ui.column.now")}}
	for _, r := range rows {
		cells = append(cells, []string{r.Label, r.During, r.Now})
	}
	p.labelled("ui.label.compare", columns(cells))
}

func (p *page) candidates(claims []notify.Claim) {
	titles := make([]string, 0, len(claims))
	for _, c := range claims {
		titles = append(titles, c.Title)
	}
	p.labelled("ui.label.candidates", []string{strings.Join(titles, " · ")})
}

func (p *page) steps(steps []notify.Step) {
	var lines []string
	for i, s := range steps {
		if i == maxRows {
			lines = append(lines, p.words.Fill("ui.and_more", "n", strconv.Itoa(len(steps)-i)))
			break
		}
		line := strconv.Itoa(i+1) + ". " + s.Text
		if s.Option != "" {
			line += " [" + s.Option + "]"
		}
		if s.Cost != "" {
			line += " (" + p.words.Text("ui.label.cost") + ": " + s.Cost + ")"
		}
		lines = append(lines, line)
	}
	p.labelled("ui.label.next", lines)
}

func (p *page) panels(panels []notify.Panel) {
	cells := make([][]string, 0, len(panels))
	for _, x := range panels {
		cells = append(cells, []string{x.Label, x.Spark, x.Reading})
	}
	p.labelled("ui.label.charts", columns(cells))
}

func (p *page) evidence(label string, rows []notify.Evidence) {
	cells := make([][]string, 0, len(rows))
	rows = slices.DeleteFunc(slices.Clone(rows), func(e notify.Evidence) bool { return e.Label == "" })
	for i, e := range rows {
		if i == maxRows {
			cells = append(cells, []string{p.words.Fill("ui.and_more", "n", strconv.Itoa(len(rows)-i))})
			break
		}
		mark := "+ "
		if !e.Supports {
			mark = "− "
		}
		if e.Unknown {
			mark = "? "
		}
		reading := e.Reading
		if reading == format.None {
			reading = p.words.Text("ui.mark.unread")
		}
		cells = append(cells, []string{mark + e.Label, reading, e.Text})
	}
	p.labelled(label, columns(cells))
}

func (p *page) reasoned(label string, rows []notify.Reasoned) {
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		line := r.Title
		if r.Why != "" {
			line += ": " + r.Why
		}
		lines = append(lines, line)
	}
	p.labelled(label, p.cut(lines, maxRows))
}

func (p *page) links(l notify.Links) {
	cells := [][]string{}
	for _, x := range [][2]string{
		{"ui.button.incident", l.Incident},
		{"ui.button.runbook", l.Runbook},
		{"ui.button.alert_runbook", l.AlertRunbook},
	} {
		if x[1] != "" {
			cells = append(cells, []string{p.words.Text(x[0]), x[1]})
		}
	}
	if len(cells) == 0 {
		return
	}
	p.blank()
	for _, line := range columns(cells) {
		// Addresses stay on one line: a terminal makes them clickable only then.
		p.line("  " + p.style(dim, line))
	}
}

// cut keeps the first rows and counts the rest.
func (p *page) cut(rows []string, limit int) []string {
	if len(rows) <= limit {
		return rows
	}
	return append(rows[:limit:limit], p.words.Fill("ui.and_more", "n", strconv.Itoa(len(rows)-limit)))
}
