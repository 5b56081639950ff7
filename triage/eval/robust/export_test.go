package robust

import "vllm-triage/triage/eval"

// Confident is what a report names a cause without reservation from.
const Confident = confident

// Rows in which metrics are taken away in turn, from the start or from the fault on, and some of them from the fault on.
const (
	EachMetric       = eachMetric
	EachMetricEnds   = eachMetricEnds
	SomeMetricsEnded = someMetricsEnded
)

// Commits and Rose are what the table is made with.
var (
	Commits = commits
	Rose    = rose
)

// Options is the evaluation under a variant.
func (v Variant) Options() eval.Options { return v.options(eval.Options{}) }
