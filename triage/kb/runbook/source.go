package runbook

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	maxFile    = 64 << 10 // Bytes; a page is 40 to 90 lines.
	maxTitle   = 80       // Runes.
	maxSummary = 220      // Runes.
)

var (
	idPattern      = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	headingPattern = regexp.MustCompile(`^(#{2,3}) (\S.*\S) \{#([a-z][a-z0-9-]*)\}$`)
)

// front is a page's front matter.
type front struct {
	ID      string `yaml:"id"`
	Title   string `yaml:"title"`
	Summary string `yaml:"summary"`
}

// parsePage reads and validates one file; links are left to the book.
func parsePage(lang, id string, data []byte, v *vocabulary) (*Page, error) {
	switch {
	case len(data) > maxFile:
		return nil, fmt.Errorf("file is larger than %d KiB", maxFile>>10)
	case !utf8.Valid(data):
		return nil, errors.New("file is not UTF-8")
	case strings.Contains(string(data), holderOpen) || strings.Contains(string(data), holderClose):
		return nil, errors.New("file holds the private-use characters U+E000 or U+E001")
	case !idPattern.MatchString(id):
		return nil, errors.New("the file's name must be snake_case")
	}
	src := strings.ReplaceAll(string(data), "\r\n", "\n")
	head, body, err := cutFront(src)
	if err != nil {
		return nil, err
	}
	p := &Page{ID: id, Lang: lang, Title: head.Title, Summary: head.Summary, Kind: kindOf(id)}
	if err := errors.Join(head.validate(id), p.parseBody(body, v)); err != nil {
		return nil, err
	}
	return p, nil
}

// cutFront splits the front matter from the body.
func cutFront(src string) (front, string, error) {
	rest, ok := strings.CutPrefix(src, "---\n")
	if !ok {
		return front{}, "", errors.New("front matter is missing: the first line must be ---")
	}
	raw, body, ok := strings.Cut(rest, "\n---\n")
	if !ok {
		return front{}, "", errors.New("front matter does not end with ---")
	}
	var f front
	dec := yaml.NewDecoder(strings.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		return front{}, "", fmt.Errorf("read front matter: %w", err)
	}
	var more any
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return front{}, "", errors.New("front matter holds a second YAML document")
	}
	return f, body, nil
}

func (f front) validate(id string) error {
	var errs []error
	if f.ID != id {
		errs = append(errs, fmt.Errorf("id %q does not match the file's name", f.ID))
	}
	for _, t := range []struct {
		name, text string
		limit      int
	}{{"title", f.Title, maxTitle}, {"summary", f.Summary, maxSummary}} {
		switch {
		case t.text == "" || strings.ContainsFunc(t.text, hidden):
			errs = append(errs, fmt.Errorf("%s is empty or holds control characters", t.name))
		case utf8.RuneCountInString(t.text) > t.limit:
			errs = append(errs, fmt.Errorf("%s is longer than %d characters", t.name, t.limit))
		case strings.Contains(t.text, "{{"):
			errs = append(errs, fmt.Errorf("%s holds a placeholder", t.name))
		}
	}
	if f.Summary != "" && !strings.HasSuffix(f.Summary, ".") {
		errs = append(errs, errors.New("summary must be one sentence with its full stop"))
	}
	return errors.Join(errs...)
}

// heading is a heading outside code fences.
type heading struct {
	level         int
	title, anchor string
	line          int
}

// headings finds the headings of a body. Any line that starts with # outside a fence must be one, with its anchor.
func headings(lines []string) ([]heading, error) {
	var out []heading
	var errs []error
	seen := map[string]bool{}
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fenced = !fenced
		}
		if fenced || !strings.HasPrefix(line, "#") {
			continue
		}
		m := headingPattern.FindStringSubmatch(line)
		if len(m) == 0 || strings.Contains(m[2], "{{") {
			errs = append(errs, fmt.Errorf("heading %q is not \"## Title {#anchor}\"", excerpt(line)))
			continue
		}
		if seen[m[3]] {
			errs = append(errs, fmt.Errorf("anchor %q stands twice", m[3]))
		}
		seen[m[3]] = true
		out = append(out, heading{level: len(m[1]), title: m[2], anchor: m[3], line: i})
	}
	if fenced {
		errs = append(errs, errors.New("a code fence does not end"))
	}
	return out, errors.Join(errs...)
}

