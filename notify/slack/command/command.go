package command

import (
	"strings"
	"time"

	"vllm-triage/triage"
)

// Verb is what is asked for.
type Verb string

// The verbs.
const (
	Triage    Verb = "triage" // The default: look at a model now or at a past time.
	Models    Verb = "models"
	Incidents Verb = "incidents"
	Explain   Verb = "explain"
	Silences  Verb = "silences"
	Help      Verb = "help"
)

// verbs maps what people type to what they mean.
var verbs = map[string]Verb{
	"triage": Triage, "models": Models, "model": Models, "incidents": Incidents, "incident": Incidents,
	"explain": Explain, "silences": Silences, "silence": Silences, "help": Help, "-h": Help, "--help": Help, "?": Help,
	"모델": Models, "인시던트": Incidents, "설명": Explain, "사일런스": Silences, "도움말": Help,
}

// Command is a command that was understood.
type Command struct {
	Verb Verb
	// Scope is what Triage looks at; empty fields are not restricted.
	Scope triage.Scope
	// For is how far Triage looks back; 0 lets the data decide.
	For time.Duration
	// At is the moment that Triage looks at; zero is now.
	At time.Time
	// Cause is what Explain explains.
	Cause string
	// Share shows the answer to the whole channel.
	Share bool
}

// Known is what the words of a command can be about. Empty lists know nothing and refuse nothing.
type Known struct {
	Models []string
	// Causes maps ids to titles; more titles of one id may be joined by "|".
	Causes map[string]string
}

// Limits of the time that can be asked about.
const (
	MinFor = time.Minute
	MaxFor = 24 * time.Hour
)

// String is the command in its plainest form; Parse reads it back.
func (c Command) String() string {
	var parts []string
	switch c.Verb {
	case Triage:
		if c.Scope.Model != "" {
			parts = append(parts, "model="+quote(c.Scope.Model))
		}
		for _, f := range fields {
			if v := *f.of(&c.Scope); v != "" && f.name != "model" {
				parts = append(parts, f.name+"="+quote(v))
			}
		}
		if c.For > 0 {
			parts = append(parts, "for", strings.ReplaceAll(c.For.String(), "m0s", "m"))
		}
		if !c.At.IsZero() {
			parts = append(parts, "at", c.At.UTC().Format(time.RFC3339))
		}
	case Explain:
		parts = append(parts, string(Explain), quote(c.Cause))
	case Models, Incidents, Silences, Help:
		parts = append(parts, string(c.Verb))
	}
	if c.Share {
		parts = append(parts, "--share")
	}
	return strings.Join(parts, " ")
}

// quote writes a name as Slack would send it: with its three entities.
func quote(s string) string {
	return `"` + strings.NewReplacer(`"`, "", "&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s) + `"`
}

// field is a label that may be given as name=value.
type field struct {
	name    string
	aliases []string
	of      func(*triage.Scope) *string
}

var fields = []field{
	{"model", []string{"model_name", "m"}, func(s *triage.Scope) *string { return &s.Model }},
	{"namespace", []string{"ns", "n"}, func(s *triage.Scope) *string { return &s.Namespace }},
	{"cluster", nil, func(s *triage.Scope) *string { return &s.Cluster }},
	{"job", nil, func(s *triage.Scope) *string { return &s.Job }},
	{"service", []string{"svc"}, func(s *triage.Scope) *string { return &s.Service }},
	{"instance", []string{"i", "replica"}, func(s *triage.Scope) *string { return &s.Instance }},
	{"pod", nil, func(s *triage.Scope) *string { return &s.Pod }},
	{"engine", []string{"rank"}, func(s *triage.Scope) *string { return &s.Engine }},
}
