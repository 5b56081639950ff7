package promq

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Required lists the names of the metrics without which a query gives nothing, sorted: those on either side of an `or`, after
// an `unless` and in absent() or scalar() are not among them. It is nil when expr is not PromQL.
func Required(expr string) []string {
	tree, err := promQL.ParseExpr(expr)
	if err != nil {
		return nil
	}
	var out []string
	var walk func(node parser.Node)
	walk = func(node parser.Node) {
		switch n := node.(type) {
		case *parser.VectorSelector:
			for _, m := range n.LabelMatchers {
				if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
					out = append(out, m.Value)
				}
			}
			return
		case *parser.BinaryExpr:
			switch n.Op {
			case parser.LOR:
				return
			case parser.LUNLESS:
				walk(n.LHS)
				return
			}
			if fill := n.VectorMatching; fill != nil && (fill.FillValues.LHS != nil || fill.FillValues.RHS != nil) {
				return // A side that is missing is filled in.
			}
		case *parser.Call:
			switch n.Func.Name {
			case "absent", "absent_over_time", "scalar": // scalar() of nothing is NaN.
				return
			case "info":
				walk(n.Args[0])
				return
			}
		}
		for child := range parser.ChildrenIter(node) {
			walk(child)
		}
	}
	walk(tree)
	slices.Sort(out)
	return slices.Compact(out)
}
