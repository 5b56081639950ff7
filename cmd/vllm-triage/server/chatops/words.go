package chatops

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"vllm-triage/notify/locale"
)

//go:embed locale/*.yaml
var localeFiles embed.FS

// catalogue is the texts of this package in one language. Names of causes and signals, and words that the cards have too,
// come from the cards' catalogue.
type catalogue struct {
	language string
	own      map[string]string
	fallback map[string]string // English.
	cards    *locale.Catalogue
}

// catalogues reads the embedded files once; a test excludes that they are broken.
var catalogues = sync.OnceValue(func() map[string]*catalogue {
	out := map[string]*catalogue{}
	for _, language := range locale.Languages() {
		own, err := readWords(language)
		if err != nil {
			panic(fmt.Sprintf("embedded texts: %v", err))
		}
		out[language] = &catalogue{language: language, own: own, cards: locale.For(language)}
	}
	for _, c := range out {
		c.fallback = out[locale.Fallback].own
	}
	return out
})

func readWords(language string) (map[string]string, error) {
	data, err := localeFiles.ReadFile("locale/" + language + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read texts: %w", err)
	}
	own := map[string]string{}
	if err := yaml.Unmarshal(data, &own); err != nil {
		return nil, fmt.Errorf("decode %s.yaml: %w", language, err)
	}
	return own, nil
}

// wordsIn returns the texts of a language such as "ko" or "ko-KR", or English.
func wordsIn(language string) *catalogue {
	return catalogues()[locale.For(language).Language()]
}

// say returns the words of a key with its {name} placeholders replaced. Pairs are name, value, name, value. Keys that start
// with "ui." are the cards'.
func (c *catalogue) say(key string, pairs ...string) string {
	if strings.HasPrefix(key, "ui.") {
		return c.cards.Fill(key, pairs...)
	}
	template, ok := c.own[key]
	if !ok {
		if template, ok = c.fallback[key]; !ok {
			return key // A hole is seen but stops no answer.
		}
	}
	s, _ := locale.Expand(template, func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	})
	return s
}

// count returns the words of key.one or key.other with {n} filled in.
func (c *catalogue) count(key string, n int) string {
	form := ".other"
	if n == 1 {
		form = ".one"
	}
	return c.say(key+form, "n", locale.Grouped(n))
}

// title is the name of a bottleneck or trigger.
func (c *catalogue) title(axis, id, english string) string {
	if s, ok := c.cards.Find(axis + "." + id + ".title"); ok {
		return s
	}
	if english != "" {
		return english
	}
	return id
}

// explain is what a bottleneck or trigger is, in a sentence; empty when the catalogue does not know it.
func (c *catalogue) explain(axis, id string) string {
	s, _ := c.cards.Find(axis + "." + id + ".explain")
	return s
}

// signal is the name of a signal.
func (c *catalogue) signal(id string) string {
	if s, ok := c.cards.Find("signal." + id); ok {
		return s
	}
	return strings.ReplaceAll(id, "_", " ")
}
