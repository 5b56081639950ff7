package triage_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq/memstore"
	"vllm-triage/promq/promqtest"
	"vllm-triage/promq/recording"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
)

// stored is the series of a recorded incident up to a moment, and that moment.
func stored(t *testing.T, id, at string) (*memstore.Store, time.Time) {
	t.Helper()
	rec, err := recording.Open(filepath.Join("testdata", "incidents", id, "tsdb"))
	require.NoError(t, err)
	now, err := time.Parse(time.RFC3339, at)
	require.NoError(t, err)
	return rec.Store().Cut(time.Time{}, now), now
}

// kvLongerOutputs is a minute into an incident in which answers grew and the KV cache filled.
func kvLongerOutputs(t *testing.T) (*memstore.Store, time.Time) {
	t.Helper()
	return stored(t, "kv-longer-outputs-a", "2026-11-29T14:35:00Z")
}

func firing(now time.Time, with map[string]string) triage.Incident {
	in := triage.NewAdhoc(triage.Scope{
		Model: with["model_name"], Namespace: with["namespace"], Instance: with["instance"], Pod: with["pod"],
	}, now, 0)
	in.Status = triage.StatusFiring
	in.Alerts = []triage.Alert{{
		Name: "VLLMQueueGrowing", Status: "firing", Labels: with, StartsAt: now.Add(-15 * time.Second),
	}}
	return in
}

func triaged(t *testing.T, s *promqtest.Server, in triage.Incident) triage.Report {
	t.Helper()
	r, err := triage.NewEngine(kb.Default(), s.Client(), triage.Options{Timeout: 20 * time.Second}).Triage(t.Context(), in)
	require.NoError(t, err)
	requireSound(t, r)
	return r
}

// requireSound checks what holds for every report.
func requireSound(t *testing.T, r triage.Report) {
	t.Helper()
	require.Equal(t, triage.SchemaVersion, r.Schema)
	require.Contains(t, []triage.Verdict{triage.CauseFound, triage.Inconclusive, triage.NoBottleneck}, r.Verdict)
	require.Equal(t, r.Verdict == triage.Inconclusive, r.Inconclusive != nil, "an inconclusive report says what blocks it")
	if r.Inconclusive != nil {
		require.NotEmpty(t, r.Inconclusive.Text.Text)
	}
	require.LessOrEqual(t, r.Queries, 90)
	for _, list := range [][]triage.Hypothesis{r.Bottlenecks, r.Triggers} {
		sum := 0.0
		for i, h := range list {
			sum += h.Probability
			require.False(t, i > 0 && h.Probability > list[i-1].Probability, "sorted by probability")
			require.InDelta(t, 0.5, h.Probability, 0.5)
			points := h.Prior
			for _, e := range h.Evidence {
				points += e.Weight
				require.NotContains(t, e.Text.Text, "{", "%s: a placeholder was left", h.ID)
			}
			if h.Score > -6 && h.Score < 6 { // Beyond, the score is clamped.
				require.InDelta(t, h.Score, points, 0.02, "%s: what is shown adds up to the score", h.ID)
			}
			for _, a := range h.Actions {
				require.NotContains(t, a.Text.Text, "{", h.ID)
				require.NotContains(t, a.Cost.Text, "{", h.ID)
			}
		}
		require.LessOrEqual(t, sum, 1.01)
	}
	for _, x := range r.RuledOut {
		require.NotEmpty(t, x.Why, x.ID)
		require.NotContains(t, x.Why, "{", x.ID)
	}
	_, err := json.Marshal(r)
	require.NoError(t, err)
}

func TestWhateverTheLabelsTheScopeIsFoundAndStated(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	s := promqtest.Serve(t, store)
	for name, tc := range map[string]struct {
		labels map[string]string
		note   string
	}{
		"target labels":     {map[string]string{"model_name": "demo", "namespace": "llm", "instance": "10.42.0.10:8000"}, ""},
		"model only":        {map[string]string{"model_name": "demo"}, ""},
		"pod only":          {map[string]string{"pod": "vllm-demo-0"}, "the alert names a replica"},
		"instance only":     {map[string]string{"instance": "10.42.0.10:8000"}, "the alert names a replica"},
		"nothing":           {map[string]string{}, "the only one with data, demo"},
		"unknown namespace": {map[string]string{"model_name": "demo", "namespace": "elsewhere"}, "no vLLM series carry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := triaged(t, s, firing(now, tc.labels))
			require.Equal(t, "demo", r.Incident.Scope.Model)
			require.Equal(t, "kv_cache_exhaustion", r.Bottlenecks[0].ID)
			require.Equal(t, "longer_outputs", r.Triggers[0].ID)
			if tc.note == "" {
				require.Empty(t, r.Incident.ScopeNote.Text)
			}
			require.Contains(t, r.Incident.ScopeNote.Text, tc.note)
		})
	}
}

