package triage

import (
	"fmt"
	"slices"
	"strings"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// expression builds the PromQL of a signal for a scope. by lists the labels to keep; without any the replicas are folded
// into one series. It returns "" when none of the signal's names exists.
//
// The names of several vLLM versions are joined with `or` around the innermost read, below every aggregation, so that a
// mixed fleet counts every replica once: sum(a or b), never sum(a) or sum(b) (reference: style §1.4).
func (e *Engine) expression(p *plan, s kb.Signal, by []string) string {
	inner := e.innermost(p, s)
	if inner == "" {
		return ""
	}
	grouping := ""
	if len(by) > 0 {
		grouping = " by (" + strings.Join(by, ", ") + ")"
	}
	switch s.Fold {
	case "p95":
		return fmt.Sprintf("histogram_quantile(0.95, sum by (%s) (%s))",
			strings.Join(append([]string{"le"}, by...), ", "), inner)
	case "count":
		// Replicas, not engines or processes: one row each first.
		return fmt.Sprintf("count%s (group by (%s) (%s))", grouping, strings.Join(e.rowKeys(p, false), ", "), inner)
	default:
		return fmt.Sprintf("%s%s (%s)", s.Fold, grouping, inner)
	}
}

// innermost is the read of a signal with all its existing names, before any fold.
func (e *Engine) innermost(p *plan, s kb.Signal) string {
	names, read, _ := e.existing(p, s)
	if len(names) == 0 {
		return ""
	}
	t, err := promq.ParseTemplate(read)
	if err != nil {
		return "" // Excluded when the knowledge base is loaded.
	}
	parts := make([]string, 0, len(names))
	for _, n := range names {
		if s.Scope == "target" {
			parts = append(parts, t.Expand(n, p.rate, e.opts.Matchers...))
			continue
		}
		parts = append(parts, t.Expand(n, p.rate, e.matchers(p.scope)...))
	}
	if len(parts) > 1 {
		// `or` compares whole label sets: bring both sides to the same labels first.
		keys := e.rowKeys(p, true)
		if s.Fold == "p95" {
			keys = append([]string{"le"}, keys...)
		}
		for i := range parts {
			parts[i] = fmt.Sprintf("sum by (%s) (%s)", strings.Join(keys, ", "), parts[i])
		}
	}
	expr := strings.Join(parts, " or ")
	if s.Scope == "target" {
		// Series without model_name belong to the scope when their target has served it: joined by target labels against
		// the anchor gauge over the whole look-back, so that a replica that is down now still counts.
		keys := p.targetKeys
		if len(keys) == 0 {
			return ""
		}
		expr = fmt.Sprintf("(%s) and on (%s) last_over_time(%s[%s] @ end())",
			expr, strings.Join(keys, ", "), e.selector(p.anchor, p.scope), promDuration(p.grid.end.Sub(p.grid.start)+p.rate))
	}
	return expr
}

// existing lists the names of a signal that discovery found, newest first, with how they are read. When none of its own
// exists, those of the first fallback that has any are taken. When discovery failed, every signal is asked for by its
// newest name.
func (e *Engine) existing(p *plan, s kb.Signal) (names []string, read string, estimate bool) {
	if s.Scope == "target" || p.discovery != nil {
		return s.Names[:1], s.Read, false
	}
	if names = p.found(s.Spellings()); len(names) > 0 {
		return names, s.Read, false
	}
	for _, f := range s.Fallback {
		if names = p.found(f.Spellings()); len(names) > 0 {
			return names, f.Read, f.Estimate
		}
	}
	return nil, "", false
}

// found lists the names that exist in the scope.
func (p *plan) found(names []string) []string {
	var out []string
	for _, n := range names {
		if p.names[n] && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// rowKeys are the labels that tell rows apart across clusters and namespaces; engine too when asked.
func (e *Engine) rowKeys(p *plan, engine bool) []string {
	keys := slices.Clone(p.targetKeys)
	if len(keys) == 0 {
		keys = []string{"instance"}
	}
	if engine && slices.Contains(p.replicaKeys, "engine") {
		keys = append(keys, "engine")
	}
	return keys
}
