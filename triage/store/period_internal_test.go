package store

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMergeAlert(t *testing.T) {
	t.Parallel()
	open := func(start int64) *period { return &period{firing: true, start: start} }
	done := func(start, end int64) *period { return &period{start: start, end: end} }
	for _, tc := range []struct {
		name        string
		known, said *period
		want        *period
		effect      effect
	}{
		{"first", nil, open(10), open(10), began},
		{"end of something unknown", nil, done(10, 20), done(10, 20), unchanged},
		{"again", open(10), open(10), open(10), unchanged},
		{"later start", open(10), open(15), open(15), unchanged},
		{"earlier start of the other server", open(15), open(10), open(15), unchanged},
		{"end", open(10), done(10, 20), done(10, 20), ended},
		{"end at the start", open(10), done(5, 10), done(10, 10), ended},
		{"end of an earlier period", open(10), done(5, 9), open(10), unchanged},
		{"old start after the end", done(10, 20), open(10), done(10, 20), doubted},
		{"start at the end", done(10, 20), open(20), done(10, 20), doubted},
		{"new period", done(10, 20), open(21), open(21), began},
		{"later end", done(10, 20), done(10, 25), done(10, 25), unchanged},
		{"earlier end", done(10, 20), done(10, 15), done(10, 20), unchanged},
	} {
		got, what := mergeAlert(tc.known, *tc.said)
		require.Equal(t, *tc.want, got, tc.name)
		require.Equal(t, tc.effect, what, tc.name)
	}
}

// Merging the same thing twice changes nothing the second time, and an alert ends only by an end.
func TestMergeAlertProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.Custom(func(t *rapid.T) period {
			p := period{firing: rapid.Bool().Draw(t, "firing"), start: rapid.Int64Range(1, 20).Draw(t, "start")}
			if !p.firing {
				p.end = p.start + rapid.Int64Range(0, 20).Draw(t, "length")
			}
			return p
		})
		var known *period
		for _, said := range rapid.SliceOf(gen).Draw(t, "notifications") {
			next, what := mergeAlert(known, said)
			if known != nil && known.firing && !next.firing && said.firing {
				t.Fatalf("%v fired, %v ended it", *known, said)
			}
			twice, again := mergeAlert(&next, said)
			if twice != next || again == began || again == ended {
				t.Fatalf("merging %v twice into %v gave %v, then %v (%v)", said, known, next, twice, again)
			}
			if (what == began) != (next.firing && (known == nil || !known.firing)) {
				t.Fatalf("%v and %v gave %v with effect %v", known, said, next, what)
			}
			known = &next
		}
	})
}
