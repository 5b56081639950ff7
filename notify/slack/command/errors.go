package command

import (
	"cmp"
	"slices"
	"strings"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
)

// Problem is why a command was not understood.
type Problem string

// The problems.
const (
	UnknownModel  Problem = "unknown_model"
	UnknownCause  Problem = "unknown_cause"
	UnknownLabel  Problem = "unknown_label"
	UnknownOption Problem = "unknown_option"
	EmptyValue    Problem = "empty_value"
	TwoModels     Problem = "two_models"
	NoCause       Problem = "no_cause"
	NoDuration    Problem = "no_duration"
	BadDuration   Problem = "bad_duration"
	DurationRange Problem = "duration_range"
	NoTime        Problem = "no_time"
	BadTime       Problem = "bad_time"
	FutureTime    Problem = "future_time"
)

// Error says what was not understood and what may have been meant.
type Error struct {
	Problem     Problem
	Word        string // What was typed, as it came: not to be trusted.
	Suggestions []string
}

// Error implements error, in English.
func (e *Error) Error() string { return e.Tell(locale.Fallback) }

// Tell says it in a language. The text is plain: whoever posts it escapes it.
func (e *Error) Tell(language string) string {
	words := locale.For(language)
	s := words.Fill("ui.command."+string(e.Problem), "word", notify.Clean(e.Word, 80))
	if len(e.Suggestions) > 0 {
		s += " " + words.Fill("ui.did_you_mean", "list", notify.Clean(strings.Join(e.Suggestions, ", "), 300))
	}
	return s
}

// unknown is an error with the candidates that look like the word.
func unknown(p Problem, typed string, candidates ...string) error {
	return &Error{Problem: p, Word: typed, Suggestions: closest(typed, candidates, 3)}
}

// closest returns the candidates that are a few typing mistakes away, nearest first.
func closest(typed string, candidates []string, most int) []string {
	type near struct {
		name     string
		distance int
	}
	a := []rune(strings.ToLower(typed))
	if len(a) > 80 {
		return nil
	}
	var found []near
	for _, c := range candidates {
		b := []rune(strings.ToLower(c))
		if len(b) > 120 {
			continue
		}
		d := distance(a, b)
		switch {
		case d <= 1+max(len(a), len(b))/4:
		case len(a) >= 3 && strings.Contains(strings.ToLower(c), strings.ToLower(typed)):
		default:
			continue
		}
		found = append(found, near{c, d})
	}
	slices.SortFunc(found, func(x, y near) int { return cmp.Or(x.distance-y.distance, strings.Compare(x.name, y.name)) })
	var out []string
	for _, f := range found {
		if len(out) < most && !slices.Contains(out, f.name) {
			out = append(out, f.name)
		}
	}
	return out
}

// distance counts insertions, deletions, changes and swaps of neighbours between two words.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
