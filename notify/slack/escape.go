package slack

import (
	"regexp"
	"strings"
)

// escape makes text safe for Slack's text objects. Slack parses &, < and > in all of them, plain_text included, and
// decodes exactly these three entities (https://docs.slack.dev/messaging/formatting-message-text#escaping).
func escape(s string) string { return entities.Replace(s) }

var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escapeFormatted makes text safe where Slack also looks for *bold*, _italic_, ~strike~, `code` and @here. There is no
// escape for those, so each is replaced by a character that looks like it; an underscore inside a word formats nothing
// and stays, because metric and model names are full of them.
func escapeFormatted(s string) string {
	s = lookAlikes.Replace(escape(s))
	s = underscoreAtEdge.ReplaceAllStringFunc(s, func(m string) string { return strings.ReplaceAll(m, "_", "ˍ") })
	s = broadcast.ReplaceAllString(s, "@\u2060$1")
	return noEmoji(s)
}

var (
	lookAlikes       = strings.NewReplacer("*", "∗", "~", "∼", "`", "ˋ")
	underscoreAtEdge = regexp.MustCompile(`(^|[^\pL\pN_])_+|_+($|[^\pL\pN_])`)
	broadcast        = regexp.MustCompile(`@(here|channel|everyone|group)\b`)
	// Names have a letter in them, but for these four; 14:02:10 has none.
	emojiName = regexp.MustCompile(`:([a-z0-9_+'-]*[a-z_][a-z0-9_+'-]*|\+1|-1|100|1234):`)
)

// plain makes text safe for plain_text objects, where Slack looks for entities and emoji names only.
func plain(s string) string { return noEmoji(escape(s)) }

// noEmoji breaks :names: apart with a character that has no width. The second pass finds names that share a colon.
func noEmoji(s string) string {
	for range 2 {
		s = emojiName.ReplaceAllString(s, ":\u2060$1:")
	}
	return s
}

// cut shortens text to limit runes, the last of them an ellipsis, without cutting an entity in two.
func cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return trimEntity(cutAt(s, limit-1)) + "…"
		}
		_ = i
		n++
	}
	return s
}

func cutAt(s string, runes int) string {
	for i := range s {
		if runes == 0 {
			return s[:i]
		}
		runes--
	}
	return s
}

// trimEntity drops the beginning of an entity at the end of a cut text: "a &am" becomes "a ".
func trimEntity(s string) string {
	amp := strings.LastIndexByte(s, '&')
	if amp >= 0 && !strings.Contains(s[amp:], ";") && len(s)-amp < len("&amp;") {
		return s[:amp]
	}
	return s
}
