package robust_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/eval/example"
	"vllm-triage/triage/eval/robust"
	"vllm-triage/triage/kb"
)

// exampleFloors are the least shares of examples whose first answer stays, or becomes inconclusive or "metrics missing"
// where metrics go.
var exampleFloors = map[string]float64{
	"metrics missing: each metric alone":                       0.99,
	"metrics missing: each metric alone, from the fault on":    0.99,
	"metrics missing: 30 % at random, from the fault on":       0.99,
	"metrics missing: 30 % of the metrics at random":           0.95,
	"metrics missing: 30 % at random, but none of the core":    0.95,
	"metrics missing: no process and HTTP metrics":             0.9,
	"metrics missing: no up and scrape metrics":                0.9,
	"metrics missing: gauges and counters only, no histograms": 0.9,
	"labels: series without namespace and pod":                 0.9,
	"labels: series with a cluster label":                      0.9,
	"scraping: 10 % of the samples lost":                       0.9,
	"Prometheus: every answer with a warning":                  0.9,
	"Prometheus: 10 % of the queries fail":                     0.9,
}

// exceptions are the metrics without which, where they never were, an example is answered otherwise and surely: servers
// without them are usual, and then their absence says something of its own. Where they vanish there is no exception.
var exceptions = map[string][]string{
	// Without it no adapter is served (v1/metrics/loggers.py), and something else defers requests or takes the slots.
	"vllm:lora_requests_info": {
		"adapter_mix/twelve adapters instead of two", "lora_slots/one slot, two adapters, no reasons exported",
	},
	// A server behind another front end has none. Only they tell requests that were cancelled at once from those that hang.
	"http_requests": {"metrics_missing/gauges keep the values of cancelled requests"},
}

// The examples of the knowledge base, the pictures of the field cases among them, are transformed as the recordings are.
func TestTransformedExamples(t *testing.T) {
	t.Parallel()
	base := kb.Default()
	cases, err := example.Cases(base)
	require.NoError(t, err)
	was := map[*eval.Recording]eval.Outcome{}
	for i, o := range eval.Run(t.Context(), base, cases, eval.Options{}).Outcomes {
		require.Truef(t, o.Hit(), "%s: %s", o.Recording, o.First)
		was[cases[i].Recording] = o
	}
	recs := make([]*eval.Recording, 0, len(cases))
	for _, c := range cases {
		recs = append(recs, c.Recording)
	}
	step := 50
	if os.Getenv("VLLM_TRIAGE_ROBUSTNESS") != "" {
		step = 1
	}
	type row struct{ asked, kept, supported, right int }
	rows := map[string]*row{}
	for turn, v := range robust.Variants(base, recs) {
		name := v.Group + ": " + v.Name
		if _, ok := exampleFloors[name]; !ok {
			continue
		}
		if rows[name] == nil {
			rows[name] = &row{}
		}
		var some []eval.Case
		for i := turn % step; i < len(cases); i += step {
			some = append(some, cases[i])
		}
		changed := v.Apply(some)
		for i, o := range eval.Run(t.Context(), base, changed, v.Options()).Outcomes {
			before := was[changed[i].Recording]
			what := strings.Join([]string{name, v.Detail, o.Recording, robust.Failure{Why: "was " + before.First, Outcome: o}.Summary()}, "\n")
			require.Empty(t, o.Failure, what)
			require.LessOrEqual(t, o.Report.Queries, 90, what)
			rows[name].asked++
			if supported(o) {
				rows[name].supported++
			}
			if o.Accepted() {
				rows[name].right++
			}
			committed := robust.Commits(o)
			if o.Accepted() || !committed && v.Blind {
				rows[name].kept++
			} else {
				t.Log("LOST " + what)
			}
			switch v.Name {
			case robust.EachMetric:
				if slices.Contains(exceptions[v.Detail], o.Recording) {
					continue
				}
			case robust.EachMetricEnds, robust.SomeMetricsEnded:
			default:
				continue
			}
			if robust.Rose(o, before) {
				t.Error("more probable without data: " + what)
			}
			if committed && o.Probability >= robust.Confident && slices.Contains(changed[i].MustNot, o.First) {
				t.Error("a cause that the example forbids: " + what)
			}
		}
	}
	var all row
	for name, floor := range exampleFloors {
		r := rows[name]
		require.NotNil(t, r, name)
		t.Logf("%s: %d of %d kept or inconclusive; %d right of %d that anything still supports", name, r.kept, r.asked, r.right, r.supported)
		if step == 1 { // A few are no share.
			require.GreaterOrEqual(t, float64(r.kept), floor*float64(r.asked), name)
		}
		all.asked, all.kept = all.asked+r.asked, all.kept+r.kept
	}
	require.GreaterOrEqual(t, float64(all.kept), 0.95*float64(all.asked))
	if step == 1 {
		r := rows["metrics missing: 30 % of the metrics at random"]
		require.GreaterOrEqual(t, float64(r.right), 0.95*float64(r.supported), "right where anything still supports the cause")
	}
}

// supported says whether anything that was seen still speaks for the right cause: most examples hang on one metric, and a
// cause whose only support is gone must not be named.
func supported(o eval.Outcome) bool {
	if o.Accepted() {
		return true
	}
	for _, h := range o.Report.Bottlenecks {
		if h.ID == o.Truth {
			return slices.ContainsFunc(h.Evidence, func(e triage.Evidence) bool { return e.Weight >= 0.5 })
		}
	}
	return false
}
