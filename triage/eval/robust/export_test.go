package robust

import "vllm-triage/triage/eval"

// Confident is what a report names a cause without reservation from.
const Confident = confident

// EachMetric is the row in which every metric is taken away in turn.
const EachMetric = eachMetric

// Commits and Rose are what the table is made with.
var (
	Commits = commits
	Rose    = rose
)

// Options is the evaluation under a variant.
func (v Variant) Options() eval.Options { return v.options(eval.Options{}) }
