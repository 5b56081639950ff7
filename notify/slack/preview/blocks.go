package preview

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// block is a Block Kit block made ready for the template. Kind says which fields are set.
type block struct {
	Kind     string // header, section, context, actions, rich, table, chart, image, divider or unknown.
	Level    int
	Spans    []span
	Fields   [][]span
	Controls []control
	Parts    []part
	Rows     [][][]part
	Chart    *chart
	Address  string
	Alt      string
}

// control is a button or a menu.
type control struct {
	Label   string
	Address string // Of a link button.
	Style   string // "", primary or danger.
	Menu    bool
	Options []string
}

// part is a piece of rich text.
type part struct {
	Kind  string // section, bullet, ordered, pre or quote.
	Spans []span
	Items [][]span
}

// span is text of one style.
type span struct {
	Text                       string
	Bold, Italic, Strike, Code bool
	Link                       string
	Mention                    bool
	Break                      bool
	// Dot is the colour of a round emoji, which is drawn: not every machine has a font with colours.
	Dot string
}

// chart is a line of Slack's data_visualization block.
type chart struct {
	Title, Points, First, Last string
}

type object = map[string]any

// parseBlocks reads the JSON of a message's blocks; what it does not know is shown as such.
func parseBlocks(raw json.RawMessage) []block {
	var list []any
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	out := make([]block, 0, len(list))
	for _, x := range list {
		if o, ok := x.(object); ok {
			out = append(out, parseBlock(o))
		}
	}
	return out
}

func parseBlock(o object) block {
	switch o["type"] {
	case "header":
		return block{Kind: "header", Spans: textObject(o["text"])}
	case "section":
		b := block{Kind: "section", Spans: textObject(o["text"])}
		for _, f := range array(o["fields"]) {
			b.Fields = append(b.Fields, textObject(f))
		}
		return b
	case "context":
		b := block{Kind: "context"}
		for _, e := range array(o["elements"]) {
			b.Fields = append(b.Fields, textObject(e))
		}
		return b
	case "actions":
		b := block{Kind: "actions"}
		for _, e := range array(o["elements"]) {
			if eo, ok := e.(object); ok {
				b.Controls = append(b.Controls, parseControl(eo))
			}
		}
		return b
	case "rich_text":
		return block{Kind: "rich", Parts: parseRich(o)}
	case "table":
		return parseTable(o)
	case "data_visualization":
		return block{Kind: "chart", Chart: parseChart(o)}
	case "image":
		return block{Kind: "image", Address: str(o["image_url"]), Alt: str(o["alt_text"])}
	case "divider":
		return block{Kind: "divider"}
	default:
		return block{Kind: "unknown", Spans: []span{{Text: str(o["type"])}}}
	}
}

func parseControl(o object) control {
	c := control{Label: flat(textObject(o["text"])), Address: str(o["url"]), Style: str(o["style"])}
	if o["type"] == "static_select" || o["type"] == "overflow" {
		c.Menu = true
		c.Label = flat(textObject(o["placeholder"]))
		for _, x := range array(o["options"]) {
			if oo, ok := x.(object); ok {
				c.Options = append(c.Options, flat(textObject(oo["text"])))
			}
		}
	}
	return c
}

