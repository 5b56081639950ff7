package chatops

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verb is what a command asks for. It is a closed set, fit for a metric label.
type Verb string

// The verbs. A command without one asks for a triage.
const (
	Triage    Verb = "triage"
	Models    Verb = "models"
	Incidents Verb = "incidents"
	Explain   Verb = "explain"
	Silences  Verb = "silences"
	Help      Verb = "help"
)

// Verbs lists all verbs.
func Verbs() []Verb { return []Verb{Triage, Models, Incidents, Explain, Silences, Help} }

// spoken are the words that people use for the verbs.
var spoken = map[string]Verb{
	"triage": Triage, "진단": Triage,
	"models": Models, "list": Models, "모델": Models,
	"incidents": Incidents, "incident": Incidents, "인시던트": Incidents,
	"explain": Explain, "why": Explain, "설명": Explain,
	"silences": Silences, "silence": Silences, "사일런스": Silences,
	"help": Help, "?": Help, "usage": Help, "--help": Help, "-h": Help, "-help": Help, "도움말": Help,
}

// Command is a slash command as it was understood.
type Command struct {
	Verb Verb
	// Model, Namespace, Instance, Pod and Cluster narrow a question; empty: any.
	Model, Namespace, Instance, Pod, Cluster string
	// For is how far to look back; 0 lets the data decide.
	For time.Duration
	// At is the moment to ask about; zero is now.
	At time.Time
	// Share shows the answer to the whole channel.
	Share bool
	// Subject is the cause to explain, as it was typed.
	Subject string
	// Status restricts a list of incidents: "firing", "resolved" or empty.
	Status string
	// Likely is the verb that the model's name may have been meant for: "modles" is no model.
	Likely string
}

// Mistake is a command that could not be understood: a key of the catalogue, the word in question, and what may have been
// meant.
type Mistake struct {
	Key  string
	Word string
	Near []string
}

// Error implements error; people get the sentence of the catalogue instead.
func (m *Mistake) Error() string { return fmt.Sprintf("%s: %q", m.Key, m.Word) }

// The longest look-back, the same as the configuration allows, and the oldest moment to ask about.
const (
	maxFor = 24 * time.Hour
	maxAge = 366 * 24 * time.Hour
)

// settingKeys maps the keys of key=value to their canonical names.
var settingKeys = map[string]string{
	"model": "model", "model_name": "model", "m": "model",
	"ns": "ns", "namespace": "ns",
	"instance": "instance", "inst": "instance", "replica": "instance",
	"pod": "pod", "cluster": "cluster", "for": "for", "last": "for", "since": "since", "at": "at", "share": "share",
}

func isKey(s string) bool {
	_, ok := settingKeys[strings.ToLower(strings.TrimLeft(s, "-"))]
	return ok
}

// keywords are the words before a time or a length of time.
var keywords = map[string]string{
	"for": "for", "last": "for", "past": "for", "최근": "for", "at": "at", "since": "since", "from": "since",
}

// vocabulary are the words to suggest for one that was not expected.
var vocabulary = []string{"for", "at", "since", "--share", "ns=", "instance=", "pod=", "cluster=", "model="}

// ParseCommand reads the text behind /vllm-triage. Times without a zone are in the author's zone; now is when it was typed.
// It never fails on what can be understood in one way only, and says what may have been meant otherwise.
func ParseCommand(text string, now time.Time, zone *time.Location) (Command, *Mistake) {
	ws := words(normalise(text))
	c := Command{Verb: Triage}
	explicit := false
	if len(ws) > 0 {
		if v, ok := spoken[strings.ToLower(ws[0])]; ok {
			c.Verb, ws, explicit = v, ws[1:], true
		}
	}
	switch c.Verb {
	case Help:
		return Command{Verb: Help}, nil
	case Explain:
		c.Subject = strings.Join(ws, " ")
		return c, nil
	default:
	}
	p := &parser{c: &c, now: now, zone: zone, given: map[string]bool{}}
	for len(ws) > 0 {
		n, mistake := p.take(ws)
		if mistake != nil {
			return Command{}, mistake
		}
		ws = ws[n:]
	}
	if !explicit && c.Model != "" && p.bare {
		c.Likely = firstOf(near(c.Model, verbWords()))
	}
	return c, p.finish()
}

func verbWords() []string {
	var out []string
	for _, v := range Verbs() {
		out = append(out, string(v))
	}
	return out
}

func firstOf(ws []string) string {
	if len(ws) == 0 {
		return ""
	}
	return ws[0]
}

type parser struct {
	c     *Command
	now   time.Time
	zone  *time.Location
	given map[string]bool
	bare  bool // The model was given without a key.
	since time.Time
}

