package runbook

import (
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// Page is one runbook in one language. It is read-only.
type Page struct {
	ID      string
	Lang    string // The language of the text.
	Kind    Kind
	Title   string
	Summary string // One sentence.
	// Asked is the language that was asked for when the page does not exist in it; else empty. Render says so.
	Asked string
	// Steps are the steps as they read without an incident; Fill has them with its numbers.
	Steps []Step

	intro, outro part
	steps        []step
}

// Step is one step of a page.
type Step struct {
	ID        string        // Stable, the same in all languages, and the anchor in the page.
	Title     string        // Plain text.
	HTML      template.HTML // What to do, without title and check.
	Check     string        // How to see that it helped; plain text.
	CheckHTML template.HTML // The same with its marks, for a line of HTML.
}

// Filled is a page in pieces, so that a server can put its own controls beside the steps.
type Filled struct {
	Intro template.HTML // Up to and with the heading of the steps.
	Steps []Step
	Outro template.HTML // From the first heading after the steps.
}

// step is a step as it was read.
type step struct {
	id, title   string
	heading     string // Markdown.
	body, check part
}

// part is a stretch of Markdown with placeholders.
type part struct {
	pieces []piece
	links  []string // Addresses that stay inside the book.
}

// newPart reads a stretch of a page and validates it with all its placeholders and, if that differs, with none.
func newPart(src string, v *vocabulary) (part, error) {
	pieces, err := parsePieces(src)
	if err != nil {
		return part{}, err
	}
	var errs []error
	fields(pieces, func(f field) {
		if f.name == "num" && !v.signals[f.signal] {
			errs = append(errs, fmt.Errorf("%s: the signal is unknown", f))
		}
	})
	full := expansion{in: probe(pieces)}
	full.write(pieces)
	links, err := lint(&full, v)
	errs = append(errs, err)
	if slices.ContainsFunc(pieces, func(p piece) bool { return p.block }) {
		bare := expansion{}
		bare.write(pieces)
		_, err := lint(&bare, v)
		errs = append(errs, err)
	}
	return part{pieces: pieces, links: links}, errors.Join(errs...)
}

// probe is a filling that knows every value of some pieces.
func probe(pieces []piece) *Filling {
	in := &Filling{Numbers: map[string]map[string]string{}, Scope: "0", Where: "0", Since: "0"}
	fields(pieces, func(f field) {
		if f.name == "num" {
			if in.Numbers[f.signal] == nil {
				in.Numbers[f.signal] = map[string]string{}
			}
			in.Numbers[f.signal][f.when] = "0"
		}
	})
	return in
}

// html renders a part.
func (p part) html(in *Filling) (template.HTML, error) {
	e := expansion{in: in}
	e.write(p.pieces)
	out, err := render(e.text.String(), in.link)
	if err != nil {
		return "", err
	}
	out, err = e.fill(out, escapeHTML)
	return template.HTML(out), err //nolint:gosec // The renderer escapes the page's text, fill the values.
}

// text is a part as plain text.
func (p part) text(in *Filling) (string, error) {
	e := expansion{in: in}
	e.write(p.pieces)
	out, err := e.fill(plain(e.text.String()), escapeNothing)
	return strings.Join(strings.Fields(out), " "), err
}

// fill renders a step.
func (s step) fill(in *Filling) (Step, error) {
	body, err1 := s.body.html(in)
	line, err2 := s.check.html(in)
	words, err3 := s.check.text(in)
	// The check goes into a line of the caller's, so it must be a paragraph and no more.
	inner, open := strings.CutPrefix(strings.TrimSpace(string(line)), "<p>")
	inner, closed := strings.CutSuffix(inner, "</p>")
	var err4 error
	if !open || !closed || strings.Contains(inner, "<p>") {
		err4 = fmt.Errorf("step %s: the check is not one paragraph", s.id)
	}
	return Step{
		ID: s.id, Title: s.title, HTML: body, Check: words,
		CheckHTML: template.HTML(inner), //nolint:gosec // As rendered.
	}, errors.Join(err1, err2, err3, err4)
}

// compile renders the steps for the page without an incident.
func (p *Page) compile() error {
	filled, err := p.Fill(nil)
	p.Steps = filled.Steps
	return err
}

// Fill renders the page in pieces, with the numbers of an incident; nil opens it without one. It fails when in.Matchers
// are not PromQL matchers.
func (p *Page) Fill(in *Filling) (Filled, error) {
	if err := in.check(); err != nil {
		return Filled{}, err
	}
	var out Filled
	var err1, err2 error
	out.Intro, err1 = p.intro.html(in)
	out.Outro, err2 = p.outro.html(in)
	errs := []error{err1, err2}
	for _, s := range p.steps {
		filled, err := s.fill(in)
		out.Steps = append(out.Steps, filled)
		errs = append(errs, err)
	}
	if p.Asked != "" {
		out.Intro = template.HTML(fmt.Sprintf( //nolint:gosec // The only value is escaped.
			"<p class=\"note\">There is no page in the language %s yet; this is the English one.</p>\n",
			escapeHTML(fmt.Sprintf("%q", p.Asked)))) + out.Intro
	}
	return out, errors.Join(errs...)
}

// Render renders the body of the page, without its title, with the numbers of an incident; nil opens it without one. Steps
// have their id as anchor, checks the class "check". It fails when in.Matchers are not PromQL matchers.
func (p *Page) Render(in *Filling) (template.HTML, error) {
	filled, err := p.Fill(in)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(string(filled.Intro))
	for i, s := range filled.Steps {
		title, err := render(p.steps[i].heading, in.link)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s%s<p class=\"check\"><strong>%s</strong> %s</p>\n",
			title, s.HTML, languages[p.Lang].check, s.CheckHTML)
	}
	b.WriteString(string(filled.Outro))
	return template.HTML(b.String()), nil //nolint:gosec // Joined from rendered pieces.
}

// Step returns the step of that id, as it reads without an incident.
func (p *Page) Step(id string) (Step, bool) {
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.ID == id })
	if i < 0 {
		return Step{}, false
	}
	return p.Steps[i], true
}

func (p *Page) stepIDs() []string {
	ids := make([]string, 0, len(p.steps))
	for _, s := range p.steps {
		ids = append(ids, s.id)
	}
	return ids
}
