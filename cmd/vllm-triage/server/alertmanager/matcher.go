package alertmanager

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Matcher is one condition on an alert's labels.
type Matcher struct {
	Name    string
	Value   string
	Regex   bool
	Negated bool
}

// Equal is the matcher that a label has a value.
func Equal(name, value string) Matcher { return Matcher{Name: name, Value: value} }

// String is the matcher as Alertmanager writes it.
func (m Matcher) String() string {
	op := "="
	switch {
	case m.Regex && m.Negated:
		op = "!~"
	case m.Regex:
		op = "=~"
	case m.Negated:
		op = "!="
	}
	return m.Name + op + `"` + quoted.Replace(m.Value) + `"`
}

// quoted escapes what the parser of Alertmanager unescapes, and nothing else.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Limits of the matchers of a silence.
const (
	maxMatchers   = 20
	maxValueBytes = 1024
)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// modelLabels are the labels in which rules name a model.
var modelLabels = []string{"model_name", "model", "model_id"}

// narrow refuses matchers that hide more than one model, or one alert of one namespace.
func narrow(ms []Matcher) error {
	if len(ms) == 0 || len(ms) > maxMatchers {
		return fmt.Errorf("a silence needs 1 to %d matchers", maxMatchers)
	}
	names := map[string]bool{}
	for _, m := range ms {
		if err := m.check(); err != nil {
			return err
		}
		if names[m.Name] {
			return fmt.Errorf("%s is matched twice", m.Name)
		}
		names[m.Name] = true
	}
	if slices.ContainsFunc(modelLabels, func(name string) bool { return fixed(ms, name) }) ||
		fixed(ms, "alertname") && fixed(ms, "namespace") {
		return nil
	}
	return errors.New("it must name a model (model_name), or an alert and its namespace (alertname and namespace)")
}

// fixed says whether a label must have one certain value.
func fixed(ms []Matcher, name string) bool {
	return slices.ContainsFunc(ms, func(m Matcher) bool {
		return m.Name == name && !m.Regex && !m.Negated && m.Value != ""
	})
}

// unlikely are values of which no meant expression matches all.
var unlikely = []string{"q", "Zx-9_~/:. 7", "모델-Ω"}

func (m Matcher) check() error {
	switch {
	case !labelName.MatchString(m.Name):
		return errors.New("a matcher's name is no label name")
	case len(m.Value) > maxValueBytes || !utf8.ValidString(m.Value):
		return fmt.Errorf("the value of %s is longer than %d bytes or not UTF-8", m.Name, maxValueBytes)
	case !m.Regex:
		return nil
	}
	re, err := regexp.Compile("^(?:" + m.Value + ")$")
	if err != nil {
		return fmt.Errorf("the expression for %s is not valid", m.Name)
	}
	if !m.Negated && (re.MatchString("") || !slices.ContainsFunc(unlikely, func(s string) bool { return !re.MatchString(s) })) {
		return fmt.Errorf("the expression for %s matches everything", m.Name)
	}
	return nil
}