// take reads one thing from the beginning of the words and says how many words it took.
func (p *parser) take(ws []string) (int, *Mistake) {
	word := strings.ToLower(ws[0])
	if key, value, ok := strings.Cut(ws[0], "="); ok && key != "" {
		name, known := settingKeys[strings.ToLower(strings.TrimLeft(key, "-"))]
		if known {
			return p.setting(name, value, ws)
		}
		if _, mistake := p.word(ws[0]); mistake == nil {
			return 1, nil // A model's name may have an equals sign in it.
		}
		return 0, &Mistake{Key: "mistake.key", Word: key, Near: near(key, vocabulary)}
	}
	if kind, ok := keywords[word]; ok {
		if len(ws) == 1 {
			return 0, &Mistake{Key: "mistake.empty", Word: ws[0]}
		}
		n, mistake := p.when(kind, ws[1:])
		return n + 1, mistake
	}
	switch {
	case word == "--share", word == "-share", word == "-s", word == "--public", word == "share" && p.c.Model != "", word == "공유":
		p.c.Share = true
		return 1, nil
	case strings.HasPrefix(word, "-"):
		return 0, &Mistake{Key: "mistake.flag", Word: ws[0], Near: near(word, vocabulary)}
	}
	if p.c.Verb == Incidents {
		if status, ok := map[string]string{
			"firing": "firing", "open": "firing", "active": "firing", "resolved": "resolved", "closed": "resolved", "all": "",
		}[word]; ok {
			p.c.Status = status
			return 1, nil
		}
	}
	// "30m ago" without "at" can mean one thing only; so can a time of day behind a model.
	if t, n := takeTime(ws, p.now, p.zone); n > 0 && (n > 1 || p.c.Model != "") {
		return n, p.at(t, strings.Join(ws[:n], " "))
	}
	return p.word(ws[0])
}

// word takes a bare word: the model.
func (p *parser) word(w string) (int, *Mistake) {
	if p.c.Model != "" {
		return 0, &Mistake{Key: "mistake.word", Word: w, Near: near(w, vocabulary)}
	}
	if w == "" {
		return 1, nil // Empty quotes.
	}
	p.c.Model, p.bare = w, true
	return 1, nil
}

// setting takes key=value; a time or a length may go on in the next words: at=2026-11-29 14:05.
func (p *parser) setting(name, value string, ws []string) (int, *Mistake) {
	if value == "" {
		return 0, &Mistake{Key: "mistake.empty", Word: name}
	}
	if name == "for" || name == "at" || name == "since" {
		return p.when(name, append([]string{value}, ws[1:]...))
	}
	if name == "share" {
		p.c.Share = !slices.Contains([]string{"false", "no", "0"}, strings.ToLower(value))
		return 1, nil
	}
	if p.given[name] || name == "model" && p.c.Model != "" {
		return 0, &Mistake{Key: "mistake.twice", Word: name}
	}
	p.given[name] = true
	switch name {
	case "model":
		p.c.Model = value
	case "ns":
		p.c.Namespace = value
	case "instance":
		p.c.Instance = value
	case "pod":
		p.c.Pod = value
	case "cluster":
		p.c.Cluster = value
	}
	return 1, nil
}

// when takes a length of time or a moment.
func (p *parser) when(kind string, ws []string) (int, *Mistake) {
	if p.given[kind] {
		return 0, &Mistake{Key: "mistake.twice", Word: kind}
	}
	if kind == "for" {
		d, n := takeDuration(ws)
		if n == 0 {
			return 0, &Mistake{Key: "mistake.duration", Word: ws[0]}
		}
		p.given[kind] = true
		p.c.For = d
		return n, nil
	}
	t, n := takeTime(ws, p.now, p.zone)
	if n == 0 {
		return 0, &Mistake{Key: "mistake.time", Word: ws[0]}
	}
	if kind == "since" {
		p.given[kind] = true
		p.since = t
		return n, nil
	}
	return n, p.at(t, strings.Join(ws[:n], " "))
}

func (p *parser) at(t time.Time, said string) *Mistake {
	switch {
	case p.given["at"]:
		return &Mistake{Key: "mistake.twice", Word: "at"}
	case t.After(p.now.Add(time.Minute)):
		return &Mistake{Key: "mistake.future", Word: said}
	case p.now.Sub(t) > maxAge:
		return &Mistake{Key: "mistake.old", Word: said}
	}
	p.given["at"] = true
	if t.Before(p.now) {
		p.c.At = t.UTC()
	}
	return nil
}

// finish checks what depends on several words.
func (p *parser) finish() *Mistake {
	c := p.c
	if !p.since.IsZero() {
		end := c.At
		if end.IsZero() {
			end = p.now
		}
		switch {
		case c.For != 0:
			return &Mistake{Key: "mistake.both", Word: "since"}
		case !p.since.Before(end):
			return &Mistake{Key: "mistake.future", Word: "since"}
		}
		c.For = end.Sub(p.since).Round(time.Second)
	}
	if c.For != 0 && c.For < time.Minute || c.For > maxFor {
		return &Mistake{Key: "mistake.length", Word: c.For.String()}
	}
	return nil
}
