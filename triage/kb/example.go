package kb

import (
	"fmt"
	"slices"
)

// validateReferences checks what a cause says about other causes: triggers of its steps, and what its examples expect.
func (c Cause) validateReferences(b *Base) []error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("cause %q: "+format, append([]any{c.ID}, args...)...))
	}
	on := func(a Axis, id string) bool {
		x, ok := b.Cause(id)
		return ok && x.Axis == a
	}
	for _, a := range c.Actions {
		for _, id := range a.Triggers {
			if !on(Trigger, id) {
				bad("action %q: %q is no trigger", a.ID, id)
			}
		}
	}
	var names []string
	for _, e := range c.Examples {
		if e.Name == "" || slices.Contains(names, e.Name) {
			bad("example name %q is missing or not unique", e.Name)
		}
		names = append(names, e.Name)
		if e.At <= 0 {
			bad("example %q: at is missing", e.Name)
		}
		if len(e.Alert) > 0 && len(e.Scope) > 0 {
			bad("example %q: an alert brings its own scope", e.Name)
		}
		if id := e.Expect.First; id != "" && !on(Bottleneck, id) {
			bad("example %q: expected first %q is no bottleneck", e.Name, id)
		}
		if id := e.Expect.Trigger; id != "" && !on(Trigger, id) {
			bad("example %q: expected trigger %q is no trigger", e.Name, id)
		}
		for _, id := range e.Expect.Never {
			if _, ok := b.Cause(id); !ok {
				bad("example %q: never names unknown cause %q", e.Name, id)
			}
			if id == e.Expect.First || id == e.Expect.Trigger {
				bad("example %q: %q is expected and forbidden", e.Name, id)
			}
		}
	}
	return errs
}
