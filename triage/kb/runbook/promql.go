package runbook

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// increases are the functions that make sense of a counter, and presence those that look at no value.
var (
	increases = []string{"rate", "increase", "irate", "resets"}
	presence  = []string{"absent", "absent_over_time", "last_over_time", "present_over_time", "count_over_time"}
)

// checkQuery validates one query of a page whose matchers are filled with noMatchers.
func (v *vocabulary) checkQuery(query string) error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return fmt.Errorf("query does not parse: %w", err)
	}
	var errs []error
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			errs = append(errs, v.checkSelector(s, path))
		}
		return nil
	})
	return errors.Join(errs...)
}

func (v *vocabulary) checkSelector(s *parser.VectorSelector, path []parser.Node) error {
	m, ok := v.metrics[s.Name]
	if !ok {
		return fmt.Errorf("metric %q is unknown; name it in metrics/*.txt if it exists", s.Name)
	}
	hasModel := slices.ContainsFunc(s.LabelMatchers, func(l *labels.Matcher) bool { return l.Name == "model_name" })
	if m.scope == modelScope && !hasModel {
		return fmt.Errorf("metric %q is asked for all models: put {{matchers}} in its braces", s.Name)
	}
	if m.scope == targetScope && hasModel {
		return fmt.Errorf("metric %q has no label model_name: join it by job and instance", s.Name)
	}
	called := func(names []string) bool {
		return slices.ContainsFunc(path, func(n parser.Node) bool {
			c, ok := n.(*parser.Call)
			return ok && slices.Contains(names, c.Func.Name)
		})
	}
	switch {
	case m.kind == counter && !called(increases) && !called(presence):
		return fmt.Errorf("counter %q is read without rate or increase", s.Name)
	case m.kind == gauge && called(increases):
		return fmt.Errorf("gauge %q is read with rate or increase", s.Name)
	}
	return nil
}
