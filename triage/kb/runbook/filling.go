package runbook

import (
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Filling is what an incident puts into a page. All of it is untrusted and may be empty; a passage whose value is missing
// is left out. The zero value, like nil, opens the page without an incident.
type Filling struct {
	// Numbers are formatted values by signal id and "before" or "during", for example Numbers["kv_usage"]["during"] =
	// "98%".
	Numbers map[string]map[string]string
	Scope   string // The model, for people.
	Where   string // The replicas, for people.
	Since   string // The onset, for people.
	// Matchers are PromQL label matchers without braces, for example model_name="llama",namespace="prod". They are shown
	// in queries that people copy, so they must be valid PromQL. Empty stands for model_name="MODEL".
	Matchers string
	// Link makes the address of another page; nil stands for /runbooks/<id>. It does not count as an incident.
	Link func(id string) string
}

const (
	noMatchers = `model_name="MODEL"`
	linkPrefix = "/runbooks/"
	// maxValue bounds a value in runes: a label can hold anything.
	maxValue = 300

	// holderOpen and holderClose are private-use characters around the number of a value while Markdown is rendered.
	holderOpen  = "\ue000"
	holderClose = "\ue001"
)

var holderPattern = regexp.MustCompile(holderOpen + `(\d{1,6})` + holderClose)

func (in *Filling) incident() bool {
	return in != nil && (len(in.Numbers) > 0 || in.Scope != "" || in.Where != "" || in.Since != "")
}

func (in *Filling) link(id string) string {
	if in == nil || in.Link == nil {
		return linkPrefix + id
	}
	return in.Link(id)
}

// value is the text for a placeholder, cleaned but not escaped; empty when it is not known.
func (in *Filling) value(f field) string {
	if f.name == "matchers" {
		if in == nil || in.Matchers == "" {
			return noMatchers
		}
		return in.Matchers
	}
	if in == nil {
		return ""
	}
	switch f.name {
	case "num":
		return clean(in.Numbers[f.signal][f.when])
	case "scope":
		return clean(in.Scope)
	case "where":
		return clean(in.Where)
	case "since":
		return clean(in.Since)
	default:
		return ""
	}
}

// check refuses matchers that would turn a query to copy into another query.
func (in *Filling) check() error {
	if in == nil || in.Matchers == "" {
		return nil
	}
	if strings.ContainsFunc(in.Matchers, hidden) {
		return fmt.Errorf("fill runbook: matchers %q hold control characters", in.Matchers)
	}
	// The last matcher must survive: else a brace or a comment in the text ends the selector early.
	const last = "zz_end"
	got, err := parser.NewParser(parser.Options{}).ParseMetricSelector("x{" + in.Matchers + "," + last + `="1"}`)
	if err != nil {
		return fmt.Errorf("fill runbook: matchers %q are not PromQL: %w", in.Matchers, err)
	}
	if !slices.ContainsFunc(got, func(m *labels.Matcher) bool { return m.Name == last }) {
		return fmt.Errorf("fill runbook: matchers %q end their selector early", in.Matchers)
	}
	return nil
}

// clean makes a value fit to stand in a line of text: no line breaks, no characters that hide or reorder others.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case hidden(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxValue {
		s = string(r[:maxValue-1]) + "…"
	}
	return s
}

// hidden reports characters that are not seen as such: controls, format characters (among them those that reverse the
// direction of text) and private use, which the place holders are made of.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// expansion writes pieces as Markdown with place holders, and remembers what belongs in them.
type expansion struct {
	in     *Filling
	text   strings.Builder
	fields []field
}

func (e *expansion) write(pieces []piece) {
	drop := false // A block that stood on its own line has vanished: its line break follows.
	for _, p := range pieces {
		switch {
		case p.block:
			if e.known(p.inside) {
				e.write(p.inside)
			} else {
				drop = p.whole
			}
			continue
		case p.field.name != "":
			e.text.WriteString(holderOpen + strconv.Itoa(len(e.fields)) + holderClose)
			e.fields = append(e.fields, p.field)
		case drop:
			e.text.WriteString(strings.TrimPrefix(p.text, "\n"))
		default:
			e.text.WriteString(p.text)
		}
		drop = false
	}
}

// known says whether there is an incident and it has all values of a block.
func (e *expansion) known(pieces []piece) bool {
	ok := e.in.incident()
	fields(pieces, func(f field) { ok = ok && e.in.value(f) != "" })
	return ok
}

// fill puts the escaped values where the place holders stand in finished HTML or plain text.
func (e *expansion) fill(out string, escape func(string) string) (string, error) {
	var err error
	out = holderPattern.ReplaceAllStringFunc(out, func(s string) string {
		n, convErr := strconv.Atoi(holderPattern.FindStringSubmatch(s)[1])
		if convErr != nil || n >= len(e.fields) {
			err = errors.New("fill runbook: a place holder has no value")
			return ""
		}
		return escape(e.in.value(e.fields[n]))
	})
	return out, err
}

func escapeHTML(s string) string { return html.EscapeString(s) }

func escapeNothing(s string) string { return s }
