package notify

import (
	"strings"
	"sync"

	"vllm-triage/notify/locale"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
)

// What a sentence of the knowledge base may follow: the runner-up before what speaks against it, and the first choice
// before what contradicts it.
const (
	secondIs = "{second} is second: "
	fitsBut  = "{first} fits best, but "
)

// leads are the catalogue's keys for the two.
var leads = map[string]string{secondIs: "ui.second_is", fitsBut: "ui.fits_but"}

// spoken is what the embedded knowledge base says, so that it can be said in other words: with other units and zones,
// and in other languages. Sites may lay their own knowledge over it; what does not match is told as the report has it.
type spoken struct {
	templates map[string]string    // English, by the key of the Text.
	causes    map[string][2]string // Axis and id, by the English title.
	signals   map[string]string    // Id, by the English title.
}

var embeddedKnowledge = sync.OnceValue(func() spoken {
	s := spoken{templates: map[string]string{}, causes: map[string][2]string{}, signals: map[string]string{}}
	base, err := kb.Load()
	if err != nil {
		return s // The engine refuses to start then; a message is told in the report's own words.
	}
	for _, x := range base.Signals {
		s.signals[x.Title] = x.ID
	}
	for _, c := range base.Causes {
		s.causes[c.Title] = [2]string{string(c.Axis), c.ID}
		for i := range c.Evidence {
			p := &c.Evidence[i]
			s.templates["evidence."+c.ID+"."+p.ID] = p.Say
			if p.SayAgainst != "" {
				s.templates["evidence."+c.ID+"."+p.ID+".against"] = p.SayAgainst
				s.templates["runner_up."+c.ID+"."+p.ID] = secondIs + p.SayAgainst
				s.templates["contradicted."+c.ID+"."+p.ID] = fitsBut + p.SayAgainst
			}
		}
		for _, r := range c.Requires {
			if r.Say != "" {
				s.templates["condition."+c.ID+"."+r.Signal+"."+r.Feature] = r.Say
			}
		}
		for _, a := range c.Actions {
			s.templates["action."+c.ID+"."+a.ID] = a.Text
			s.templates["cost."+c.ID+"."+a.ID] = a.Cost
		}
	}
	return s
})

// template finds the words of a sentence in the message's language: the catalogue's own by the key, else those of the
// knowledge base, as long as the sentence is word for word the one that this build knows.
func (b *builder) template(t triage.Text) (string, bool) {
	if t.Key == "" {
		return "", false
	}
	if s, ok := b.words.Lookup("sentence." + t.Key); ok {
		return s, true
	}
	english, ok := embeddedKnowledge().templates[t.Key]
	if !ok {
		return "", false
	}
	if said, complete := locale.Expand(english, func(name string) (string, bool) {
		a, ok := t.Args[name]
		return a.String(), ok
	}); !complete || said != t.Text {
		return "", false
	}
	if b.words.Language() == locale.Fallback {
		return english, true
	}
	for lead, key := range leads {
		if rest, ok := strings.CutPrefix(english, lead); ok {
			s, known := b.words.Lookup("knowledge." + rest)
			return b.words.Fill(key, "why", s), known
		}
	}
	return b.words.Lookup("knowledge." + english)
}

// word tells a value that is a word, by what the sentence calls it: titles of causes and signals, states and reasons have
// words in every language; labels stay as they are, whatever they look like.
func (b *builder) word(name, s string) string {
	known := embeddedKnowledge()
	switch strings.TrimRight(name, "0123456789") {
	case "first", "second":
		if c, ok := known.causes[s]; ok {
			return b.title(c[0], c[1], s)
		}
	case "state":
		if state, ok := b.words.Find("state." + s); ok {
			return state
		}
	case "why":
		return b.why(s)
	case "signal":
		if id, ok := known.signals[s]; ok && b.words.Language() != locale.Fallback {
			return b.label(id)
		}
		if _, ok := b.words.Find("signal." + s); ok {
			return b.label(s)
		}
	}
	if s == "unknown" {
		return b.words.Text("ui.unknown")
	}
	return Clean(s, maxWords)
}

// why tells the reason for which something could not be read. The engine may put before it what it is about: a signal, or
// something that has words of its own.
func (b *builder) why(s string) string {
	if said, ok := b.words.Lookup("why." + s); ok {
		return said
	}
	if id, rest, ok := strings.Cut(s, ": "); ok {
		if _, known := b.words.Find("signal." + id); known {
			return b.label(id) + ": " + b.why(rest)
		}
		if what, known := b.words.Lookup("why." + id); known {
			return what + ": " + b.why(rest)
		}
	}
	return Clean(s, maxWords)
}
