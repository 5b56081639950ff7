package chart

import "strings"

// Undrawable returns the characters of a text that no built-in font has.
func Undrawable(s string) string {
	p := newPen(regular, 11)
	return strings.Map(func(r rune) rune {
		if _, ok := p.which(r); ok {
			return -1
		}
		return r
	}, s)
}
