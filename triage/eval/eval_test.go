package eval_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

const incidents = "../testdata/incidents"

// loaded reads the recordings once for all tests; they are never written to.
var loaded = sync.OnceValues(func() ([]*eval.Recording, error) { return eval.LoadRecordings(incidents) })

func recordings(t testing.TB) []*eval.Recording {
	t.Helper()
	recs, err := loaded()
	require.NoError(t, err)
	return recs
}

// run asks all cases once for all tests.
var run = sync.OnceValue(func() eval.Result {
	cs, err := eval.Load(incidents)
	if err != nil {
		panic(err)
	}
	return eval.Run(context(), kb.Default(), cs, eval.Options{})
})

func TestAccuracy(t *testing.T) {
	t.Parallel()
	r := run()
	var table bytes.Buffer
	require.NoError(t, r.WriteTable(&table))
	t.Cleanup(func() {
		if t.Failed() || testing.Verbose() {
			t.Log("\n" + table.String())
		}
	})

	require.GreaterOrEqual(t, r.Recordings, 25)
	require.GreaterOrEqual(t, r.Cases, 69)
	require.Zero(t, r.Crashes)
	require.GreaterOrEqual(t, r.AC1, 0.95, "bottleneck AC@1")
	require.InDelta(t, 1, r.AC3, 1e-9, "bottleneck AC@3")
	require.GreaterOrEqual(t, r.TriggerAC1, 0.9, "trigger AC@1")
	require.InDelta(t, 1, *r.Place, 1e-9, "place")
	require.Zero(t, *r.FalseCauseOnCalm, "causes named on calm servers")
	require.Zero(t, *r.ConfidentWrong, "wrong among sure answers")
	require.Zero(t, r.NeverClaimBroken)
	require.LessOrEqual(t, r.MaxQueries, 90)
}

func TestCalibration(t *testing.T) {
	t.Parallel()
	cv := eval.CrossValidate(run())
	require.Equal(t, 25, cv.Recordings)
	require.LessOrEqual(t, cv.Before.ECE, 0.08, "probabilities as the engine gives them")
	require.LessOrEqual(t, cv.After.ECE, 0.08, "after a map fitted on the other recordings")
	require.LessOrEqual(t, cv.After.LogLoss, cv.Before.LogLoss+0.02, "a fitted map must not hurt recordings it has not seen")
}

// Every webhook, also those before the fault and those of resolved alerts, gives a report that is valid JSON and whose
// probabilities are ones.
func TestEveryWebhook(t *testing.T) {
	t.Parallel()
	base := kb.Default()
	n := 0
	for _, r := range recordings(t) {
		for _, w := range r.Webhooks {
			n++
			t.Run(r.ID+"/"+w.File, func(t *testing.T) {
				t.Parallel()
				for _, in := range triage.NewIncidents(w.Payload, w.ReceivedAt) {
					rep, err := eval.Ask(t.Context(), base, r.Case(w.Alert, in), eval.Options{})
					require.NoError(t, err)
					requireSound(t, rep)
				}
			})
		}
	}
	require.Greater(t, n, 90)
}

func requireSound(t *testing.T, rep triage.Report) {
	t.Helper()
	data, err := json.Marshal(rep)
	require.NoError(t, err)
	require.True(t, json.Valid(data))
	require.NotEmpty(t, rep.Bottlenecks)
	require.NotEmpty(t, rep.Triggers)
	sum := 0.0
	for i, h := range rep.Bottlenecks {
		require.GreaterOrEqual(t, h.Probability, 0.0)
		sum += h.Probability
		if i > 0 {
			require.LessOrEqual(t, h.Probability, rep.Bottlenecks[i-1].Probability, "sorted by probability")
		}
	}
	require.LessOrEqual(t, sum+rep.Residual, 1.01)
	require.LessOrEqual(t, rep.Queries, 90)
	if rep.Verdict == triage.Inconclusive {
		require.NotNil(t, rep.Inconclusive, "an inconclusive report says why")
	}
}

// The evidence of a hypothesis and its prior add up to its score, unless a cap cut the sum.
func TestEvidenceAddsUp(t *testing.T) {
	t.Parallel()
	for _, o := range run().Outcomes {
		for _, h := range o.Report.Bottlenecks {
			sum := h.Prior
			for _, e := range h.Evidence {
				sum += e.Weight
			}
			capped := min(max(sum, -6), 6)
			require.InDelta(t, capped, h.Score, 0.02, "%s %s: %s", o.Recording, o.Alert, h.ID)
		}
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := filepath.Join(incidents, "healthy-a")
	for _, test := range []struct {
		name, want string
		damage     func(t *testing.T, dir string)
	}{
		{"no recording.json", "holds no recording.json", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(dir, "recording.json")))
		}},
		{"no truth", "truth.json", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(dir, "truth.json")))
		}},
		{"empty truth", "bottleneck, trigger and fault_start are needed", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "truth.json"), []byte("{}"), 0o600))
		}},
		{"broken truth", "truth.json: invalid character", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "truth.json"), []byte("{,"), 0o600))
		}},
		{"no blocks", "no such directory", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "tsdb")))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "incident")
			require.NoError(t, os.CopyFS(dir, os.DirFS(good)))
			test.damage(t, dir)
			_, err := eval.Load(dir)
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := eval.Load()
	require.ErrorContains(t, err, "no directory given")
}

// What counts as a case: firing webhooks from 30 s after the fault on, else one question without an alert.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, r := range recordings(t) {
		scored := 0
		for _, w := range r.Webhooks {
			if !w.Scored {
				continue
			}
			scored++
			require.Equal(t, "firing", w.Status)
			require.GreaterOrEqual(t, w.ReceivedAt.Sub(r.FaultStart), 29*time.Second)
		}
		cs := r.Cases()
		require.Len(t, cs, max(scored, 1))
		if scored == 0 {
			require.Equal(t, "adhoc", cs[0].Alert)
			require.Nil(t, cs[0].Payload)
		}
	}
}
