package notify

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// How long texts that came from outside may be, in runes. The values are far above what real rules and labels hold.
const (
	maxName     = 120
	maxSubject  = 60 // A headline holds one, and a Slack header 150 characters in all.
	maxSpace    = 40
	maxWords    = 300 // A word of a sentence may be a list, of changed settings for example.
	maxSentence = 800
	maxQuery    = 4000
)

// Clean makes foreign text fit for one line of a message: control characters and line breaks become spaces, characters
// that reorder or hide text go away, invalid UTF-8 becomes U+FFFD, and what is longer than limit runes is cut with an
// ellipsis. It does not escape; that is each notifier's own.
func Clean(s string, limit int) string {
	if isPlain(s) && len(s) <= limit {
		return s
	}
	var b strings.Builder
	n, space := 0, false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = n > 0 // Written only before something else: no spaces at the ends, no runs of them.
			continue
		}
		if isInvisible(r) {
			continue
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		if n >= limit {
			return strings.TrimRight(cutRunes(b.String(), limit-1), " ") + "…"
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// isPlain says that s is printable ASCII without runs of spaces: the common case, which needs no work.
func isPlain(s string) bool {
	previous := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' || c == ' ' && previous == ' ' {
			return false
		}
		previous = c
	}
	return s == "" || previous != ' '
}

// isInvisible says that a rune can hide or reorder the text around it (CVE-2021-42574) or draws nothing.
func isInvisible(r rune) bool {
	switch {
	case r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069', r == '\u200E', r == '\u200F', r == '\u061C':
		return true // Marks, embeddings, overrides and isolates of the bidirectional algorithm.
	case r >= '\u200B' && r <= '\u200D', r == '\u2060', r == '\uFEFF', r == '\u00AD':
		return true // Zero-width characters and the soft hyphen.
	case r >= 0xE0000 && r <= 0xE0FFF:
		return true // Tags and variation selectors of plane 14.
	default:
		return false
	}
}

func cutRunes(s string, limit int) string {
	for i := range s {
		if limit == 0 {
			return s[:i]
		}
		limit--
	}
	return s
}

// Runes is the number of runes of s.
func Runes(s string) int { return utf8.RuneCountInString(s) }
