// Package locale holds the words of every language in which reports are told, one YAML file a language. English is
// complete by definition; a word that another language lacks is shown in English.
package locale

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// Fallback is the language of texts that a language does not have.
const Fallback = "en"

//go:embed *.yaml
var files embed.FS

// Catalogue is the words of one language. It is safe for concurrent use.
type Catalogue struct {
	language string
	words    map[string]string
	fallback *Catalogue // nil for the fallback itself.
}

// catalogues reads all embedded files once. Broken embedded files are a mistake of the build that a test finds.
var catalogues = sync.OnceValue(func() map[string]*Catalogue {
	names, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("read catalogues: %v", err))
	}
	out := map[string]*Catalogue{}
	for _, n := range names {
		b, err := files.ReadFile(n.Name())
		if err != nil {
			panic(fmt.Sprintf("read catalogue %s: %v", n.Name(), err))
		}
		language := strings.TrimSuffix(n.Name(), path.Ext(n.Name()))
		words, err := parse(b)
		if err != nil {
			panic(fmt.Sprintf("read catalogue %s: %v", n.Name(), err))
		}
		out[language] = &Catalogue{language: language, words: words}
	}
	for language, c := range out {
		if language != Fallback {
			c.fallback = out[Fallback]
		}
	}
	return out
})

// Languages lists the languages that have a catalogue, sorted.
func Languages() []string { return slices.Sorted(maps.Keys(catalogues())) }

// For returns the catalogue of a language such as "ko" or "ko-KR", or the fallback's.
func For(language string) *Catalogue {
	base, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(language, "_", "-")), "-")
	if c, ok := catalogues()[base]; ok {
		return c
	}
	return catalogues()[Fallback]
}

// Language is the catalogue's language, for example "ko".
func (c *Catalogue) Language() string { return c.language }

// Keys lists the catalogue's own keys, sorted.
func (c *Catalogue) Keys() []string { return slices.Sorted(maps.Keys(c.words)) }

// Lookup returns the words of a key in this language only. Languages share no sentences: a sentence that is not
// translated has its English form in the report itself.
func (c *Catalogue) Lookup(key string) (string, bool) {
	s, ok := c.words[key]
	return s, ok
}

// Text returns the words of a key, in English when this language has none, or the key itself: a hole is seen but
// never stops a message.
func (c *Catalogue) Text(key string) string {
	if s, ok := c.words[key]; ok {
		return s
	}
	if c.fallback != nil {
		return c.fallback.Text(key)
	}
	return key
}

// Fill returns the words of a key with its {name} placeholders replaced. Pairs are name, value, name, value.
func (c *Catalogue) Fill(key string, pairs ...string) string {
	s, _ := Expand(c.Text(key), func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	})
	return s
}

// Count returns the words of key.one or key.other with {n} filled in.
func (c *Catalogue) Count(key string, n int, pairs ...string) string {
	form := ".other"
	if n == 1 {
		form = ".one"
	}
	return c.Fill(key+form, append([]string{"n", Grouped(n)}, pairs...)...)
}

// Grouped writes a number of things with thousands separated: 1,997. Both languages write it so.
func Grouped(n int) string {
	s := strconv.Itoa(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Expand replaces every {name} of a template by what value returns for it. It reports false when value does not know
// one of the names; those stay as they are. Braces around anything but a name (PromQL selectors) are left alone.
func Expand(template string, value func(name string) (string, bool)) (string, bool) {
	var b strings.Builder
	complete := true
	for {
		start := strings.IndexByte(template, '{')
		if start < 0 {
			break
		}
		end := strings.IndexByte(template[start:], '}')
		if end < 0 {
			break
		}
		name := template[start+1 : start+end]
		b.WriteString(template[:start])
		if !isName(name) {
			// Look again right behind this brace: "{ {name}" has a name in it.
			b.WriteByte('{')
			template = template[start+1:]
			continue
		}
		if v, ok := value(name); ok {
			b.WriteString(v)
		} else {
			complete = false
			b.WriteString(template[start : start+end+1])
		}
		template = template[start+end+1:]
	}
	b.WriteString(template)
	return b.String(), complete
}

// Names lists the placeholders of a template in order of appearance.
func Names(template string) []string {
	var names []string
	Expand(template, func(name string) (string, bool) {
		names = append(names, name)
		return "", true
	})
	return names
}

func isName(s string) bool {
	if s == "" {
		return false
	}
	for _, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// parse flattens a file's nested maps into dotted keys.
func parse(b []byte) (map[string]string, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(b, &tree); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	words := map[string]string{}
	return words, flatten("", tree, words)
}

func flatten(prefix string, tree map[string]any, words map[string]string) error {
	for key, value := range tree {
		full := strings.TrimPrefix(prefix+"."+key, ".")
		switch v := value.(type) {
		case map[string]any:
			if err := flatten(full, v, words); err != nil {
				return err
			}
		case string:
			if _, taken := words[full]; taken {
				return fmt.Errorf("key %s is there twice", full)
			}
			words[full] = v
		default:
			return fmt.Errorf("key %s: %T is not text; quote it", full, value)
		}
	}
	return nil
}

// Find returns the words of a key in this language or in English.
func (c *Catalogue) Find(key string) (string, bool) {
	if s, ok := c.words[key]; ok {
		return s, true
	}
	if c.fallback != nil {
		return c.fallback.Find(key)
	}
	return "", false
}
