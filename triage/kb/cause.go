package kb

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Axis is which of the two questions a cause answers.
type Axis string

// The axes.
const (
	Bottleneck Axis = "bottleneck" // What makes requests slow or fail now.
	Trigger    Axis = "trigger"    // What changed to bring it there.
)

// Kind groups causes by how bottlenecks and triggers go together.
type Kind string

// The kinds of causes.
const (
	Saturation Kind = "saturation" // A bottleneck that needs a driver: more, longer or different work, or less capacity.
	Service    Kind = "service"    // A bottleneck by itself: something broke or slowed down.
	Quiet      Kind = "quiet"      // No bottleneck: healthy, low traffic.
	Workload   Kind = "workload"   // A trigger: the requests changed.
	Change     Kind = "change"     // A trigger: the deployment changed.
	NoTrigger  Kind = "none"       // The trigger "none".
)

// Cause is one bottleneck or trigger: what it is, what speaks for and against it, what to do about it, and examples that
// are executed as tests.
type Cause struct {
	ID    string `yaml:"id"`
	Axis  Axis   `yaml:"axis"`
	Kind  Kind   `yaml:"kind"`
	Title string `yaml:"title"`
	// Mechanism explains the cause in a few sentences.
	Mechanism string `yaml:"mechanism"`
	// Sources are documents, issues or files of vLLM that the knowledge comes from.
	Sources []string `yaml:"sources"`
	// Prior is the score before any evidence, in log-odds.
	Prior float64 `yaml:"prior"`
	// Alerts shifts the prior by the name of a firing alert (a regular expression, anchored), in log-odds.
	Alerts map[string]float64 `yaml:"alerts"`
	// Needs are the signals without which the cause is not checked.
	Needs []string `yaml:"needs"`
	// Requires are hard conditions: when one is known to be false, the cause is refuted.
	Requires []Condition `yaml:"requires"`
	Evidence []Predicate `yaml:"evidence"`
	// Explains lists the signals whose deviation this cause accounts for: its consequences.
	Explains []string `yaml:"explains"`
	// Parents are causes that would produce this picture as a consequence.
	Parents []string `yaml:"parents"`
	// With shifts the joint score of this cause together with one of the other axis, in log-odds.
	With map[string]float64 `yaml:"with"`
	// Place is "replicas" when the cause is about single replicas even if all of them show it, else "scope".
	Place string `yaml:"place"`
	// Where is the per-replica signal by which the replicas concerned are told: running, waiting, kv_usage, itl, load
	// (running and waiting) or up. Empty: the cause has no place of its own.
	Where string `yaml:"where"`
	// Panels are the signals to draw for this cause, best first.
	Panels   []string  `yaml:"panels"`
	Actions  []Action  `yaml:"actions"`
	Examples []Example `yaml:"examples"`

	// File is where the cause was read from.
	File string `yaml:"-"`

	patterns []AlertPattern
}

// Condition is a feature of a signal compared with bounds; unset bounds do not apply.
type Condition struct {
	Signal  string   `yaml:"signal"`
	Feature string   `yaml:"feature"`
	Min     *float64 `yaml:"min"`
	Max     *float64 `yaml:"max"`
	// Say tells why the cause is refuted when the condition does not hold; {during} and {before} are filled in.
	Say string `yaml:"say"`
	// Unless the condition is known it passes; set Known to refuse unknown values too.
	Known bool `yaml:"known"`
}

// Test maps a feature to a value from -1 (No or beyond) over 0 (half way) to +1 (Yes or beyond).
type Test struct {
	Signal  string   `yaml:"signal"`
	Feature string   `yaml:"feature"`
	No      *float64 `yaml:"no"`
	Yes     *float64 `yaml:"yes"`
}

