package command

import (
	"maps"
	"slices"
	"strings"
	"time"

	"vllm-triage/triage"
)

// Parse reads what stands behind the slash command. Now and zone are the user's: "at 14:05" is the last 14:05 there was
// for them. Its error is always an *Error, which can say itself in the user's language.
func Parse(text string, now time.Time, zone *time.Location, known Known) (Command, error) {
	if zone == nil {
		zone = time.UTC
	}
	p := &parser{words: split(normalise(text)), now: now.In(zone), known: known, c: Command{Verb: Triage}}
	if err := p.run(); err != nil {
		return Command{}, err
	}
	return p.c, nil
}

type parser struct {
	words []word
	now   time.Time
	known Known
	c     Command
	names []string // Words that are no keyword.
}

// next takes the next word.
func (p *parser) next() (word, bool) {
	if len(p.words) == 0 {
		return word{}, false
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w, true
}

func (p *parser) run() error {
	if len(p.words) > 0 && !p.words[0].quoted {
		if v, ok := verbs[strings.ToLower(p.words[0].text)]; ok && !slices.Contains(p.known.Models, p.words[0].text) {
			p.c.Verb = v
			p.words = p.words[1:]
		}
	}
	for {
		w, ok := p.next()
		if !ok {
			break
		}
		if err := p.word(w); err != nil {
			return err
		}
	}
	switch p.c.Verb {
	case Explain:
		return p.explain()
	case Triage:
		return p.model()
	default:
		// "help me" and "models please" are understood.
		return nil
	}
}

func (p *parser) word(w word) error {
	lower := strings.ToLower(w.text)
	if w.quoted {
		p.name(w.text)
		return nil
	}
	switch lower {
	case "--share", "-s", "share", "--공유", "공유":
		p.c.Share = true
		return nil
	case "--":
		return nil
	}
	if p.c.Verb == Explain {
		p.name(w.text)
		return nil
	}
	switch lower {
	case "for", "last", "--for", "지난":
		return p.duration()
	case "at", "--at", "@":
		return p.at()
	case "on", "in", "of", "now", "please", "지금":
		return nil
	}
	if key, value, ok := strings.Cut(w.text, "="); ok && key != "" {
		return p.label(strings.TrimLeft(key, "-"), value)
	}
	if strings.HasPrefix(w.text, "--") {
		return unknown(UnknownOption, w.text, "--share", "--for", "--at")
	}
	p.name(w.text)
	return nil
}

// name keeps a word that is no keyword.
func (p *parser) name(s string) {
	if s = cut(s); s != "" {
		p.names = append(p.names, s)
	}
}

func (p *parser) label(key, value string) error {
	lower := strings.ToLower(key)
	switch lower {
	case "for":
		p.words = append([]word{{text: value}}, p.words...)
		return p.duration()
	case "at":
		p.words = append([]word{{text: value}}, p.words...)
		return p.at()
	}
	names := []string{}
	for _, f := range fields {
		names = append(names, f.name)
		if lower == f.name || slices.Contains(f.aliases, lower) {
			if value = cut(value); value == "" {
				return &Error{Problem: EmptyValue, Word: key}
			}
			if f.name == "model" {
				p.name(value)
				return nil
			}
			*f.of(&p.c.Scope) = value
			return nil
		}
	}
	return unknown(UnknownLabel, key, names...)
}

func (p *parser) duration() error {
	w, ok := p.next()
	if !ok {
		return &Error{Problem: NoDuration}
	}
	text := w.text
	if len(p.words) > 0 && isUnit(p.words[0].text) && endsInDigit(text) {
		text += p.words[0].text // "for 30 min", "for 2 hours".
		p.words = p.words[1:]
	}
	d, err := parseDuration(text)
	if err != nil {
		return &Error{Problem: BadDuration, Word: text}
	}
	if d < MinFor || d > MaxFor {
		return &Error{Problem: DurationRange, Word: text}
	}
	p.c.For = d
	return nil
}

func (p *parser) at() error {
	w, ok := p.next()
	if !ok {
		return &Error{Problem: NoTime}
	}
	// A time may be up to four words: "yesterday 14:05 UTC", "2026-11-29 2:05 pm".
	texts := []string{w.text}
	for i := 0; i < 3 && i < len(p.words); i++ {
		texts = append(texts, p.words[i].text)
	}
	for n := len(texts); n > 0; n-- {
		if t, ok := parseTime(strings.Join(texts[:n], " "), p.now); ok {
			p.words = p.words[n-1:]
			if t.After(p.now.Add(time.Minute)) {
				return &Error{Problem: FutureTime, Word: strings.Join(texts[:n], " ")}
			}
			p.c.At = t
			return nil
		}
	}
	return &Error{Problem: BadTime, Word: w.text}
}

// model settles what Triage looks at.
func (p *parser) model() error {
	if len(p.names) == 0 {
		return nil
	}
	name := p.names[0]
	switch {
	case slices.Contains(p.known.Models, name):
	case len(p.known.Models) > 0:
		for _, m := range p.known.Models {
			if strings.EqualFold(m, name) {
				name = m
			}
		}
		if !slices.Contains(p.known.Models, name) {
			return unknown(UnknownModel, name, slices.Concat(p.known.Models, verbNames())...)
		}
	case len(p.names) == 1 && p.c == (Command{Verb: Triage, Share: p.c.Share}):
		// Nothing else was said and no models are known: a word close to a verb is one that was mistyped.
		if s := closest(name, verbNames(), 1); len(name) >= 4 && len(s) > 0 {
			return &Error{Problem: UnknownModel, Word: name, Suggestions: s}
		}
	}
	if len(p.names) > 1 {
		return &Error{Problem: TwoModels, Word: strings.Join(p.names, ", ")}
	}
	p.c.Scope.Model = name
	return nil
}

func (p *parser) explain() error {
	asked := strings.Join(p.names, " ")
	ids := slices.Sorted(maps.Keys(p.known.Causes))
	if asked == "" {
		return &Error{Problem: NoCause, Suggestions: ids[:min(len(ids), 5)]}
	}
	wanted := fold(asked)
	var prefix []string
	var names []string
	for _, id := range ids {
		all := append([]string{id}, strings.Split(p.known.Causes[id], "|")...)
		for _, name := range all {
			if fold(name) == wanted {
				p.c.Cause = id
				return nil
			}
		}
		if strings.Contains(fold(strings.Join(all, " ")), wanted) {
			prefix = append(prefix, id)
		}
		names = append(names, id)
	}
	switch {
	case len(ids) == 0:
		p.c.Cause = strings.ReplaceAll(strings.ToLower(asked), " ", "_")
		return nil
	case len(prefix) == 1:
		p.c.Cause = prefix[0]
		return nil
	case len(prefix) > 1:
		return &Error{Problem: UnknownCause, Word: asked, Suggestions: prefix[:min(len(prefix), 5)]}
	}
	return unknown(UnknownCause, strings.ReplaceAll(asked, " ", "_"), names...)
}

// fold makes "KV cache exhaustion", "kv-cache-exhaustion" and "kv_cache_exhaustion" the same.
func fold(s string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(s))
}

func verbNames() []string {
	return []string{string(Models), string(Incidents), string(Explain), string(Silences), string(Help)}
}

// Empty says whether a Triage names nothing: the caller may then take the only model there is, or ask.
func (c Command) Empty() bool { return c.Scope == triage.Scope{} }
