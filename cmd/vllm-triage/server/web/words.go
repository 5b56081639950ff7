package web

import (
	"embed"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v4"

	"vllm-triage/notify/locale"
)

//go:embed locale/*.yaml
var localeFiles embed.FS

// words are the texts of the pages in one language. The titles of causes are those of the messages.
type words struct {
	own      map[string]string
	messages *locale.Catalogue
}

// catalogues reads the embedded files once; a test excludes that they are broken.
var catalogues = sync.OnceValue(func() map[string]words {
	out := map[string]words{}
	for _, language := range locale.Languages() {
		own, err := readWords(language)
		if err != nil {
			panic(fmt.Sprintf("embedded page texts: %v", err))
		}
		out[language] = words{own: own, messages: locale.For(language)}
	}
	return out
})

func readWords(language string) (map[string]string, error) {
	data, err := localeFiles.ReadFile("locale/" + language + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read page texts: %w", err)
	}
	own := map[string]string{}
	if err := yaml.Unmarshal(data, &own); err != nil {
		return nil, fmt.Errorf("decode %s.yaml: %w", language, err)
	}
	return own, nil
}

// text returns the words of a key with its {name} placeholders replaced. Pairs are name, value, name, value.
func (w words) text(key string, pairs ...string) string {
	template, ok := w.own[key]
	if !ok {
		return key // A hole is seen but stops no page.
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
func (w words) count(key string, n int, pairs ...string) string {
	form := ".other"
	if n == 1 {
		form = ".one"
	}
	return w.text(key+form, append([]string{"n", locale.Grouped(n)}, pairs...)...)
}

// title is the name of a bottleneck or trigger.
func (w words) title(axis, id, english string) string {
	if s, ok := w.messages.Find(axis + "." + id + ".title"); ok {
		return s
	}
	if english != "" {
		return english
	}
	return id
}
