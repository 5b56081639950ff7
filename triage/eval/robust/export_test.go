package robust

import "vllm-triage/triage/eval"

// Confident is what a report names a cause without reservation from.
const Confident = confident

// Family and Commits are what the table is made with.
var (
	Family  = family
	Commits = commits
)

// Options is the evaluation under a variant.
func (v Variant) Options() eval.Options { return v.options(eval.Options{}) }
