package chatops

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many suggestions an answer makes.
const maxNear = 3

// near lists the candidates that a word may have been meant for, the likeliest first: those that contain it or start alike,
// and those a few typing errors away. It is empty when nothing is near.
func near(word string, candidates []string) []string {
	word = strings.ToLower(word)
	if word == "" {
		return nil
	}
	type scored struct {
		text string
		cost int
	}
	var found []scored
	for _, c := range candidates {
		low := strings.ToLower(c)
		cost := typos(word, low)
		limit := max(1, min(len([]rune(word)), len([]rune(low)))/3)
		switch {
		case low == word:
			cost = 0
		case len(word) >= 3 && strings.Contains(low, word), len(low) >= 3 && strings.Contains(word, low):
			cost = min(cost, 1)
		case cost > limit:
			continue
		}
		found = append(found, scored{c, cost})
	}
	slices.SortFunc(found, func(a, b scored) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.text, b.text)) })
	var out []string
	for _, f := range found[:min(len(found), maxNear)] {
		out = append(out, f.text)
	}
	return slices.Compact(out)
}

// typos is the number of letters to insert, delete, replace or swap with a neighbour to get from one word to the other.
// Long words are compared by their beginnings: the cost is quadratic.
func typos(from, to string) int {
	const longest = 80
	a, b := []rune(from), []rune(to)
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
