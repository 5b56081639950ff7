package slack

import (
	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
)

// page collects the blocks of one message and keeps them within Slack's limits: a row that does not fit is left out
// whole and counted.
type page struct {
	words  *locale.Catalogue
	blocks []slackgo.Block
	used   int // Runes of all texts so far.
}

// left is how many runes still fit into the message.
func (p *page) left() int { return maxMessageText - p.used }

// add appends a block whose texts are that many runes; it reports whether it fit.
func (p *page) add(b slackgo.Block, runes int) bool {
	if len(p.blocks) >= maxBlocks || runes > p.left() {
		return false
	}
	p.blocks = append(p.blocks, b)
	p.used += runes
	return true
}

func (p *page) header(s string) {
	s = cut(plain(s), maxHeader)
	if s == "" {
		return
	}
	p.add(slackgo.NewHeaderBlock(&slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: s}), notify.Runes(s))
}

// context adds small grey text.
func (p *page) context(texts ...string) {
	var elements []slackgo.MixedElement
	runes := 0
	for _, s := range texts {
		s = cut(plain(s), maxText/2)
		if s == "" || len(elements) == maxContext {
			continue
		}
		elements = append(elements, &slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: s})
		runes += notify.Runes(s)
	}
	if len(elements) > 0 {
		p.add(slackgo.NewContextBlock("", elements...), runes)
	}
}

// line is a piece of rich text; it grows by its methods.
type line struct {
	elements []slackgo.RichTextSectionElement
	runes    int
}

func (l *line) styled(s string, style *slackgo.RichTextSectionTextStyle) *line {
	s = cut(s, maxText)
	if s == "" {
		return l // Slack refuses empty elements.
	}
	l.elements = append(l.elements, slackgo.NewRichTextSectionTextElement(s, style))
	l.runes += notify.Runes(s)
	return l
}

func (l *line) text(s string) *line { return l.styled(s, nil) }
func (l *line) bold(s string) *line {
	return l.styled(s, &slackgo.RichTextSectionTextStyle{Bold: true})
}

func (l *line) italic(s string) *line {
	return l.styled(s, &slackgo.RichTextSectionTextStyle{Italic: true})
}

func (l *line) code(s string) *line {
	return l.styled(s, &slackgo.RichTextSectionTextStyle{Code: true})
}

func (l *line) link(address, s string) *line {
	if address == "" {
		return l.text(s)
	}
	s = cut(s, maxText)
	if s == "" {
		return l
	}
	l.elements = append(l.elements, slackgo.NewRichTextSectionLinkElement(address, s, nil))
	l.runes += notify.Runes(s) + notify.Runes(address)
	return l
}

func (l *line) user(id string) *line {
	l.elements = append(l.elements, slackgo.NewRichTextSectionUserElement(id, nil))
	l.runes += notify.Runes(id)
	return l
}

func (l *line) empty() bool { return len(l.elements) == 0 }

// section turns lines into one rich text section with line breaks between them.
func section(lines ...*line) (*slackgo.RichTextSection, int) {
	var elements []slackgo.RichTextSectionElement
	runes := 0
	for _, l := range lines {
		if l.empty() {
			continue
		}
		if len(elements) > 0 {
			elements = append(elements, slackgo.NewRichTextSectionTextElement("\n", nil))
			runes++
		}
		elements = append(elements, l.elements...)
		runes += l.runes
	}
	if len(elements) == 0 {
		return nil, 0
	}
	return slackgo.NewRichTextSection(elements...), runes
}

// paragraph adds lines of rich text. Lines that do not fit are left out, the last ones first.
func (p *page) paragraph(lines ...*line) {
	for n := len(lines); n > 0; n-- {
		s, runes := section(lines[:n]...)
		if s == nil || p.add(slackgo.NewRichTextBlock("", s), runes) {
			return
		}
	}
}

// list adds a title and rows below it, within budget runes; rows that do not fit are counted in a last row. An empty
// list adds nothing.
func (p *page) list(title string, style slackgo.RichTextListElementType, rows []*line, budget int) {
	rows = nonEmpty(rows)
	if len(rows) == 0 {
		return
	}
	budget = min(budget, p.left())
	runes := notify.Runes(title) + moreReserve
	var items []slackgo.RichTextElement
	for _, row := range rows {
		if row.runes > budget/2 {
			continue // One giant must not hide all others.
		}
		if len(items) == maxListRows || runes+row.runes > budget {
			break
		}
		items = append(items, slackgo.NewRichTextSection(row.elements...))
		runes += row.runes
	}
	if runes > budget {
		return // Not even the title fits.
	}
	var elements []slackgo.RichTextElement
	if title != "" {
		elements = append(elements, slackgo.NewRichTextSection((&line{}).bold(title).elements...))
	}
	if len(items) > 0 {
		elements = append(elements, slackgo.NewRichTextList(style, 0, items...))
	}
	if rest := len(rows) - len(items); rest > 0 {
		elements = append(elements, slackgo.NewRichTextSection((&line{}).italic(p.more(rest)).elements...))
	}
	p.add(slackgo.NewRichTextBlock("", elements...), runes)
}

// table adds a title and a table below it, within budget runes and maxTableRows rows; rows that do not fit are counted.
// Slack takes one table a message (contracts: historically), and refuses empty cells.
func (p *page) table(title string, columns []string, rows [][]string, budget int) {
	if len(rows) == 0 {
		return
	}
	budget = min(budget, p.left())
	runes := notify.Runes(title) + moreReserve
	t := slackgo.NewTableBlock("")
	addRow := func(cells []string) bool {
		n := 0
		row := make([]slackgo.TableCell, 0, len(cells))
		for _, c := range cells {
			if c = cut(c, maxText/4); c == "" {
				c = "–"
			}
			row = append(row, slackgo.NewTableRawTextCell(c))
			n += notify.Runes(c)
		}
		if runes+n > budget {
			return false
		}
		runes += n
		t.AddRow(row...)
		return true
	}
	shown := 0
	if addRow(columns) {
		for shown < len(rows) && shown < maxTableRows-1 && addRow(rows[shown]) {
			shown++
		}
	}
	if shown == 0 || len(p.blocks)+3 > maxBlocks {
		p.paragraph((&line{}).bold(title).text(" " + p.more(len(rows))))
		return
	}
	settings := make([]slackgo.ColumnSetting, 0, len(columns))
	for range columns {
		settings = append(settings, slackgo.ColumnSetting{Align: slackgo.ColumnAlignmentLeft, IsWrapped: true})
	}
	p.paragraph((&line{}).bold(title))
	p.add(t.WithColumnSettings(settings...), runes-notify.Runes(title)-moreReserve)
	if rest := len(rows) - shown; rest > 0 {
		p.paragraph((&line{}).italic(p.more(rest)))
	}
}

func (p *page) more(n int) string { return p.words.Fill("ui.and_more", "n", locale.Grouped(n)) }

func nonEmpty(rows []*line) []*line {
	out := make([]*line, 0, len(rows))
	for _, r := range rows {
		if !r.empty() {
			out = append(out, r)
		}
	}
	return out
}
