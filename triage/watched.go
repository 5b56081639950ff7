package triage

import (
	"net/url"
	"regexp"
	"slices"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// longestExpr bounds the expressions that are looked at, in bytes: nobody writes longer rules, and parsing takes its time.
const longestExpr = 16 << 10

var metricPattern = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)

// watches says that an alert's expression, taken apart, names one of the metrics of a signal.
func watches(watched map[string]bool, s kb.Signal) bool {
	return slices.ContainsFunc(s.Spellings(), func(name string) bool { return watched[name] })
}

// watchedBy are the words of the alerts' expressions that may be names of metrics, each expression once, in the order of
// the alerts.
func watchedBy(alerts []Alert) []map[string]bool {
	var out []map[string]bool
	for _, expr := range expressionsOf(alerts) {
		words := map[string]bool{}
		for _, name := range metricPattern.FindAllString(expr, -1) {
			words[name] = true
		}
		out = append(out, words)
	}
	return out
}

// alertedBy are the metrics without which the alerts that fire would not.
func alertedBy(alerts []Alert) map[string]bool {
	firing := slices.DeleteFunc(slices.Clone(alerts), func(a Alert) bool { return a.Status != StatusFiring })
	out := map[string]bool{}
	for _, expr := range expressionsOf(firing) {
		for _, name := range promq.Required(expr) {
			out[name] = true
		}
	}
	return out
}

// expressionsOf are the alerts' expressions, each once, in the order of the alerts: a rule fires for thousands of replicas.
// Prometheus puts the expression into the link to where an alert comes from.
func expressionsOf(alerts []Alert) []string {
	var out []string
	seen := map[string]bool{}
	for _, a := range alerts {
		if seen[a.GeneratorURL] {
			continue
		}
		seen[a.GeneratorURL] = true
		u, err := url.Parse(a.GeneratorURL)
		if err != nil {
			continue
		}
		expr := u.Query().Get("g0.expr")
		if expr == "" || len(expr) > longestExpr || seen[expr] {
			continue
		}
		seen[expr] = true
		out = append(out, expr)
	}
	return out
}
