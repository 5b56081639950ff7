package command

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what is read; Slack sends at most a message.
const maxText = 2000

// maxName bounds what is taken for a name: those of models and labels are shorter.
const maxName = 200

var (
	// Slack writes mentions and links like this when the command escapes them.
	markup = regexp.MustCompile(`<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>`)
	typed  = strings.NewReplacer(
		"“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "‚", "'",
		"—", "--", "–", "--", "−", "-",
		"\u00a0", " ", "\u200b", "", "\ufeff", "",
	)
	entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// normalise undoes what clients and Slack make of typed text: curly quotes, long dashes, mentions, links, entities.
func normalise(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
		for !utf8.ValidString(s) && s != "" {
			_, size := utf8.DecodeLastRuneInString(s)
			s = s[:len(s)-size]
			if size > 1 {
				break
			}
		}
	}
	s = strings.ToValidUTF8(s, "")
	s = markup.ReplaceAllStringFunc(s, func(m string) string {
		part := markup.FindStringSubmatch(m)
		switch {
		case part[3] != "":
			return part[3] // What the user saw: a name or an address.
		case part[1] != "":
			return part[2]
		default:
			return strings.TrimPrefix(part[2], "mailto:")
		}
	})
	s = typed.Replace(entities.Replace(s))
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, s)
}

// word is one word of a command. Quoted words are never keywords.
type word struct {
	text   string
	quoted bool
}

// split takes a text apart at spaces; quotes hold words together, also behind key=.
func split(s string) []word {
	var out []word
	var b strings.Builder
	var inside rune
	w := word{}
	started := false
	end := func() {
		if started {
			w.text = b.String()
			out = append(out, w)
		}
		b.Reset()
		w, started = word{}, false
	}
	for i, r := range s {
		switch {
		case inside != 0 && r == inside:
			inside = 0
		case inside != 0:
			b.WriteRune(r)
		case (r == '"' || r == '\'' || r == '`') && strings.ContainsRune(s[i+1:], r) && opens(b.String()):
			inside, started = r, true
			w.quoted = b.Len() == 0
		case r == ' ':
			end()
		default:
			b.WriteRune(r)
			started = true
		}
	}
	end()
	return out
}

// cut keeps the first maxName runes and no stray quotes.
func cut(s string) string {
	s = strings.Trim(strings.ReplaceAll(s, `"`, ""), "'` ")
	n := 0
	for i := range s {
		if n == maxName {
			return s[:i]
		}
		n++
	}
	return s
}

// opens says whether a quote here begins a quoted word: at the start of a word or behind key=.
func opens(before string) bool { return before == "" || strings.HasSuffix(before, "=") }
