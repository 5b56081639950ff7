package console

import (
	"regexp"
	"strings"
	"unicode"

	"vllm-triage/notify/locale"
)

// labelWidth is the column in which texts begin, after their labels.
const labelWidth = 18

// page collects the lines of a message. Each begins with a bar in the colour of the message's state.
type page struct {
	words  *locale.Catalogue
	colour bool
	bar    string
	out    strings.Builder
	gap    bool
}

func (p *page) style(code, s string) string {
	if !p.colour || code == "" || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// line writes one line behind the bar.
func (p *page) line(s string) {
	if p.gap {
		p.out.WriteString(p.style(p.bar, "│") + "\n")
		p.gap = false
	}
	p.out.WriteString(strings.TrimRight(p.style(p.bar, "│")+" "+s, " ") + "\n")
}

// blank asks for an empty line before the next one.
func (p *page) blank() { p.gap = p.out.Len() > 0 }

// paragraph wraps a text behind an indent.
func (p *page) paragraph(indent, s, code string) {
	for _, l := range wrap(s, Width-2-width(indent), 0) {
		p.line(indent + p.style(code, l))
	}
}

// heading wraps a text behind a mark.
func (p *page) heading(code, mark, s string) {
	for i, l := range wrap(s, Width-2-width(mark), 0) {
		if i > 0 {
			mark = strings.Repeat(" ", width(mark))
		}
		p.line(p.style(code, mark+l))
	}
}

// labelled writes rows behind a label; rows that are empty are left out, and the label with them.
func (p *page) labelled(key string, rows []string) {
	label := p.words.Text(key)
	for _, row := range rows {
		if strings.Trim(row, " ·") == "" {
			continue
		}
		if width(label) >= labelWidth {
			p.line("  " + p.style(bold, label))
			label = ""
		}
		hang := hangingIndent(row)
		for i, l := range wrap(row, Width-4-labelWidth, hang) {
			if i > 0 {
				l = strings.Repeat(" ", hang) + l
			}
			p.line("  " + p.style(bold, pad(label, labelWidth)) + l)
			label = ""
		}
	}
}

// marker matches what a row's later lines go in behind: "1. ", "+ ", "− " or a clock.
var marker = regexp.MustCompile(`^(?:\d+\.|[+−]|\d\d:\d\d:\d\d) +`)

func hangingIndent(s string) int { return width(marker.FindString(s)) }

// columns lines up cells; the last cell of a row is not padded.
func columns(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:max(len(row)-1, 0)] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], min(width(cell), 34))
		}
	}
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(cell)
				break
			}
			b.WriteString(pad(cell, widths[i]) + "  ")
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

// wrap breaks a text at spaces into lines of at most limit columns, the second and later ones hang columns shorter;
// longer words are broken where they end. Runs of spaces within a line stay, so that columns do.
func wrap(s string, limit, hang int) []string {
	var lines []string
	for width(s) > limit {
		at := breakAt(s, limit)
		lines = append(lines, strings.TrimRight(s[:at], " "))
		s = strings.TrimLeft(s[at:], " ")
		if len(lines) == 1 {
			limit -= hang
		}
	}
	if s != "" {
		lines = append(lines, s)
	}
	return lines
}

// breakAt is the byte after which a line of limit columns ends.
func breakAt(s string, limit int) int {
	columns, space := 0, 0
	for i, r := range s {
		if r == ' ' {
			space = i
		}
		if columns += runeWidth(r); columns > limit {
			if space > 0 {
				return space
			}
			return max(i, len(string(r)))
		}
	}
	return len(s)
}

func pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(columns-width(s), 0))
}

// width is the number of terminal columns of a text.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth follows the wide and fullwidth ranges of Unicode's East Asian Width that matter here.
func runeWidth(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		return 0
	case r >= 0x1100 && r <= 0x115F, // Hangul initials.
		r >= 0x2E80 && r <= 0x303E, r >= 0x3041 && r <= 0x33FF, r >= 0x3400 && r <= 0x4DBF,
		r >= 0x4E00 && r <= 0x9FFF, r >= 0xA000 && r <= 0xA4CF,
		r >= 0xAC00 && r <= 0xD7A3, // Hangul syllables.
		r >= 0xF900 && r <= 0xFAFF, r >= 0xFE30 && r <= 0xFE6F,
		r >= 0xFF00 && r <= 0xFF60, r >= 0xFFE0 && r <= 0xFFE6,
		r >= 0x1F300 && r <= 0x1F64F, r >= 0x1F680 && r <= 0x1F6FF, r >= 0x1F7E0 && r <= 0x1F7EB,
		r >= 0x1F900 && r <= 0x1F9FF, r >= 0x20000 && r <= 0x3FFFD:
		return 2
	default:
		return 1
	}
}
