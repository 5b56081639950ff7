package web

import (
	"html/template"
	"io"

	"vllm-triage/notify"
	"vllm-triage/triage"
	"vllm-triage/triage/kb/runbook"
)

// RunbookView is a runbook, alone or opened from an incident.
type RunbookView struct {
	Site Site
	Page *runbook.Page // Book.Get in the reader's language.
	Book *runbook.Book // Has the titles of other pages; nil is the shipped one.
	// Report is the incident's newest one; nil opens the page without an incident, and so without its forms.
	Report *triage.Report
	// Previous is the report before, as for the incident's message: when the incident is over it has the numbers.
	Previous *triage.Report

	Steps  []StepRecord // Of this incident, all pages; the newest state of each step.
	Checks []Recheck    // Of this incident, the oldest first.
	Seen   []Seen       // What was done in similar incidents, the best first.
}

// Runbook writes the page of a runbook.
func Runbook(w io.Writer, v RunbookView) error {
	p, err := newRunbookPage(v)
	if err != nil {
		return err
	}
	return render(w, "runbook", p)
}

// runbookPage is what runbook.html shows.
type runbookPage struct {
	page
	ID       string
	Name     string
	Summary  string
	Kind     string
	Incident *incidentLink
	Intro    template.HTML
	Outro    template.HTML
	Steps    []stepCard
	Progress string
	Bar      string
	Outcome  *recordRow // Of the runbook as a whole.
	Checks   []checkTable
	Helped   []recordRow
	Failed   []recordRow
}

// incidentLink leads back to the incident that a runbook was opened from.
type incidentLink struct {
	ID, Href, Headline, Since, Status, Tone string
}

// stepCard is a step with what became of it.
type stepCard struct {
	runbook.Step
	Number int
	Done   bool
	State  string // As in its record; StateOpen without one.
	Record *recordRow
	Checks []checkTable
}

func newRunbookPage(v RunbookView) (runbookPage, error) {
	book := v.Book
	if book == nil {
		book = runbook.Default()
	}
	p := runbookPage{
		ID: v.Page.ID, Name: v.Page.Title, Summary: v.Page.Summary, Kind: string(v.Page.Kind),
	}
	incident := ""
	if v.Report != nil {
		incident = v.Report.Incident.ID
	}
	p.page = newPage(v.Site, "runbooks", RunbookPath(v.Page.ID), "incident", incident)
	p.Title = p.T("runbook.title", "title", v.Page.Title)
	in := &runbook.Filling{}
	if v.Report != nil {
		m := notify.NewMessage(*v.Report, notify.Options{Language: p.Lang(), Location: p.Location, Previous: v.Previous})
		p.Incident = p.openedFrom(v.Report.Incident.ID, m)
		in = NewFilling(toldReport(*v.Report, v.Previous, m), p.Lang(), p.Location)
		p.Tone = p.Incident.Tone
	}
	in.Link = func(id string) string {
		address := p.link(RunbookPath(id), "incident", incident)
		if incident != "" {
			address = p.granted(address)
		}
		return address
	}
	filled, err := v.Page.Fill(in)
	if err != nil {
		// A scope that makes no matchers must not cost the page; its queries then say MODEL.
		in.Matchers = ""
		if filled, err = v.Page.Fill(in); err != nil {
			return runbookPage{}, err
		}
	}
	p.Intro, p.Outro = filled.Intro, filled.Outro
	p.steps(v, filled, book)
	p.Checks = p.checks(v, "")
	for _, s := range v.Seen {
		row := p.seenRow(book, s)
		if s.State == StateDidNotHelp {
			p.Failed = append(p.Failed, row)
		} else {
			p.Helped = append(p.Helped, row)
		}
	}
	return p, nil
}

func (p page) openedFrom(id string, m notify.Message) *incidentLink {
	return &incidentLink{
		ID: id, Href: p.granted(p.link(IncidentPath(id))),
		Headline: m.Headline, Since: m.Since, Status: m.StatusText, Tone: tone(m),
	}
}

func (p *runbookPage) steps(v RunbookView, filled runbook.Filled, book *runbook.Book) {
	records := map[string]StepRecord{}
	for _, s := range v.Steps {
		if s.Page == v.Page.ID {
			records[s.Step] = s
		}
	}
	done := 0
	for i, s := range filled.Steps {
		c := stepCard{Step: s, Number: i + 1, State: StateOpen}
		if rec, ok := records[s.ID]; ok && rec.State != StateOpen {
			row := p.stepRow(book, rec)
			row.Title = "" // It stands above.
			c.Done, c.State, c.Record = true, rec.State, &row
			done++
		}
		c.Checks = p.checks(v, s.ID)
		p.Steps = append(p.Steps, c)
	}
	if rec, ok := records[""]; ok && rec.State != StateOpen {
		row := p.stepRow(book, rec)
		row.Title = ""
		p.Outcome = &row
	}
	if p.Incident != nil && len(p.Steps) > 0 {
		p.Progress = p.N("runbook.progress", done, "total", p.f.Change(nil, number(len(p.Steps)), triage.Count))
		p.Bar = bar(float64(done) / float64(len(p.Steps)))
	}
}

// checks are the re-checks that were asked for at a step of this page, or at its end.
func (p *runbookPage) checks(v RunbookView, step string) []checkTable {
	var out []checkTable
	for _, c := range v.Checks {
		if c.Page == v.Page.ID && c.Step == step {
			out = append(out, p.check(c))
		}
	}
	return out
}

// Can says whether the reader may send forms. All of them are about an incident.
func (p runbookPage) Can() bool { return p.Incident != nil && p.page.Can() }

// Action is the address of a form about the incident.
func (p runbookPage) Action(what string) string { return p.action(p.Incident.ID, what) }

func number(n int) *float64 {
	v := float64(n)
	return &v
}
