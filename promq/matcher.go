package promq

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
)

// matchNothing is a regular expression that no string matches: any character but any character.
const matchNothing = `[^\x00-\x{10FFFF}]`

// Equal matches series whose label has the value. An empty value matches series without the label.
func Equal(name, value string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, name, value) // Only regular expressions can fail.
}

// AnyOf matches series whose label has one of the values, taken literally. Without values it matches nothing. The order and
// repetition of values do not matter. Values that are not UTF-8 are left out, since no label has such a value.
func AnyOf(name string, values []string) *labels.Matcher {
	sorted := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !utf8.ValidString(v) })
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	switch len(sorted) {
	case 0:
		return labels.MustNewMatcher(labels.MatchRegexp, name, matchNothing)
	case 1:
		return Equal(name, sorted[0])
	}
	for i, v := range sorted {
		sorted[i] = regexp.QuoteMeta(v)
	}
	return labels.MustNewMatcher(labels.MatchRegexp, name, strings.Join(sorted, "|"))
}
