package sweep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/sweep"
	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

var begin = time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return begin.Add(d) }

var policy = store.Policy{FlapWindow: 15 * time.Minute, DuplicateWindow: 10 * time.Minute}

// tell stores a notification about one alert and returns its incident.
func tell(t *testing.T, s *store.Store, now time.Duration, a template.Alert) string {
	t.Helper()
	p := triage.Payload{Version: "4", GroupKey: "g"}
	p.Alerts = template.Alerts{a}
	out, err := s.Intake(t.Context(), store.Delivery{
		Key: store.DeliveryKey(p), Received: at(now), Incidents: triage.NewIncidents(p, at(now)),
	}, policy)
	require.NoError(t, err)
	return out.Changes[0].IncidentID
}

func firing(name string) template.Alert {
	return template.Alert{
		Status: "firing", Fingerprint: "fp" + name, StartsAt: at(0),
		Labels: template.KV{"alertname": name, "model_name": "demo", "prometheus": "external"},
	}
}

func resolved(name string, end time.Duration) template.Alert {
	a := firing(name)
	a.Status, a.EndsAt = "resolved", at(end)
	return a
}

// says is a Source that answers the same for every alert.
type says struct {
	answer sweep.Answer
	err    error
	asked  int
}

func (s *says) Ask(_ context.Context, alerts []triage.Alert, _ time.Time) ([]sweep.Answer, error) {
	s.asked += len(alerts)
	out := make([]sweep.Answer, len(alerts))
	for i := range out {
		out[i] = s.answer
	}
	return out, s.err
}

func status(t *testing.T, s *store.Store, id string) string {
	t.Helper()
	in, _, err := s.Incident(t.Context(), id)
	require.NoError(t, err)
	return in.Status
}

func TestLostEnd(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	id := tell(t, s, time.Minute, firing("A"))
	source := &says{answer: sweep.Over}
	w := sweep.New(s, source, policy)
	run := func(now time.Duration) sweep.Result {
		t.Helper()
		r, err := w.Sweep(t.Context(), at(now))
		require.NoError(t, err)
		return r
	}
	require.Equal(t, sweep.Result{}, run(10*time.Minute), "it was heard of not long ago")
	require.Zero(t, source.asked)
	require.Equal(t, sweep.Result{Asked: 1}, run(13*time.Minute), "once is not enough")
	source.answer = sweep.Fires
	require.Equal(t, sweep.Result{Asked: 1}, run(15*time.Minute))
	source.answer = sweep.Over
	run(17 * time.Minute)
	run(19 * time.Minute)
	require.Equal(t, "firing", status(t, s, id))
	require.Equal(t, sweep.Result{Asked: 1, Closed: 1}, run(21*time.Minute))
	in, _, err := s.Incident(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "resolved", in.Status)
	require.Equal(t, at(17*time.Minute), in.ResolvedAt, "over since it was first said to be")
	require.Equal(t, sweep.Result{}, run(time.Hour))
}

func TestNobodyKnows(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	id := tell(t, s, 0, firing("A"))
	source := &says{}
	w := sweep.New(s, source, policy)
	for i := range 5 {
		r, err := w.Sweep(t.Context(), at(time.Hour+time.Duration(i)*10*time.Minute))
		require.NoError(t, err)
		require.Equal(t, sweep.Result{Asked: 1, Unknown: 1}, r)
	}
	source.err = errors.New("down")
	r, err := w.Sweep(t.Context(), at(3*time.Hour))
	require.ErrorContains(t, err, "ask about alerts: down")
	require.Equal(t, 1, r.Unknown)
	require.Equal(t, "firing", status(t, s, id))
}

func TestEndThatWasNotTrue(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	id := tell(t, s, 0, firing("A"))
	tell(t, s, time.Minute, resolved("A", time.Minute))
	tell(t, s, 2*time.Minute, firing("A"))
	require.Equal(t, "resolved", status(t, s, id))
	source := &says{answer: sweep.Fires}
	w := sweep.New(s, source, policy)
	r, err := w.Sweep(t.Context(), at(2*time.Minute+10*time.Second))
	require.NoError(t, err)
	require.Equal(t, sweep.Result{}, r, "a doubt is left alone for a moment")
	r, err = w.Sweep(t.Context(), at(3*time.Minute))
	require.NoError(t, err)
	require.Equal(t, sweep.Result{Asked: 1, Reopened: 1}, r)
	require.Equal(t, "firing", status(t, s, id))
	tell(t, s, 4*time.Minute, resolved("A", 4*time.Minute))
	require.Equal(t, "resolved", status(t, s, id), "its real end is believed")
	// An old notification in another order: it is over indeed.
	tell(t, s, 5*time.Minute, firing("A"))
	source.answer = sweep.Over
	r, err = w.Sweep(t.Context(), at(6*time.Minute))
	require.NoError(t, err)
	require.Equal(t, sweep.Result{Asked: 1}, r)
	r, err = w.Sweep(t.Context(), at(7*time.Minute))
	require.NoError(t, err)
	require.Equal(t, sweep.Result{}, r, "the doubt is settled")
	require.Equal(t, "resolved", status(t, s, id))
}

func TestPrometheusKnows(t *testing.T) {
	t.Parallel()
	p := promqtest.Load(t, `load 30s
  ALERTS{alertname="A",alertstate="firing",model_name="demo",severity="warning"} 1x20
  ALERTS{alertname="B",alertstate="firing",model_name="other"} 1x20
  ALERTS{alertname="C",alertstate="firing",model_name="demo"} 1x4
  ALERTS{alertname="D",alertstate="pending",model_name="demo"} 1x20
`, promqtest.StartAt(at(0)))
	source := sweep.NewPrometheus(p.Client())
	var alerts []triage.Alert
	for _, name := range []string{"A", "B", "C", "D", "elsewhere", ""} {
		alerts = append(alerts, triage.Alert{Name: name, Labels: firing(name).Labels})
	}
	got, err := source.Ask(t.Context(), alerts, at(9*time.Minute))
	require.NoError(t, err)
	require.Equal(t, []sweep.Answer{sweep.Fires, sweep.Over, sweep.Over, sweep.Over, sweep.Unknown, sweep.Unknown}, got)
	got, err = source.Ask(t.Context(), nil, at(0))
	require.NoError(t, err)
	require.Empty(t, got)

	p.Intercept(func(string, string) *promqtest.Fault { return &promqtest.Fault{Warnings: []string{"a store is down"}} })
	_, err = source.Ask(t.Context(), alerts, at(9*time.Minute))
	require.ErrorContains(t, err, "incomplete: a store is down")
	p.Intercept(func(string, string) *promqtest.Fault { return &promqtest.Fault{Status: 503} })
	_, err = source.Ask(t.Context(), alerts, at(9*time.Minute))
	require.Error(t, err)
}
