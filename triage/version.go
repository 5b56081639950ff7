package triage

import (
	"slices"
	"strconv"
	"strings"

	"vllm-triage/triage/kb"
)

// version narrows the vLLM version from the metric names that exist: a name is exported from one version on, some went
// away later, and V1 creates every series at start, so absence tells as well. It is a range: patch releases look alike.
func (e *Engine) version(p *plan) VersionRange {
	var v VersionRange
	if len(p.names) == 0 {
		return v
	}
	for _, f := range e.kb.Versions {
		if !p.has(f.Name) {
			continue
		}
		if v.Min == "" || versionLess(v.Min, f.Since) {
			v.Min = f.Since
		}
		if f.Until != "" && (v.Max == "" || versionLess(f.Until, v.Max)) {
			v.Max = f.Until
		}
	}
	for _, f := range e.kb.Versions {
		// A name that the version must export and that is not there was dropped by the site: then its absence says nothing.
		if f.Absent && !p.has(f.Name) && !p.idle(f.Name) && (v.Min == "" || versionLess(v.Min, f.Since)) &&
			(v.Max == "" || versionLess(f.Since, v.Max)) {
			v.Max = f.Since // Exclusive, see Text.
		}
	}
	switch {
	case v.Min != "" && v.Max != "" && versionLess(v.Max, v.Min):
		v.Text = "mixed: both " + v.Max + " and " + v.Min + " or newer export here"
	case v.Min != "" && v.Max != "":
		v.Text = "between " + v.Min + " and " + v.Max
	case v.Min != "":
		v.Text = v.Min + " or newer"
	case v.Max != "":
		v.Text = "older than " + v.Max
	}
	return v
}

// due lists metric names that are missing although the server exports them: every version does, or others show that it is
// new enough and so configured, or the alert itself was made from them.
func (e *Engine) due(p *plan) map[string]bool {
	out := map[string]bool{}
	alerted := alertedBy(p.in.Alerts)
	for _, s := range e.kb.Signals {
		if !s.Queried() || s.Scope != "model" || len(p.found(s.Spellings())) > 0 {
			continue
		}
		required := watches(alerted, s)
		for _, n := range s.Names {
			if required || !s.Optional && !p.idle(n) {
				out[n] = true
			}
		}
	}
	least := e.version(p).Min
	for _, f := range e.kb.Versions {
		if least == "" || versionLess(least, f.Since) || p.has(f.Name) || p.idle(f.Name) {
			continue
		}
		if f.Absent || slices.ContainsFunc(f.With, p.has) {
			out[f.Name] = true
		}
	}
	return out
}

// idle says whether a missing name may be a counter that never moved: Ray skips increments of zero, so that it has none of
// those (v1/metrics/ray_wrappers.py).
func (p *plan) idle(name string) bool {
	return p.ray && strings.HasSuffix(name, "_total")
}

// has says whether a name exists, in any spelling.
func (p *plan) has(name string) bool {
	return len(p.found(kb.Spellings(name))) > 0
}

// versionLess compares dotted numbers.
func versionLess(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		n, m := part(x, i), part(y, i)
		if n != m {
			return n < m
		}
	}
	return false
}

func part(v []string, i int) int {
	if i >= len(v) {
		return 0
	}
	n, err := strconv.Atoi(v[i])
	if err != nil {
		return 0
	}
	return n
}