// Predicate is one line of evidence. Its weight is For at +1, Against at -1, in log-odds, linear between.
type Predicate struct {
	ID   string `yaml:"id"`
	Test `yaml:",inline"`
	// All are further tests: the predicate's value is the smallest of all of them.
	All []Test `yaml:"all"`
	// When guards the predicate: unless all hold, it is unknown and says nothing.
	When    []Condition `yaml:"when"`
	For     float64     `yaml:"for"`
	Against float64     `yaml:"against"`
	// Family groups predicates that say the same thing; they share their weight.
	Family string `yaml:"family"`
	// Key marks evidence that the cause cannot do without.
	Key bool `yaml:"key"`
	// Sufficient marks evidence that stands by itself: where it holds, key evidence that could not be read takes nothing away.
	Sufficient bool `yaml:"sufficient"`
	// Say is the sentence when it supports, SayAgainst when it does not. {during}, {before}, {ratio} are filled in.
	Say        string `yaml:"say"`
	SayAgainst string `yaml:"say_against"`
}

// Action is a next step. Its text may use the numbers that the engine computes, as {name}.
type Action struct {
	ID     string `yaml:"id"`
	Text   string `yaml:"text"`
	Option string `yaml:"option"`
	Cost   string `yaml:"cost"`
	// Triggers restricts the step to these triggers; empty means any.
	Triggers []string `yaml:"triggers"`
	// When guards the step by features.
	When []Condition `yaml:"when"`
}

// Example is a window of series in promqltest notation and what must come of it. Every cause has one that it wins and one
// that it must lose (another is expected and the cause stands under never). The first value is at Unix time 1,800,000,000
// (2027-01-15 08:00:00 UTC), which series that hold times count from.
type Example struct {
	Name string `yaml:"name"`
	// Source is the issue, field case or document that the picture comes from.
	Source string `yaml:"source"`
	// Base names a file of series under examples/ that Series adds to or overrides: a series with the same labels replaces
	// the base's, one without any value (only _) takes it away, and the count of a histogram takes its buckets with it.
	Base   string `yaml:"base"`
	Series string `yaml:"series"`
	// At is the moment of the question, counted from the start of the series.
	At time.Duration `yaml:"at"`
	// Alert holds the labels of the alert; empty asks ad hoc. StartsAt counts from the start of the series. Expr is the
	// expression of the alert's rule.
	Alert    map[string]string `yaml:"alert"`
	Expr     string            `yaml:"expr"`
	StartsAt time.Duration     `yaml:"starts_at"`
	Scope    map[string]string `yaml:"scope"`
	Expect   Expect            `yaml:"expect"`
}

// Expect is what an example must give.
type Expect struct {
	// First is the bottleneck that must win; for an example of a trigger, of a look-alike too.
	First   string `yaml:"first"`
	Trigger string `yaml:"trigger"`
	Verdict string `yaml:"verdict"`
	// Never lists causes that must not stand first and must stay below 0.3.
	Never []string `yaml:"never"`
	Where string   `yaml:"where"`
}

// Winning says whether the example is one that the cause must win.
func (e Example) Winning(c Cause) bool {
	if c.Axis == Trigger {
		return e.Expect.Trigger == c.ID
	}
	return e.Expect.First == c.ID
}

func (c Cause) validate(b *Base) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("cause %q: "+format, append([]any{c.ID}, args...)...))
	}
	if !idPattern.MatchString(c.ID) {
		bad("id must be snake_case")
	}
	if c.Title == "" || c.Mechanism == "" {
		bad("title and mechanism are needed")
	}
	switch c.Axis {
	case Bottleneck:
		if !slices.Contains([]Kind{Saturation, Service, Quiet}, c.Kind) {
			bad("kind %q is not saturation, service or quiet", c.Kind)
		}
	case Trigger:
		if !slices.Contains([]Kind{Workload, Change, NoTrigger}, c.Kind) {
			bad("kind %q is not workload, change or none", c.Kind)
		}
	default:
		bad("axis %q is not bottleneck or trigger", c.Axis)
	}
	if !slices.Contains([]string{"", "scope", "replicas"}, c.Place) {
		bad("place %q is not scope or replicas", c.Place)
	}
	if !slices.Contains([]string{"", "running", "waiting", "kv_usage", "itl", "load", "up"}, c.Where) {
		bad("where %q is not running, waiting, kv_usage, itl, load or up", c.Where)
	}
	for _, id := range slices.Concat(c.Needs, c.Panels) {
		if _, ok := b.Signal(id); !ok {
			bad("signal %q is unknown", id)
		}
	}
	for _, id := range c.Explains {
		if _, ok := b.Signal(id); !ok {
			bad("explains: signal %q is unknown", id)
		}
	}
	for _, cond := range c.Requires {
		errs = append(errs, cond.validate(b, "cause "+c.ID+" requires"))
	}
	seen := map[string]bool{}
	families := map[string]int{}
	for i := range c.Evidence {
		p := c.Evidence[i]
		where := fmt.Sprintf("cause %s evidence %s", c.ID, p.ID)
		if p.ID == "" || seen[p.ID] {
			bad("evidence %d: id %q is missing or not unique", i, p.ID)
		}
		seen[p.ID] = true
		errs = append(errs, p.validate(b, where))
		if families[p.Family]++; families[p.Family] > 6 {
			bad("family %q has more than 6 predicates: they cannot all be different facts", p.Family)
		}
	}
	for _, a := range c.Actions {
		if a.ID == "" || a.Text == "" {
			bad("an action needs id and text")
		}
		for _, cond := range a.When {
			errs = append(errs, cond.validate(b, "cause "+c.ID+" action "+a.ID))
		}
	}
	return errors.Join(errs...)
}

