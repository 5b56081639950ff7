package chatops

import (
	"regexp"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
)

// Limits of an answer, in runes and lines; Slack's are 3,000 a text, 75 a button and 30 in a confirmation's buttons.
const (
	maxLine    = 600
	maxReply   = 2800
	maxButton  = 75
	maxTitle   = 24 // Of a modal.
	maxConfirm = 280
)

// line is one line of an answer. Rich text shows it as it is, so nothing in a label can become a mention or a link.
type line struct {
	elements []slackgo.RichTextSectionElement
	plain    strings.Builder // The same, escaped, for the fallback text.
	runes    int
}

// ln begins a line with plain text.
func ln(s string) *line { return (&line{}).text(s) }

func (l *line) styled(s string, style *slackgo.RichTextSectionTextStyle) *line {
	// Spaces at the ends separate pieces of a line; Clean would drop them.
	before, after := "", ""
	if strings.HasPrefix(s, " ") {
		before = " "
	}
	if strings.HasSuffix(s, " ") && strings.TrimSpace(s) != "" {
		after = " "
	}
	s = notify.Clean(s, maxLine)
	if s == "" && before == "" {
		return l
	}
	s = before + s + after
	l.elements = append(l.elements, slackgo.NewRichTextSectionTextElement(s, style))
	l.plain.WriteString(escape(s))
	l.runes += notify.Runes(s)
	return l
}

func (l *line) text(s string) *line { return l.styled(s, nil) }

func (l *line) bold(s string) *line {
	return l.styled(s, &slackgo.RichTextSectionTextStyle{Bold: true})
}

func (l *line) code(s string) *line {
	return l.styled(s, &slackgo.RichTextSectionTextStyle{Code: true})
}

// link adds a link, or only its label when there is no address.
func (l *line) link(address, label string) *line {
	label = notify.Clean(label, maxLine)
	if address == "" || label == "" {
		return l.text(label)
	}
	l.elements = append(l.elements, slackgo.NewRichTextSectionLinkElement(address, label, nil))
	l.plain.WriteString(escape(label))
	l.runes += notify.Runes(label) + len(address)
	return l
}

// user adds a person, whom Slack shows by name.
func (l *line) user(id string) *line {
	if !isUser(id) {
		return l.text(id)
	}
	l.elements = append(l.elements, slackgo.NewRichTextSectionUserElement(id, nil))
	l.plain.WriteString("<@" + id + ">")
	l.runes += len(id)
	return l
}

// clock adds a time that Slack shows in each reader's own zone; fallback is for where it cannot.
func (l *line) clock(t time.Time, fallback string) *line {
	l.elements = append(l.elements, slackgo.NewRichTextSectionDateElement(t.Unix(), "{date_short_pretty} {time}", nil, &fallback))
	l.plain.WriteString(escape(fallback))
	l.runes += notify.Runes(fallback)
	return l
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// broadcast is how people call a whole channel; some clients link it in plain text too.
var broadcast = regexp.MustCompile(`@(here|channel|everyone|group)\b`)

// escape makes text safe for Slack's text objects.
func escape(s string) string {
	return broadcast.ReplaceAllString(escaper.Replace(s), "@\u2060$1")
}

// reply is an answer: lines, and buttons below them.
type reply struct {
	lines   []*line
	buttons []slackgo.BlockElement
}

func says(lines ...*line) reply { return reply{lines: lines} }

// content is the answer as Slack takes it. Lines that do not fit are left out whole, the last ones first; what is left
// ends with an ellipsis.
func (r reply) content() (text string, blocks []slackgo.Block) {
	var elements []slackgo.RichTextSectionElement
	var plain []string
	used := 0
	for _, l := range r.lines {
		if l == nil || len(l.elements) == 0 {
			continue
		}
		if used+l.runes > maxReply {
			elements = append(elements, slackgo.NewRichTextSectionTextElement("\n…", nil))
			plain = append(plain, "…")
			break
		}
		if len(elements) > 0 {
			elements = append(elements, slackgo.NewRichTextSectionTextElement("\n", nil))
		}
		elements = append(elements, l.elements...)
		plain = append(plain, l.plain.String())
		used += l.runes + 1
	}
	if len(elements) == 0 {
		elements, plain = append(elements, slackgo.NewRichTextSectionTextElement("–", nil)), []string{"–"}
	}
	blocks = append(blocks, slackgo.NewRichTextBlock("", slackgo.NewRichTextSection(elements...)))
	if len(r.buttons) > 0 {
		blocks = append(blocks, slackgo.NewActionBlock("", r.buttons[:min(len(r.buttons), 25)]...))
	}
	return strings.Join(plain, "\n"), blocks
}

// button is a button with a label and a value that comes back when it is pressed.
func button(action, label, value string) *slackgo.ButtonBlockElement {
	return slackgo.NewButtonBlockElement(action, value, plainText(label, maxButton))
}

// plainText is a plain_text object, which Slack still looks for entities in.
func plainText(s string, limit int) *slackgo.TextBlockObject {
	// An entity counts as what is sent; cut first, so that none is cut in two, and again if the entities made it too long.
	out := escape(notify.Clean(s, limit))
	for n := limit; notify.Runes(out) > limit; n-- {
		out = escape(notify.Clean(s, n))
	}
	return &slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: out}
}