func TestWithoutAModelTheOneWithTheQueueIsTaken(t *testing.T) {
	t.Parallel()
	store, now := stored(t, "other-model-a", "2026-11-29T15:53:45Z")
	r := triaged(t, promqtest.Serve(t, store), firing(now, map[string]string{}))
	require.Equal(t, "coder", r.Incident.Scope.Model)
	require.Contains(t, r.Incident.ScopeNote.Text, "2 models have data")
	require.Equal(t, "kv_cache_exhaustion", r.Bottlenecks[0].ID)
}

func TestAnotherModelIsNotBlamed(t *testing.T) {
	t.Parallel()
	store, now := stored(t, "other-model-a", "2026-11-29T15:53:45Z")
	r := triaged(t, promqtest.Serve(t, store), firing(now, map[string]string{"model_name": "demo"}))
	require.Equal(t, triage.NoBottleneck, r.Verdict)
	require.Equal(t, "healthy", r.Bottlenecks[0].ID)
}

func TestNoDataIsAFindingNotAZero(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	r := triaged(t, promqtest.Serve(t, store), firing(now, map[string]string{"model_name": "absent"}))
	require.NotEqual(t, triage.CauseFound, r.Verdict)
	require.NotEqual(t, "healthy", r.Bottlenecks[0].ID)
}

func TestPrometheusInTroubleIsSaid(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	for name, tc := range map[string]struct {
		fault promqtest.Fault
		want  string
	}{
		"down":          {promqtest.Fault{Status: http.StatusBadGateway}, "could not be reached"},
		"wrong token":   {promqtest.Fault{Status: http.StatusUnauthorized}, "refused the credentials"},
		"too expensive": {promqtest.Fault{Status: http.StatusUnprocessableEntity, Body: tooMany}, "too expensive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := promqtest.Serve(t, store)
			s.Intercept(func(string, string) *promqtest.Fault { return &tc.fault })
			r := triaged(t, s, firing(now, map[string]string{"model_name": "demo"}))
			require.Equal(t, triage.Inconclusive, r.Verdict)
			require.Contains(t, r.Inconclusive.Text.Text, tc.want)
			require.NotEmpty(t, r.Missing)
			require.Empty(t, r.RuledOut, "nothing was seen that could refute anything")
		})
	}
}

// TestPrometheusLagsBehind: what it does not have yet is no outage of the replicas, however far behind it is.
func TestPrometheusLagsBehind(t *testing.T) {
	t.Parallel()
	store, last := kvLongerOutputs(t)
	s := promqtest.Serve(t, store)
	for _, lag := range []time.Duration{6 * time.Minute, 12 * time.Minute, time.Hour} {
		now := last.Add(lag)
		r := triaged(t, s, firing(now, map[string]string{"model_name": "demo"}))
		require.Equal(t, "metrics_missing", r.Bottlenecks[0].ID, lag)
		require.Equal(t, "action.metrics_missing.prometheus", r.Bottlenecks[0].Actions[0].Key, lag)
		require.NotEqual(t, "replica_loss", r.Triggers[0].ID, lag)
		require.True(t, slices.ContainsFunc(r.Notes, func(n triage.Text) bool { return n.Key == "note.stopped" }), "%s: %v", lag, r.Notes)
		for _, x := range append(r.Bottlenecks, r.Triggers...) {
			if x.ID == "replica_down" || x.ID == "replica_loss" {
				require.Less(t, x.Probability, 0.2, "%s: %s", lag, x.ID)
			}
		}
	}
	// Where nobody keeps the targets' own series, that they are not there tells nothing.
	r := triaged(t, promqtest.Serve(t, store.Drop("up")), firing(last.Add(12*time.Minute), map[string]string{"model_name": "demo"}))
	require.False(t, slices.ContainsFunc(r.Notes, func(n triage.Text) bool { return n.Key == "note.stopped" }), r.Notes)
	for _, a := range r.Bottlenecks[0].Actions {
		require.NotEqual(t, "action.metrics_missing.prometheus", a.Key)
	}
}

const tooMany = `{"status":"error","errorType":"execution",` +
	`"error":"query processing would load too many samples into memory in query execution"}`

func TestOneFailedQueryNeverBecomesAnotherCause(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	whole := triaged(t, promqtest.Serve(t, store), firing(now, map[string]string{"model_name": "demo"}))
	for _, q := range whole.QueryLog {
		if strings.HasPrefix(q.ID, "discovery") {
			continue
		}
		t.Run(q.ID, func(t *testing.T) {
			t.Parallel()
			s := promqtest.Serve(t, store)
			s.Intercept(func(_, query string) *promqtest.Fault {
				if query == q.Query {
					return &promqtest.Fault{Status: http.StatusServiceUnavailable}
				}
				return nil
			})
			r := triaged(t, s, firing(now, map[string]string{"model_name": "demo"}))
			if r.Verdict != triage.Inconclusive {
				require.Equal(t, "kv_cache_exhaustion", r.Bottlenecks[0].ID)
			}
		})
	}
}

