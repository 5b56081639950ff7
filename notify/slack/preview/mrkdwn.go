package preview

import (
	"regexp"
	"strings"
)

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// unescape decodes the three entities that Slack decodes. They are replaced in one pass, so &amp;lt; stays &lt;.
func unescape(s string) string { return entities.Replace(s) }

// token is what mrkdwn gives a meaning to: code, a sequence in angle brackets, or a pair of format characters at the
// edges of words.
var token = regexp.MustCompile("```(?s:(.+?))```|`([^`\n]+)`|<([^<>\n]+)>|" +
	`(?:^|[\s(])(\*[^*\n]+\*|_[^_\n]+_|~[^~\n]+~)(?:$|[\s.,;:!?)])`)

// parseMrkdwn reads Slack's markup into spans.
func parseMrkdwn(s string) []span { return mrkdwn(s, span{}) }

func mrkdwn(s string, style span) []span {
	var out []span
	for s != "" {
		at := token.FindStringSubmatchIndex(s)
		if at == nil {
			break
		}
		group := func(i int) (string, bool) {
			if at[2*i] < 0 {
				return "", false
			}
			return s[at[2*i]:at[2*i+1]], true
		}
		start, end := at[0], at[1]
		inner := style
		var spans []span
		if code, ok := group(1); ok {
			inner.Code = true
			spans = lines(unescape(code), inner)
		} else if code, ok := group(2); ok {
			inner.Code = true
			spans = lines(unescape(code), inner)
		} else if sequence, ok := group(3); ok {
			spans = []span{angle(sequence, style)}
		} else if word, ok := group(4); ok {
			// The characters around the pair are text, not part of it.
			start, end = at[8], at[9]
			switch word[0] {
			case '*':
				inner.Bold = true
			case '_':
				inner.Italic = true
			default:
				inner.Strike = true
			}
			spans = mrkdwn(word[1:len(word)-1], inner)
		}
		out = append(out, lines(unescape(s[:start]), style)...)
		out = append(out, spans...)
		s = s[end:]
	}
	return append(out, lines(unescape(s), style)...)
}

// angle reads what stands in angle brackets: a call, a channel, a date or a link.
func angle(sequence string, style span) span {
	target, label, _ := strings.Cut(sequence, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		style.Mention, style.Text = true, target
	case strings.HasPrefix(target, "#"):
		style.Mention, style.Text = true, target
	case strings.HasPrefix(target, "!subteam^"):
		style.Mention, style.Text = true, "@"+strings.TrimPrefix(target, "!subteam^")
	case strings.HasPrefix(target, "!date^"):
		style.Text = label
		return style
	case strings.HasPrefix(target, "!"):
		style.Mention, style.Text = true, "@"+target[1:]
	default:
		style.Link, style.Text = unescape(target), unescape(target)
	}
	if label != "" && !strings.HasPrefix(target, "!date^") {
		style.Text = unescape(label)
	}
	return style
}
