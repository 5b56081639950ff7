package config

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v4"
)

// decode reads data over c and returns where its keys stand. What it finds wrong is in the returned problems; when the
// document cannot be read at all, fatal is set.
func decode(data []byte, c *Config) (found *problems, fatal bool) {
	found = &problems{}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		found.add("", "the file is empty: it needs at least prometheus.url "+
			"(`vllm-triage check --print-example` shows all keys)")
		return found, true
	case err != nil:
		found.syntax(err)
		return found, true
	}
	found.lines = positionsOf(&doc)
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		found.syntax(err)
		return found, true
	default:
		found.list = append(found.list, &Problem{
			Line: second.Line, Text: "a second document (---) begins here: it would be ignored; put everything into one",
		})
	}
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	if err := strict.Decode(c); err != nil {
		found.construct(err)
	}
	return found, false
}

// syntax notes an error that stops the parser.
func (p *problems) syntax(err error) {
	if at, ok := errors.AsType[*yaml.LoadError](err); ok {
		p.list = append(p.list, &Problem{Line: at.Mark.Line, Text: "not YAML: " + at.Message})
		return
	}
	p.list = append(p.list, &Problem{Text: "not YAML: " + err.Error()})
}

// construct notes the errors of turning the document into a Config.
func (p *problems) construct(err error) {
	var all *yaml.LoadErrors
	var one *yaml.LoadError
	switch {
	case errors.As(err, &all):
		for _, e := range all.Errors {
			p.constructOne(e)
		}
	case errors.As(err, &one):
		p.constructOne(one)
	default:
		p.list = append(p.list, &Problem{Text: err.Error()})
	}
}

var (
	unknownPattern = regexp.MustCompile(`^field (.+) not found in type \S+$`)
	typePattern    = regexp.MustCompile("(?s)^cannot construct (!!\\w+)(?: `.*`)? into (.+)$")
)

func (p *problems) constructOne(e *yaml.LoadError) {
	at := [2]int{e.Mark.Line, e.Mark.Column}
	path, text := p.lines.values[at], e.Message
	if m := unknownPattern.FindStringSubmatch(text); m != nil {
		path, text = p.lines.keys[at], "unknown key"
		if near := nearest(m[1], siblings(path)); near != "" {
			text += `, did you mean "` + near + `"?`
		}
	} else if m := typePattern.FindStringSubmatch(text); m != nil {
		// The message quotes the value, which may be a secret that slipped to the wrong key.
		text = "want " + kindOf(m[2]) + ", got " + tagName(m[1])
	} else if strings.HasPrefix(text, "mapping key") {
		path, p.partial = p.lines.keys[at], true
	}
	p.list = append(p.list, &Problem{Path: path, Line: e.Mark.Line, Text: text})
}

func kindOf(goType string) string {
	switch {
	case strings.Contains(goType, "Duration"):
		return "a duration such as 30s or 5m"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasPrefix(goType, "map["), strings.Contains(goType, "config."):
		return "keys with values"
	default:
		return "a text"
	}
}

func tagName(tag string) string {
	switch tag {
	case "!!seq":
		return "a list"
	case "!!map":
		return "keys with values"
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	default:
		return "a text"
	}
}

var indexPattern = regexp.MustCompile(`\[\d+\]`)

// siblings lists the keys that may stand where path stands.
func siblings(path string) []string {
	t := reflect.TypeFor[Config]()
	steps := strings.Split(indexPattern.ReplaceAllString(path, ""), ".")
	for _, step := range steps[:len(steps)-1] {
		field, ok := fieldsOf(t)[step]
		if !ok {
			return nil
		}
		t = field
	}
	var names []string
	for name := range fieldsOf(t) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fieldsOf maps the YAML keys of a struct, behind pointers and lists too, to their types.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	out := map[string]reflect.Type{}
	if t == reflect.TypeFor[HTTPClient]() {
		t = reflect.TypeFor[promconfig.HTTPClientConfig]()
	}
	if t.Kind() != reflect.Struct {
		return out
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(options, "inline"):
			maps.Copy(out, fieldsOf(f.Type))
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

// nearest is the candidate that a few typing mistakes lead to, or empty.
func nearest(word string, candidates []string) string {
	best, at := "", max(len(word)/3, 1)+1
	for _, c := range candidates {
		if d := distance(word, c); d < at {
			best, at = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