func (p Predicate) validate(b *Base, where string) error {
	var errs []error
	for _, t := range append([]Test{p.Test}, p.All...) {
		errs = append(errs, t.validate(b, where))
	}
	for _, cond := range p.When {
		errs = append(errs, cond.validate(b, where+" when"))
	}
	for _, w := range []float64{p.For, p.Against} {
		if math.Abs(w) > 4 {
			errs = append(errs, fmt.Errorf("%s: weight %g is beyond ±4", where, w))
		}
	}
	if p.For < 0 || p.Against > 0 {
		errs = append(errs, fmt.Errorf("%s: for must not be negative, against not positive", where))
	}
	if p.Family == "" {
		errs = append(errs, fmt.Errorf("%s: family is missing", where))
	}
	if p.Say == "" {
		errs = append(errs, fmt.Errorf("%s: say is missing", where))
	}
	return errors.Join(errs...)
}

func (t Test) validate(b *Base, where string) error {
	if _, ok := b.Signal(t.Signal); !ok {
		return fmt.Errorf("%s: signal %q is unknown", where, t.Signal)
	}
	if !slices.Contains(Features(), t.Feature) {
		return fmt.Errorf("%s: feature %q is unknown", where, t.Feature)
	}
	if t.No == nil || t.Yes == nil || *t.No == *t.Yes {
		return fmt.Errorf("%s: no and yes are needed and must differ", where)
	}
	return nil
}

func (c Condition) validate(b *Base, where string) error {
	if _, ok := b.Signal(c.Signal); !ok {
		return fmt.Errorf("%s: signal %q is unknown", where, c.Signal)
	}
	if !slices.Contains(Features(), c.Feature) {
		return fmt.Errorf("%s: feature %q is unknown", where, c.Feature)
	}
	if c.Min == nil && c.Max == nil {
		return fmt.Errorf("%s: min or max is needed", where)
	}
	return nil
}

// Features lists what can be asked of a signal in a window. All compare the incident with the baseline.
//
//	level   its value in the late half of the incident window (median; pooled for ratios)
//	mean    its mean over the incident window
//	high    its 90th percentile in the late half: what a gauge that bounces off its ceiling reaches
//	max     its largest value in the incident window
//	min     its smallest value there
//	base    its level in the baseline (median; pooled for ratios)
//	ratio   (level + floor) / (base + floor)
//	delta   level - base
//	z       delta in robust standard deviations of the baseline, at least one floor each
//	peak    (max + floor) / (base + floor)
//	slope   change per minute over the incident window, as a share of the level
//	spread  (largest - smallest) / largest in the late half: 0 is a flat line
//	zeros   share of the incident window in which it is zero
//	onset   seconds from the incident's onset to its own; unknown when it does not deviate
//	skew    worst replica / median of the others, late half
//	events  how many events the incident window holds (counters)
func Features() []string {
	return []string{
		"level", "mean", "high", "max", "min", "base", "ratio", "delta", "z", "peak", "slope", "spread", "zeros", "onset", "skew",
		"events",
	}
}
