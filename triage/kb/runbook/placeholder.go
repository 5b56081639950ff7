package runbook

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// piece is a stretch of a page: Markdown as it stands, a placeholder, or a block that needs an incident.
type piece struct {
	text   string
	field  field
	inside []piece // The block's pieces.
	block  bool
	whole  bool // The block stands on lines of its own: without it, its line break goes too.
}

// field is a placeholder for a value.
type field struct {
	name   string // "num", "scope", "where", "since" or "matchers"; empty for text.
	signal string // Only for num.
	when   string // Only for num: "before" or "during".
}

func (f field) String() string {
	if f.name == "num" {
		return fmt.Sprintf("{{num %q %q}}", f.signal, f.when)
	}
	return "{{" + f.name + "}}"
}

var placeholderPattern = regexp.MustCompile(
	`\{\{\s*(?:(with_incident|end|scope|where|since|matchers)|(num)\s+"([a-z][a-z0-9_]*)"\s+"(before|during)")\s*\}\}`)

// parsePieces reads the placeholders of a Markdown text. Blocks do not nest.
func parsePieces(src string) ([]piece, error) {
	var out []piece
	var block *piece
	var errs []error
	add := func(p piece) {
		if block != nil {
			block.inside = append(block.inside, p)
		} else {
			out = append(out, p)
		}
	}
	literal := func(s string) {
		if i := strings.Index(s, "{{"); i >= 0 {
			errs = append(errs, fmt.Errorf("placeholder %q is unknown", excerpt(s[i:])))
		} else if i := strings.Index(s, "}}"); i >= 0 {
			errs = append(errs, fmt.Errorf("%q closes no placeholder", excerpt(s[i:])))
		}
		if s != "" {
			add(piece{text: s})
		}
	}
	at := 0
	for _, m := range placeholderPattern.FindAllStringSubmatchIndex(src, -1) {
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return src[m[2*n]:m[2*n+1]]
		}
		literal(src[at:m[0]])
		at = m[1]
		switch name := group(1) + group(2); name {
		case "with_incident":
			if block != nil {
				errs = append(errs, errors.New("{{with_incident}} stands inside another one"))
				continue
			}
			block = &piece{block: true, whole: m[0] == 0 || src[m[0]-1] == '\n'}
		case "end":
			if block == nil {
				errs = append(errs, errors.New("{{end}} closes nothing"))
				continue
			}
			done := *block
			done.whole = done.whole && at < len(src) && src[at] == '\n'
			block = nil
			add(done)
		default:
			f := field{name: name, signal: group(3), when: group(4)}
			if block == nil && name != "matchers" {
				errs = append(errs, fmt.Errorf("%s stands outside {{with_incident}}: the sentence breaks without one", f))
			}
			add(piece{field: f})
		}
	}
	literal(src[at:])
	if block != nil {
		errs = append(errs, errors.New("{{with_incident}} has no {{end}}"))
	}
	return out, errors.Join(errs...)
}

func excerpt(s string) string {
	r := []rune(strings.ReplaceAll(s, "\n", " "))
	return string(r[:min(len(r), 40)])
}

// fields calls visit for every placeholder.
func fields(pieces []piece, visit func(field)) {
	for _, p := range pieces {
		if p.field.name != "" {
			visit(p.field)
		}
		fields(p.inside, visit)
	}
}