// parseBody splits the body into what stands before the steps, the steps, and what stands after them.
func (p *Page) parseBody(body string, v *vocabulary) error {
	lines := strings.Split(body, "\n")
	found, err := headings(lines)
	if err != nil {
		return err
	}
	if err := checkSections(p.Lang, lines, found); err != nil {
		return err
	}
	text := func(from, to int) string { return strings.Join(lines[from:to], "\n") + "\n" }
	var errs []error
	add := func(where, src string) part {
		part, err := newPart(src, v)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
		return part
	}
	firstStep, afterSteps := 0, 0
	for i, h := range found {
		end := len(lines)
		if i+1 < len(found) {
			end = found[i+1].line
		}
		switch {
		case h.level == 2 && h.anchor == "steps":
			firstStep = end
		case h.level == 3:
			body, check, err := cutCheck(lines[h.line+1:end], languages[p.Lang].check)
			where := "step " + h.anchor
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", where, err))
				continue
			}
			p.steps = append(p.steps, step{
				id: h.anchor, title: plain(h.title),
				heading: fmt.Sprintf("### %s {#%s}\n", h.title, h.anchor),
				body:    add(where, body), check: add(where+" check", check),
			})
		case h.level == 2 && h.anchor == "over":
			afterSteps = h.line
		}
	}
	if len(p.steps) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("there are no steps"))
	}
	p.intro = add("before the steps", text(0, firstStep))
	p.outro = add("after the steps", text(afterSteps, len(lines)))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return p.compile()
}

// checkSections wants the fixed sections in their order, steps in theirs, and no other heading.
func checkSections(lang string, lines []string, found []heading) error {
	var errs []error
	if len(found) > 0 && strings.TrimSpace(strings.Join(lines[:found[0].line], "")) != "" {
		errs = append(errs, errors.New("text stands before the first heading"))
	}
	want := languages[lang].sections
	n, current := 0, ""
	for _, h := range found {
		if h.level == 3 {
			if current != "steps" {
				errs = append(errs, fmt.Errorf("heading %q: only steps are level three", h.title))
			}
			continue
		}
		current = h.anchor
		if n >= len(want) || h.anchor != want[n].anchor || h.title != want[n].title {
			errs = append(errs, fmt.Errorf("section %d is \"%s {#%s}\", want %s", n+1, h.title, h.anchor, sectionNames(want)))
			return errors.Join(errs...)
		}
		n++
	}
	if n < len(want) {
		errs = append(errs, fmt.Errorf("%d of %d sections are there, want %s", n, len(want), sectionNames(want)))
	}
	return errors.Join(errs...)
}

func sectionNames(want []section) string {
	names := make([]string, 0, len(want))
	for _, s := range want {
		names = append(names, fmt.Sprintf("\"%s {#%s}\"", s.title, s.anchor))
	}
	return strings.Join(names, ", ")
}

// cutCheck splits a step into its text and its check, which is the last paragraph and the only one of its kind.
func cutCheck(lines []string, word string) (body, check string, err error) {
	at := -1
	for i, line := range lines {
		if strings.HasPrefix(line, word) {
			if at >= 0 {
				return "", "", fmt.Errorf("there is more than one line %q", word)
			}
			at = i
		}
	}
	if at < 0 {
		return "", "", fmt.Errorf("there is no line %q", word)
	}
	body = strings.TrimSpace(strings.Join(lines[:at], "\n"))
	check = strings.TrimSpace(strings.TrimPrefix(strings.Join(lines[at:], "\n"), word))
	switch {
	case body == "":
		return "", "", errors.New("there is no text")
	case at > 0 && strings.TrimSpace(lines[at-1]) != "":
		return "", "", fmt.Errorf("%q must start a paragraph", word)
	case check == "":
		return "", "", fmt.Errorf("%q says nothing", word)
	case strings.Contains(check, "\n\n") || strings.Contains(check, "```"):
		return "", "", fmt.Errorf("%q must be the last paragraph of the step", word)
	}
	return body + "\n", check, nil
}
