package kb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Class says when a change of a signal can be seen. Onsets are compared inside one class only (reference: ranking §3.2).
type Class string

// The observation classes.
const (
	StateClass  Class = "state"       // Gauges: one scrape late.
	EventClass  Class = "event"       // Counters of events: one rate window late.
	FirstToken  Class = "first_token" // Seen when the first token comes: the time to first token late.
	FinishClass Class = "finish"      // Seen when the request ends: the whole request late, survivors only.
	SourceClass Class = "source"      // About the scrape itself.
)

// Signal is one thing that is read from Prometheus or computed from what was read.
type Signal struct {
	ID    string `yaml:"id"`
	Title string `yaml:"title"` // For people, lower case, English.
	Unit  Unit   `yaml:"unit"`
	Class Class  `yaml:"class"`
	// Names are the metric's names, newest first. Empty for computed signals.
	Names []string `yaml:"names"`
	// Read is the innermost PromQL, in which `metric` stands for the name and [1w] for the rate window.
	Read string `yaml:"read"`
	// Fallback are other metrics that tell the same, less directly; the first whose names exist is read when Names do not.
	Fallback []Fallback `yaml:"fallback"`
	// Instead computes the signal from others when it can be read in no other way, or has no other way; the first whose
	// signals are there counts.
	Instead []Instead `yaml:"instead"`
	// SpareFor lists signals that this one stands in for: it is read only when one of them has none of its own names.
	SpareFor []string `yaml:"spare_for"`
	// Fold is how replicas become one series: sum, avg, max, min, count or p95 (of a classic histogram).
	Fold string `yaml:"fold"`
	// Scope is "model" (the series carry model_name; the default), "target" (they do not and come from the same target),
	// "device" (another exporter tells about the host's devices) or "pod" (one tells about the replica's pod).
	Scope string `yaml:"scope"`
	// Replica asks for a per-replica view as well.
	Replica bool `yaml:"replica"`
	// Floor is the difference below which a change is noise, in Unit.
	Floor float64 `yaml:"floor"`
	// Optional marks names that only some configurations or versions export: their absence is not reported as missing.
	Optional bool `yaml:"optional"`
	// Ratio computes the signal from two others.
	Ratio *RatioOf `yaml:"ratio"`
	// Derived names the code that computes the signal.
	Derived string `yaml:"derived"`
	// Needs lists the signals that Derived reads; without them it is unknown.
	Needs []string `yaml:"needs"`
	// BetterWith lists signals that Derived reads where they are there; without them it is only an estimate.
	BetterWith []string `yaml:"better_with"`
	// Pool says that Derived also reads the size of the KV cache (vllm:cache_config_info); without it the signal is unknown.
	Pool bool `yaml:"pool"`
}

// Fallback is another way to read a signal.
type Fallback struct {
	Names []string `yaml:"names"`
	Read  string   `yaml:"read"`
	// Estimate marks a reading whose level is right and whose single points are not: features of single points, such as
	// how flat a series is, are unknown.
	Estimate bool `yaml:"estimate"`
}

// Instead is another way to compute a signal: as a sum and difference of others, or, for a ratio, as another ratio.
type Instead struct {
	Plus  []string `yaml:"plus"`
	Minus []string `yaml:"minus"`
	// Per divides the sum by the mean of a ratio over all of the data.
	Per   *RatioOf `yaml:"per"`
	Ratio *RatioOf `yaml:"ratio"`
	// Estimate is as in Fallback.
	Estimate bool `yaml:"estimate"`
}

// Operands lists the signals that it is made of.
func (i Instead) Operands() []string {
	if i.Ratio != nil {
		return []string{i.Ratio.Num, i.Ratio.Den}
	}
	all := slices.Concat(i.Plus, i.Minus)
	if i.Per != nil {
		all = append(all, i.Per.Num, i.Per.Den)
	}
	return all
}

// RatioOf divides two signals, pooled over a window.
type RatioOf struct {
	Num string `yaml:"num"`
	Den string `yaml:"den"`
	// MinEvents is how many events of Den a window needs; with fewer the ratio is unknown there.
	MinEvents float64 `yaml:"min_events"`
}

// Queried says whether the signal is read from Prometheus.
func (s Signal) Queried() bool { return len(s.Names) > 0 }

// Neighbour says whether another exporter beside the replica is read.
func (s Signal) Neighbour() bool { return s.Queried() && (s.Scope == "device" || s.Scope == "pod") }

// Spellings lists the metric names to look for, newest first: each name as vLLM exports it, then as Ray does
// (v1/metrics/ray_wrappers.py replaces every other character by "_"; Ray adds its own prefix; counters lose "_total").
func (s Signal) Spellings() []string { return Spellings(s.Names...) }

// Spellings lists the metric names of a fallback in the same way.
func (f Fallback) Spellings() []string { return Spellings(f.Names...) }

// Spellings lists metric names as vLLM exports them, then as Ray does.
func Spellings(names ...string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		if rest, ok := strings.CutPrefix(n, "vllm:"); ok {
			out = append(out, "vllm_"+rest, "ray_vllm_"+rest)
			if bare, ok := strings.CutSuffix(rest, "_total"); ok {
				out = append(out, "ray_vllm_"+bare)
			}
		}
	}
	return out
}

func (s Signal) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("signal %q: "+format, append([]any{s.ID}, args...)...))
	}
	if !idPattern.MatchString(s.ID) {
		bad("id must be snake_case")
	}
	if s.Title == "" {
		bad("title is missing")
	}
	if !slices.Contains(Units(), s.Unit) {
		bad("unit %q is unknown", s.Unit)
	}
	if !slices.Contains([]Class{StateClass, EventClass, FirstToken, FinishClass, SourceClass}, s.Class) {
		bad("class %q is unknown", s.Class)
	}
	kinds := 0
	if s.Queried() {
		kinds++
		if s.Read == "" {
			bad("read is missing")
		}
		if !slices.Contains([]string{"sum", "avg", "max", "min", "count", "p95"}, s.Fold) {
			bad("fold %q is not sum, avg, max, min, count or p95", s.Fold)
		}
		if !slices.Contains([]string{"model", "target", "device", "pod"}, s.Scope) {
			bad("scope %q is not model, target, device or pod", s.Scope)
		}
	}
	for i, f := range s.Fallback {
		if len(f.Names) == 0 || f.Read == "" {
			bad("fallback[%d] needs names and read", i)
		}
	}
	for i, alt := range s.Instead {
		if (alt.Ratio != nil) != (s.Ratio != nil) || (alt.Ratio == nil) != (len(alt.Plus) > 0) {
			bad("instead[%d] must be a ratio of a ratio, and plus and minus of any other signal", i)
		}
	}
	if s.Ratio != nil {
		kinds++
	}
	if s.Derived != "" {
		kinds++
	}
	if kinds != 1 && (kinds != 0 || len(s.Instead) == 0) {
		bad("exactly one of names, ratio and derived must be set, or instead alone")
	}
	if s.Floor < 0 {
		bad("floor is negative")
	}
	return errors.Join(errs...)
}
