package triage

import (
	"math"
	"slices"
	"strconv"

	"vllm-triage/triage/kb"
)

func (e *Engine) evidence(o *observations, c kb.Cause, l line) Evidence {
	x := o.get(l.p.Signal)
	ev := Evidence{
		Signal:   l.p.Signal,
		Unit:     x.sig.Unit,
		Before:   finite(o.feature(l.p.Signal, "base")),
		During:   finite(o.during(l.p)),
		Supports: l.weight > 0,
		Weight:   round3(l.weight),
		Query:    x.expr,
	}
	if l.p.Signal == "" {
		ev.Text = Text{Text: l.p.Say, Key: "evidence." + l.p.ID}
		return ev
	}
	template, key := l.p.Say, "evidence."+c.ID+"."+l.p.ID
	if l.weight < 0 || math.IsNaN(l.value) {
		if l.p.SayAgainst != "" {
			template, key = l.p.SayAgainst, key+".against"
		} else {
			template, key = "{signal} {during} (before {before})", "evidence.plain"
		}
	}
	if math.IsNaN(l.value) {
		ev.Text = text("evidence.unknown", "{signal}: not known", word("signal", x.sig.Title))
		return ev
	}
	ev.Text = o.say(key, template, l.p)
	return ev
}

// during is the figure that a predicate is about, for people: what the feature measures, in the signal's unit.
func (o *observations) during(p kb.Predicate) float64 {
	switch p.Feature {
	case "max", "peak":
		return o.feature(p.Signal, "max")
	case "min", "high":
		return o.feature(p.Signal, p.Feature)
	case "mean", "events":
		return o.feature(p.Signal, p.Feature)
	default:
		return o.feature(p.Signal, "level")
	}
}

// say words a line: placeholders are what the predicate measured, or a figure of the incident (see numbers).
func (o *observations) say(key, template string, p kb.Predicate, more ...textArg) Text {
	args := append(o.sayArgs(p), more...)
	for _, name := range placeholders(template) {
		if a, ok := o.numbers[name]; ok && !slices.ContainsFunc(args, func(x textArg) bool { return x.name == name }) {
			args = append(args, textArg{name, a})
		}
	}
	return text(key, template, args...)
}

func (o *observations) sayArgs(p kb.Predicate) []textArg {
	x := o.get(p.Signal)
	args := []textArg{word("signal", x.sig.Title)}
	add := func(name string, v float64, unit Unit) {
		if math.IsNaN(v) {
			args = append(args, word(name, "unknown"))
			return
		}
		args = append(args, number(name, v, unit))
	}
	add("during", o.during(p), x.sig.Unit)
	add("before", o.feature(p.Signal, "base"), x.sig.Unit)
	add("ratio", o.feature(p.Signal, "ratio"), Times)
	add("skew", o.feature(p.Signal, "skew"), Times)
	add("value", o.feature(p.Signal, p.Feature), x.sig.Unit)
	for i, t := range p.All {
		y := o.get(t.Signal)
		n := strconv.Itoa(i + 1)
		args = append(args, word("signal"+n, y.sig.Title))
		add("during"+n, o.feature(t.Signal, "level"), y.sig.Unit)
		add("before"+n, o.feature(t.Signal, "base"), y.sig.Unit)
		add("ratio"+n, o.feature(t.Signal, "ratio"), Times)
	}
	if p.Signal == "config_changes" {
		args = append(args, word("changes", o.configs.String()))
	}
	return args
}
