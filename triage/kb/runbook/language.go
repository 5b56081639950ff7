package runbook

import (
	"maps"
	"slices"
	"strings"
)

// fallback is the language that every page exists in.
const fallback = "en"

// section is a level-two heading that every page has, in this order.
type section struct{ anchor, title string }

// words are the fixed texts of a language.
type words struct {
	check    string // Starts the paragraph that ends every step.
	sections []section
}

var languages = map[string]words{
	"en": {check: "Check:", sections: []section{
		{"meaning", "What it means"},
		{"confirm", "How to confirm"},
		{"steps", "Steps"},
		{"over", "How you know it is over"},
		{"avoid", "What not to do"},
		{"prevention", "Prevention"},
	}},
	"ko": {check: "확인:", sections: []section{
		{"meaning", "무슨 뜻인가"},
		{"confirm", "확인 방법"},
		{"steps", "조치"},
		{"over", "해소 판단"},
		{"avoid", "하지 말 것"},
		{"prevention", "재발 방지"},
	}},
}

// Languages lists the languages that pages can be written in, sorted.
func Languages() []string { return slices.Sorted(maps.Keys(languages)) }

// baseLanguage reads "ko" out of tags such as "ko", "KO_kr" and "ko-KR".
func baseLanguage(tag string) string {
	tag = strings.ToLower(strings.TrimSpace(tag))
	if i := strings.IndexAny(tag, "-_.;,"); i >= 0 {
		tag = tag[:i]
	}
	return tag
}
