package notify

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// say tells a sentence in the message's language when there is a template for it and every value that it asks for is
// there, else in the English of the report.
func (b *builder) say(t triage.Text) string {
	if template, ok := b.template(t); ok {
		if s, complete := locale.Expand(template, func(name string) (string, bool) {
			arg, ok := t.Args[name]
			return b.arg(name, arg), ok
		}); complete {
			return Clean(s, maxSentence)
		}
	}
	return Clean(t.Text, maxSentence)
}

func (b *builder) sayAll(texts []triage.Text) []string {
	var out []string
	for _, t := range texts {
		if s := b.say(t); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (b *builder) arg(name string, a triage.Arg) string {
	if a.Number != nil {
		return b.f.Value(*a.Number, a.Unit)
	}
	return b.word(name, a.Word)
}

// title is the name of a cause in the message's language, else the report's English one, else the id made readable.
func (b *builder) title(axis, id, english string) string {
	if s, ok := b.words.Find(axis + "." + id + ".title"); ok {
		return s
	}
	if s := Clean(english, maxName); s != "" {
		return s
	}
	return readable(id)
}

// label is the name of a signal in the message's language, or its id made readable.
func (b *builder) label(signal string) string {
	if s, ok := b.words.Find("signal." + signal); ok {
		return s
	}
	return readable(signal)
}

// abbreviations are the words of ids that people write in capitals.
var abbreviations = map[string]string{
	"kv": "KV", "ttft": "TTFT", "itl": "ITL", "e2e": "E2E", "gpu": "GPU", "cpu": "CPU", "api": "API", "http": "HTTP",
	"lora": "LoRA", "mm": "MM", "p95": "p95", "p99": "p99",
}

// readable turns an id into words: kv_headroom becomes "KV headroom".
func readable(id string) string {
	words := strings.Split(Clean(id, maxName), "_")
	for i, w := range words {
		if s, ok := abbreviations[w]; ok {
			words[i] = s
		} else if i == 0 && w != "" {
			r, size := utf8.DecodeRuneInString(w)
			words[0] = string(unicode.ToUpper(r)) + w[size:]
		}
	}
	return strings.Join(words, " ")
}
