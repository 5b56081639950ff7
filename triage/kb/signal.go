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
}

// Fallback is another way to read a signal.
type Fallback struct {
	Names []string `yaml:"names"`
	Read  string   `yaml:"read"`
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
func (s Signal) Spellings() []string { return spellings(s.Names) }

// Spellings lists the metric names of a fallback in the same way.
func (f Fallback) Spellings() []string { return spellings(f.Names) }

func spellings(names []string) []string {
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
	if s.Ratio != nil {
		kinds++
	}
	if s.Derived != "" {
		kinds++
	}
	if kinds != 1 {
		bad("exactly one of names, ratio and derived must be set")
	}
	if s.Floor < 0 {
		bad("floor is negative")
	}
	return errors.Join(errs...)
}
