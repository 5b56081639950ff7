package robust

import (
	"slices"

	"vllm-triage/promq/memstore"
	"vllm-triage/promq/recording"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

// Variant is one transformation of data, question or server. Variants of one Name share a row of the table.
type Variant struct {
	Group string
	Name  string
	// Detail tells the variants of one row apart.
	Detail string
	// Data makes the series of a recording; nil keeps them. A nil store means that the variant does not apply.
	Data func(r *eval.Recording) *memstore.Store
	// Case changes the question; nil keeps it. false means that the variant does not apply.
	Case func(c eval.Case) (eval.Case, bool)
	// Querier stands between the engine and the data; nil is none.
	Querier func(next triage.Querier) triage.Querier
	// Blind says that metrics are missing or stale, so that "metrics_missing" is no wrong answer.
	Blind bool
	// Gone says that what decides is no longer in the data: not knowing is a right answer, being sure of another is not.
	Gone bool
}

// Names of the groups, in the order of the table.
const (
	groupMissing    = "metrics missing"
	groupNames      = "metric names"
	groupLabels     = "labels"
	groupFleet      = "replicas"
	groupScrape     = "scraping"
	groupTime       = "time"
	groupNeighbours = "neighbours"
	groupScale      = "scale"
	groupServer     = "Prometheus"
)

// Apply returns the transformed cases. Each recording is transformed once.
func (v Variant) Apply(cases []eval.Case) []eval.Case {
	stores := map[*eval.Recording]*recording.Recording{}
	var out []eval.Case
	for _, c := range cases {
		if v.Data != nil {
			data, done := stores[c.Recording]
			if !done {
				if s := v.Data(c.Recording); s != nil {
					data = recording.FromStore(s)
				}
				stores[c.Recording] = data
			}
			if data == nil {
				continue
			}
			c.Data = data
		}
		if v.Case != nil {
			var ok bool
			if c, ok = v.Case(c); !ok {
				continue
			}
		}
		if v.Blind || v.Gone {
			c.Also = append(slices.Clone(c.Also), "metrics_missing")
		}
		out = append(out, c)
	}
	return out
}

// options puts what stands between the engine and the data into the options of an evaluation.
func (v Variant) options(o eval.Options) eval.Options {
	if v.Querier != nil {
		o.Querier = func(_ int, next triage.Querier) triage.Querier { return v.Querier(next) }
	}
	return o
}

// Variants lists all transformations of the recordings, in the order of the table.
func Variants(base *kb.Base, recs []*eval.Recording) []Variant {
	var out []Variant
	out = append(out, Variant{Group: "as recorded", Name: "unchanged"})
	out = append(out, missing(base, recs)...)
	out = append(out, names()...)
	out = append(out, relabelled()...)
	out = append(out, replicas()...)
	out = append(out, scraped()...)
	out = append(out, retimed()...)
	out = append(out, neighbours(recs)...)
	out = append(out, scaled()...)
	return append(out, servers()...)
}
