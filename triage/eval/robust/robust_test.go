package robust_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vllm-triage/triage/eval"
	"vllm-triage/triage/eval/robust"
	"vllm-triage/triage/kb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const incidents = "../../testdata/incidents"

// floors are the least shares of accepted first answers over the sampled recordings. A sample has eight or nine
// recordings, so one more miss is more than a tenth.
var floors = map[string]float64{
	"as recorded: unchanged":                                         1,
	"metrics missing: no process and HTTP metrics":                   0.85,
	"metrics missing: no up and scrape metrics":                      0.85,
	"replicas: five healthy replicas more":                           0.85,
	"metric names: vLLM 0.26.0":                                      1,
	"metric names: vLLM 0.15.0":                                      0.85,
	"metric names: vLLM 0.10.0":                                      0.85,
	"metric names: vLLM 0.8.0":                                       0.85,
	"metric names: Ray":                                              1,
	"labels: alert names a pod only":                                 1,
	"labels: alert names nothing":                                    1,
	"labels: series without namespace and pod":                       1,
	"labels: series with a cluster label":                            1,
	"replicas: every replica twice":                                  1,
	"replicas: two equal data-parallel ranks":                        1,
	"scraping: every 15 s":                                           0.85,
	"scraping: 10 % of the samples lost":                             0.85,
	"scraping: counters start anew 20 s after the fault":             0.85,
	"time: a year later":                                             1,
	"time: 30 min of calm before":                                    0.85,
	"time: alert fires 30 min late, 30 min of calm before":           0.85,
	"time: resolved alert, asked an hour later":                      0.85,
	"neighbours: another model has an incident too":                  1,
	"neighbours: calm model, another has an incident":                1,
	"scale: eight times as big":                                      0.85,
	"scale: ten times as fast":                                       0.85,
	"scale: prompts, outputs and pool in tokens eight times as long": 1,
	"Prometheus: every answer with a warning":                        0.85,
	"Prometheus: 10 % of the queries fail":                           0.75,
	"Prometheus: data ends an hour before the question":              0,
	"Prometheus: every query fails":                                  0,
}

// few and many are how many of the recordings each transformation is asked about: one in so many. With few, only all
// transformations together are enough for a share.
const few, many = 10, 3

// Transformations that leave the cause in the data must not hide it, and none may make the engine sure of another. The
// whole table, over all recordings and all transformations, is `vllm-triage eval --robustness`; with
// VLLM_TRIAGE_ROBUSTNESS set, each of these is asked about a third of the recordings.
func TestTransformationsKeepTheAnswer(t *testing.T) {
	t.Parallel()
	recs, err := eval.LoadRecordings(incidents)
	require.NoError(t, err)
	sample := few
	if os.Getenv("VLLM_TRIAGE_ROBUSTNESS") != "" {
		sample = many
	}
	table := robust.Run(t.Context(), kb.Default(), recs, robust.Options{
		Sample: sample,
		Keep:   func(v robust.Variant) bool { _, ok := floors[v.Group+": "+v.Name]; return ok },
	})
	if t.Failed() || testing.Verbose() {
		show(t, table)
	}
	seen, cases, accepted, least := 0, 0.0, 0.0, 0.0
	for _, r := range table.Rows {
		name := r.Group + ": " + r.Name
		seen++
		require.Positive(t, r.Cases, name)
		cases, accepted, least = cases+float64(r.Cases), accepted+r.Accepted*float64(r.Cases), least+floors[name]*float64(r.Cases)
		if sample == many {
			require.GreaterOrEqual(t, r.Accepted, floors[name], "%s: accepted first answers\n%s", name, failures(t, r))
		}
		require.Zero(t, r.ConfidentWrong, "%s: confident and wrong\n%s", name, failures(t, r))
		require.Zero(t, r.Crashes, "%s\n%s", name, failures(t, r))
	}
	require.GreaterOrEqual(t, accepted/cases, least/cases, "accepted first answers of %.0f", cases)
	require.Equal(t, len(floors), seen, "a transformation of the list above is gone")
}

// Data that is gone makes no answer more probable, and nobody sure of a wrong one.
func TestMissingMetricsMakeNothingMoreProbable(t *testing.T) {
	t.Parallel()
	recs, err := eval.LoadRecordings(incidents)
	require.NoError(t, err)
	sample := few
	if os.Getenv("VLLM_TRIAGE_ROBUSTNESS") != "" {
		sample = 1
	}
	table := robust.Run(t.Context(), kb.Default(), recs, robust.Options{
		Sample: sample,
		Keep:   func(v robust.Variant) bool { return v.Group == "metrics missing" },
	})
	for _, r := range table.Rows {
		require.Zero(t, r.Rises, failures(t, r))
		require.Zero(t, r.ConfidentWrong, failures(t, r))
		if sample == 1 && r.Name == "30 % of the metrics at random" {
			require.GreaterOrEqual(t, r.AC1, r.Was-0.05)
		}
	}
}

// A report that missing data keeps from a finding names what is missing and the rival that it may hide.
func TestHiddenRivalIsNamed(t *testing.T) {
	t.Parallel()
	recs, err := eval.LoadRecordings(incidents)
	require.NoError(t, err)
	var cases []eval.Case
	for _, r := range recs {
		cases = append(cases, r.Cases()...)
	}
	base, named := kb.Default(), 0
	for _, v := range robust.Variants(base, recs) {
		if v.Name != "gauges and counters only, no histograms" {
			continue
		}
		for _, o := range eval.Run(t.Context(), base, v.Apply(cases), eval.Options{}).Outcomes {
			b := o.Report.Inconclusive
			if b == nil || b.Key != "blocked.hidden" {
				continue
			}
			named++
			require.NotEmpty(t, b.Query)
			require.Contains(t, b.Text.Text, o.Report.Bottlenecks[0].Title+" fits best, but without ")
			require.NotContains(t, b.Text.Text, "{")
			require.Less(t, o.Probability, robust.Confident)
		}
	}
	require.Positive(t, named)
}

func failures(t *testing.T, r robust.Row) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, robust.Table{Rows: []robust.Row{r}}.WriteFailures(&b))
	return b.String()
}

func show(t *testing.T, table robust.Table) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, table.WriteMarkdown(&b))
	t.Log("\n" + b.String())
}
