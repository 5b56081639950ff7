package fakeslack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Markup is what Slack would make of a message's texts: whom it calls and where it leads.
type Markup struct {
	// Mentions are the calls in it, as written: <!here>, <@U…>, <!subteam^S…>; rich text ones in the same form.
	Mentions []string
	// Links are the addresses that readers can click.
	Links []string
	// Violations are characters that should have been escaped and links that are no http or https.
	Violations []string
}

// ReadMarkup reads the fallback text and the blocks of a message.
func ReadMarkup(text string, blocks json.RawMessage) Markup {
	var m Markup
	m.mrkdwn("text", text)
	var tree any
	if len(blocks) > 0 && json.Unmarshal(blocks, &tree) == nil {
		m.walk("", tree)
	}
	return m
}

func (m *Markup) walk(at string, x any) {
	switch x := x.(type) {
	case []any:
		for i, e := range x {
			m.walk(fmt.Sprintf("%s/%d", at, i), e)
		}
	case object:
		switch x["type"] {
		case "mrkdwn":
			s, _ := x["text"].(string)
			m.mrkdwn(at, s)
			return
		case "plain_text":
			// No links and mentions in these, but entities are decoded and raw brackets are still wrong.
			s, _ := x["text"].(string)
			m.bare(at, s)
			return
		case "user":
			m.Mentions = append(m.Mentions, fmt.Sprintf("<@%v>", x["user_id"]))
		case "usergroup":
			m.Mentions = append(m.Mentions, fmt.Sprintf("<!subteam^%v>", x["usergroup_id"]))
		case "broadcast":
			m.Mentions = append(m.Mentions, fmt.Sprintf("<!%v>", x["range"]))
		case "link", "button":
			if s, ok := x["url"].(string); ok && s != "" {
				m.link(at, s)
			}
		}
		for k, e := range x {
			m.walk(at+"/"+k, e)
		}
	}
}

var (
	control = regexp.MustCompile(`<[^<>]*>`)
	atWord  = regexp.MustCompile(`@(here|channel|everyone)\b`)
)

// mrkdwn reads a text that Slack parses.
func (m *Markup) mrkdwn(at, s string) {
	for _, c := range control.FindAllString(s, -1) {
		inside := c[1 : len(c)-1]
		switch {
		case strings.HasPrefix(inside, "!date^"):
		case strings.HasPrefix(inside, "!"), strings.HasPrefix(inside, "@"), strings.HasPrefix(inside, "#"):
			m.Mentions = append(m.Mentions, c)
		default:
			address, _, _ := strings.Cut(inside, "|")
			m.link(at, address)
		}
	}
	rest := control.ReplaceAllString(s, "")
	m.bare(at, rest)
	// With link_names or in old clients these call people even without brackets.
	for _, w := range atWord.FindAllString(rest, -1) {
		m.Violations = append(m.Violations, at+": bare "+w)
	}
}

func (m *Markup) link(at, address string) {
	m.Links = append(m.Links, address)
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		m.Violations = append(m.Violations, fmt.Sprintf("%s: link to %q", at, address))
	}
	if strings.ContainsAny(address, "<>| ") {
		m.Violations = append(m.Violations, fmt.Sprintf("%s: link with a raw character in %q", at, address))
	}
}

var entity = regexp.MustCompile(`&(amp|lt|gt);`)

// bare looks for characters that Slack takes for markup.
func (m *Markup) bare(at, s string) {
	s = entity.ReplaceAllString(s, "")
	if i := strings.IndexAny(s, "&<>"); i >= 0 {
		m.Violations = append(m.Violations, fmt.Sprintf("%s: unescaped %q in %q", at, s[i], s))
	}
}
