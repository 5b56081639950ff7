package promq

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Placeholders of a Template.
const (
	// MetricPlaceholder is the selector name that stands for the metric. metric_sum, metric_count and metric_bucket stand for
	// the series of a histogram of that name.
	MetricPlaceholder = "metric"
	// WindowPlaceholder is the range that stands for the rate window, in ranges ([1w]) and subqueries ([1w:15s]). A week is
	// long enough that nobody means it, and valid PromQL, so that templates can be checked by any PromQL tool.
	WindowPlaceholder = 7 * 24 * time.Hour
)

// promQL parses everything that a server might accept: what is unknown to an older server is refused there, not here.
var promQL = parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})

// Template is a query with places for the metric name, the rate window and more matchers. It is safe for concurrent use.
type Template struct {
	src string
}

// ParseTemplate checks src, which must be valid PromQL with at least one selector named metric:
//
//	sum by (instance) (rate(metric[1w]))
//	sum(rate(metric_sum{job!=""}[1w])) / sum(rate(metric_count{job!=""}[1w]))
func ParseTemplate(src string) (*Template, error) {
	expr, err := promQL.ParseExpr(src)
	if err != nil {
		return nil, fmt.Errorf("parse query template %q: %w", src, err)
	}
	found := false
	eachSelector(expr, func(vs *parser.VectorSelector) {
		_, ok := metricSuffix(vs.Name)
		found = found || ok
	})
	if !found {
		return nil, fmt.Errorf("parse query template %q: no selector is named %s, so there is no place for the metric", src, MetricPlaceholder)
	}
	return &Template{src: src}, nil
}

// String returns the source of the template.
func (t *Template) String() string { return t.src }

// Expand puts in the metric name and the window (milliseconds are the smallest unit) and adds the matchers to every selector.
// The result is canonical PromQL. name must not be empty; any UTF-8 is fine.
func (t *Template) Expand(name string, window time.Duration, ms ...*labels.Matcher) string {
	expr, err := promQL.ParseExpr(t.src) // A fresh tree, as it is changed below.
	if err != nil {
		panic("promq: template was parsed before: " + err.Error())
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			if n.Range == WindowPlaceholder {
				n.Range = window
			}
		case *parser.SubqueryExpr:
			if n.Range == WindowPlaceholder {
				n.Range = window
			}
		}
		return nil
	})
	eachSelector(expr, func(vs *parser.VectorSelector) {
		if suffix, ok := metricSuffix(vs.Name); ok {
			setName(vs, name+suffix)
		}
		addTo(vs, ms)
	})
	return expr.String()
}

// metricSuffix reports whether a selector's name stands for the metric, and with which suffix.
func metricSuffix(name string) (suffix string, ok bool) {
	switch name {
	case MetricPlaceholder, MetricPlaceholder + "_sum", MetricPlaceholder + "_count", MetricPlaceholder + "_bucket":
		return name[len(MetricPlaceholder):], true
	}
	return "", false
}

// AddMatchers adds matchers to every selector of a query, and returns it in canonical form.
func AddMatchers(expr string, ms ...*labels.Matcher) (string, error) {
	for _, m := range ms {
		if !model.UTF8Validation.IsValidLabelName(m.Name) {
			return "", fmt.Errorf("add matchers to %q: invalid label name %q", expr, m.Name)
		}
	}
	tree, err := promQL.ParseExpr(expr)
	if err != nil {
		return "", fmt.Errorf("add matchers to %q: %w", expr, err)
	}
	eachSelector(tree, func(vs *parser.VectorSelector) { addTo(vs, ms) })
	return tree.String(), nil
}

// Or joins queries so that each label set takes its value from the first that has it. Equal queries are joined once.
func Or(exprs ...string) (string, error) {
	if len(exprs) == 0 {
		return "", errors.New("join queries with or: none given")
	}
	var (
		tree parser.Expr
		seen []string
	)
	for _, expr := range exprs {
		one, err := promQL.ParseExpr(expr)
		if err != nil {
			return "", fmt.Errorf("join queries with or: %q: %w", expr, err)
		}
		if one.Type() != parser.ValueTypeVector {
			return "", fmt.Errorf("join queries with or: %q is a %s, not an instant vector", expr, parser.DocumentedType(one.Type()))
		}
		canonical := one.String()
		switch {
		case slices.Contains(seen, canonical):
			continue
		case tree == nil:
			tree = one
		default:
			if len(seen) == 1 {
				tree = enclose(tree)
			}
			tree = &parser.BinaryExpr{
				Op: parser.LOR, LHS: tree, RHS: enclose(one),
				VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany},
			}
		}
		seen = append(seen, canonical)
	}
	return tree.String(), nil
}

// enclose puts operators into parentheses, since the printer knows no precedence.
func enclose(e parser.Expr) parser.Expr {
	switch e.(type) {
	case *parser.BinaryExpr, *parser.UnaryExpr:
		return &parser.ParenExpr{Expr: e}
	}
	return e
}

// Selector returns the selector of a metric, fit for match[] and as a query. An empty name selects by matchers alone, one of
// which must then exclude the empty string.
func Selector(name string, ms ...*labels.Matcher) string {
	vs := &parser.VectorSelector{}
	if name != "" {
		setName(vs, name)
	}
	addTo(vs, ms)
	return vs.String()
}

func eachSelector(expr parser.Expr, f func(*parser.VectorSelector)) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if vs, ok := node.(*parser.VectorSelector); ok {
			f(vs)
		}
		return nil
	})
}

// setName makes the selector select the metric. The printer writes Name bare, so a name that cannot stand bare (UTF-8, or a
// word of the language) goes into a matcher only.
func setName(vs *parser.VectorSelector, name string) {
	ms := slices.DeleteFunc(slices.Clone(vs.LabelMatchers), func(m *labels.Matcher) bool {
		return m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual && m.Value == vs.Name
	})
	vs.Name = ""
	if bare, err := promQL.ParseExpr(name); err == nil {
		if plain, ok := bare.(*parser.VectorSelector); ok && plain.Name == name && len(plain.LabelMatchers) == 1 {
			vs.Name = name
		}
	}
	ms = append(ms, Equal(model.MetricNameLabel, name))
	vs.LabelMatchers = ms
}

// addTo adds the matchers that the selector does not have yet.
func addTo(vs *parser.VectorSelector, ms []*labels.Matcher) {
	own := slices.Clone(vs.LabelMatchers)
	for _, m := range ms {
		same := func(o *labels.Matcher) bool { return o.Name == m.Name && o.Type == m.Type && o.Value == m.Value }
		if slices.ContainsFunc(own, same) {
			continue
		}
		if m.Name == model.MetricNameLabel {
			vs.Name = "" // The parser refuses a bare name beside a matcher for it.
		}
		own = append(own, m)
	}
	vs.LabelMatchers = own
}
