package robust

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
)

// nameOf is the metric name of a series.
func nameOf(l labels.Labels) string { return l.Get(model.MetricNameLabel) }

// family is the name under which a metric was declared: that of a histogram without its parts, of a counter without _total.
func family(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count", "_created", "_total"} {
		if rest, ok := strings.CutSuffix(name, suffix); ok {
			// A histogram whose own name ends in _total: vllm:iteration_tokens_total_sum.
			return strings.TrimSuffix(rest, "_total")
		}
	}
	return name
}

// isCounter says whether the values of a metric only grow.
func isCounter(name string) bool {
	for _, suffix := range []string{"_bucket", "_sum", "_count", "_total"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// isTime says whether the values of a metric are moments: Unix times in seconds.
func isTime(name string) bool {
	switch name {
	case "ALERTS_FOR_STATE", "process_start_time_seconds", "vllm:lora_requests_info":
		return true
	}
	return strings.HasSuffix(name, "_created")
}

// isAlert says whether a series comes from a rule and not from a target.
func isAlert(name string) bool { return name == "ALERTS" || name == "ALERTS_FOR_STATE" }

// families lists the metrics of all recordings, sorted: those of targets, not of rules, without the *_created twins.
func families(recs []*eval.Recording) []string {
	seen := map[string]bool{}
	for _, r := range recs {
		for _, s := range r.Data.Store().Series() {
			if n := nameOf(s.Labels); !isAlert(n) && !strings.HasSuffix(n, "_created") {
				seen[family(n)] = true
			}
		}
	}
	out := make([]string, 0, len(seen))
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// without drops whole metrics.
func without(s *memstore.Store, gone func(family string) bool) *memstore.Store {
	return s.Map(func(l labels.Labels) (labels.Labels, bool) {
		return l, isAlert(nameOf(l)) || !gone(family(nameOf(l)))
	})
}

// mapValues changes the values of series; staleness markers stay.
func mapValues(s *memstore.Store, f func(l labels.Labels, v float64) float64) *memstore.Store {
	return s.Apply(func(one memstore.Series) []memstore.Series {
		out := slices.Clone(one.Samples)
		for i := range out {
			if !out[i].IsStale() {
				out[i].Value = f(one.Labels, out[i].Value)
			}
		}
		return []memstore.Series{{Labels: one.Labels, Samples: out}}
	})
}