func TestPartialAnswersLowerTheConfidence(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	s := promqtest.Serve(t, store)
	s.Intercept(func(string, string) *promqtest.Fault { return &promqtest.Fault{Warnings: []string{"store 3 is away"}} })
	r := triaged(t, s, firing(now, map[string]string{"model_name": "demo"}))
	require.LessOrEqual(t, r.Bottlenecks[0].Probability, 0.6)
	var said []string
	for _, n := range r.Notes {
		said = append(said, n.Text)
	}
	require.Contains(t, strings.Join(said, "\n"), "store 3 is away")
}

func TestASlowPrometheusEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	s := promqtest.Serve(t, store)
	s.Intercept(func(string, string) *promqtest.Fault { return &promqtest.Fault{Hang: true} })
	e := triage.NewEngine(kb.Default(), s.Client(), triage.Options{Timeout: 300 * time.Millisecond})
	r, err := e.Triage(t.Context(), firing(now, map[string]string{"model_name": "demo"}))
	require.NoError(t, err)
	require.Equal(t, triage.Inconclusive, r.Verdict)
}

func TestACancelledTriageIsAnError(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	s := promqtest.Serve(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := triage.NewEngine(kb.Default(), s.Client(), triage.Options{}).Triage(ctx, firing(now, nil))
	require.ErrorIs(t, err, context.Canceled)
}

func TestSameInputSameBytes(t *testing.T) {
	store, now := kvLongerOutputs(t)
	s := promqtest.Serve(t, store)
	var first string
	for _, procs := range []int{1, 2, 4} {
		old := runtime.GOMAXPROCS(procs)
		r := triaged(t, s, firing(now, map[string]string{"model_name": "demo"}))
		runtime.GOMAXPROCS(old)
		r.DurationMS, r.QueryMS = 0, 0
		for i := range r.QueryLog {
			r.QueryLog[i].DurationMS = 0
		}
		raw, err := json.Marshal(r)
		require.NoError(t, err)
		if first == "" {
			first = string(raw)
		}
		require.Equal(t, first, string(raw))
	}
}

func TestAMixedFleetCountsEveryReplicaOnce(t *testing.T) {
	t.Parallel()
	store, now := kvLongerOutputs(t)
	// A second replica of an older version, and a third that exports both names.
	clone := func(instance string, rename map[string]string) *memstore.Store {
		return store.Map(func(l labels.Labels) (labels.Labels, bool) {
			b := labels.NewBuilder(l)
			if l.Get("instance") == "" {
				return l, false
			}
			b.Set("instance", instance).Set("pod", instance)
			if to, ok := rename[l.Get(model.MetricNameLabel)]; ok {
				b.Set(model.MetricNameLabel, to)
			}
			return b.Labels(), true
		})
	}
	old := map[string]string{
		"vllm:kv_cache_usage_perc":               "vllm:gpu_cache_usage_perc",
		"vllm:inter_token_latency_seconds_sum":   "vllm:time_per_output_token_seconds_sum",
		"vllm:inter_token_latency_seconds_count": "vllm:time_per_output_token_seconds_count",
	}
	one := triaged(t, promqtest.Serve(t, store), firing(now, map[string]string{"model_name": "demo"}))
	fleet := store.Merge(clone("10.42.0.11:8000", old), clone("10.42.0.12:8000", nil), clone("10.42.0.12:8000", old))
	three := triaged(t, promqtest.Serve(t, fleet), firing(now, map[string]string{"model_name": "demo"}))
	require.Equal(t, 3, three.Incident.Replicas)
	require.Equal(t, "kv_cache_exhaustion", three.Bottlenecks[0].ID)
	require.InDelta(t, 3*during(t, one, "generation_tokens"), during(t, three, "generation_tokens"), 0.5)
	require.InDelta(t, during(t, one, "itl"), during(t, three, "itl"), 0.001)
}

// during looks a signal's figure up among the evidence of all hypotheses.
func during(t *testing.T, r triage.Report, signal string) float64 {
	t.Helper()
	for _, h := range r.Bottlenecks {
		for _, e := range h.Evidence {
			if e.Signal == signal && e.During != nil {
				return *e.During
			}
		}
	}
	t.Fatalf("no evidence about %s", signal)
	return 0
}

func TestAResolvedAlertIsJudgedAsOfItsEnd(t *testing.T) {
	t.Parallel()
	rec, err := recording.Open(filepath.Join("testdata", "incidents", "kv-longer-outputs-a", "tsdb"))
	require.NoError(t, err)
	end := time.Date(2026, 11, 29, 14, 35, 0, 0, time.UTC)
	in := firing(end.Add(time.Hour), map[string]string{"model_name": "demo"})
	in.Status = triage.StatusResolved
	in.Alerts[0].Status = "resolved"
	in.Alerts[0].StartsAt, in.Alerts[0].EndsAt = end.Add(-15*time.Second), end
	r := triaged(t, promqtest.Serve(t, rec.Store()), in)
	require.Equal(t, "kv_cache_exhaustion", r.Bottlenecks[0].ID, "asked an hour later")
	require.False(t, r.Incident.Window.End.After(end))
}