func flat(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// textObject reads a plain_text or mrkdwn object.
func textObject(x any) []span {
	o, ok := x.(object)
	if !ok {
		return nil
	}
	if o["type"] == "mrkdwn" {
		return parseMrkdwn(str(o["text"]))
	}
	return lines(unescape(str(o["text"])), span{})
}

func parseRich(o object) []part {
	var out []part
	for _, e := range array(o["elements"]) {
		eo, ok := e.(object)
		if !ok {
			continue
		}
		switch eo["type"] {
		case "rich_text_list":
			p := part{Kind: str(eo["style"])}
			for _, item := range array(eo["elements"]) {
				if io, ok := item.(object); ok {
					p.Items = append(p.Items, inline(io))
				}
			}
			out = append(out, p)
		case "rich_text_preformatted":
			out = append(out, part{Kind: "pre", Spans: inline(eo)})
		case "rich_text_quote":
			out = append(out, part{Kind: "quote", Spans: inline(eo)})
		default:
			out = append(out, part{Kind: "section", Spans: inline(eo)})
		}
	}
	return out
}

// inline reads the elements of a rich text section. Slack shows their texts as they are.
func inline(o object) []span {
	var out []span
	for _, e := range array(o["elements"]) {
		eo, ok := e.(object)
		if !ok {
			continue
		}
		s := span{}
		if style, ok := eo["style"].(object); ok {
			s.Bold, s.Italic = on(style["bold"]), on(style["italic"])
			s.Strike, s.Code = on(style["strike"]), on(style["code"])
		}
		text := str(eo["text"])
		switch eo["type"] {
		case "link":
			s.Link = str(eo["url"])
			if text == "" {
				text = s.Link
			}
		case "user":
			s.Mention, text = true, "@"+str(eo["user_id"])
		case "usergroup":
			s.Mention, text = true, "@"+str(eo["usergroup_id"])
		case "broadcast":
			s.Mention, text = true, "@"+str(eo["range"])
		case "emoji":
			text = ":" + str(eo["name"]) + ":"
		}
		out = append(out, lines(text, s)...)
	}
	return out
}

// lines turns line feeds into breaks.
func lines(text string, style span) []span {
	var out []span
	for i, l := range strings.Split(text, "\n") {
		if i > 0 {
			out = append(out, span{Break: true})
		}
		out = append(out, dots(l, style)...)
	}
	return out
}

// dots sets the round emoji of a line apart.
func dots(l string, style span) []span {
	var out []span
	for l != "" {
		at := strings.IndexAny(l, "🔴🟠🟡🟢🔵⚪")
		if at < 0 {
			break
		}
		r, size := utf8.DecodeRuneInString(l[at:])
		if at > 0 {
			style.Text = l[:at]
			out = append(out, style)
		}
		out = append(out, span{Text: string(r), Dot: dotColours[r]})
		l = l[at+size:]
	}
	if l != "" {
		style.Text = l
		out = append(out, style)
	}
	return out
}

var dotColours = map[rune]string{
	'🔴': "red", '🟠': "orange", '🟡': "yellow", '🟢': "green", '🔵': "blue", '⚪': "white",
}

func parseTable(o object) block {
	b := block{Kind: "table"}
	for _, r := range array(o["rows"]) {
		var row [][]part
		for _, c := range array(r) {
			co, _ := c.(object)
			if co["type"] == "rich_text" {
				row = append(row, parseRich(co))
				continue
			}
			row = append(row, []part{{Kind: "section", Spans: lines(str(co["text"]), span{})}})
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

// parseChart draws the first series into a box of 300 by 60.
func parseChart(o object) *chart {
	out := &chart{Title: str(o["title"])}
	c, _ := o["chart"].(object)
	series := array(c["series"])
	if len(series) == 0 {
		return out
	}
	first, _ := series[0].(object)
	var values []float64
	low, high := math.Inf(1), math.Inf(-1)
	for _, d := range array(first["data"]) {
		do, _ := d.(object)
		v, _ := do["value"].(float64)
		values = append(values, v)
		low, high = math.Min(low, v), math.Max(high, v)
		if out.First == "" {
			out.First = str(do["label"])
		}
		out.Last = str(do["label"])
	}
	var points []string
	for i, v := range values {
		x := 300 * float64(i) / math.Max(float64(len(values)-1), 1)
		y := 30.0
		if high > low {
			y = 58 - 56*(v/2-low/2)/(high/2-low/2)
		}
		points = append(points, strconv.FormatFloat(x, 'f', 1, 64)+","+strconv.FormatFloat(y, 'f', 1, 64))
	}
	out.Points = strings.Join(points, " ")
	return out
}

func on(x any) bool {
	b, _ := x.(bool)
	return b
}

func array(x any) []any {
	a, _ := x.([]any)
	return a
}

func str(x any) string {
	switch x := x.(type) {
	case nil:
		return ""
	case string:
		return x
	default:
		return fmt.Sprint(x)
	}
}
