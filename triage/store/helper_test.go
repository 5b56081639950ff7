package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// begin is when the tests' stories begin.
var begin = time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)

// at is a moment of a story.
func at(d time.Duration) time.Time { return begin.Add(d) }

var policy = store.Policy{
	Debounce: 20 * time.Second, JoinDelay: 5 * time.Second, FlapWindow: 15 * time.Minute, DuplicateWindow: 10 * time.Minute,
}

// firing is an alert that began at a moment; resolved one that ended too.
func firing(name string, start time.Duration) triage.Alert {
	return triage.Alert{
		Fingerprint: "fp-" + name, Name: name, Status: triage.StatusFiring, StartsAt: at(start),
		Labels: map[string]string{"alertname": name, "model_name": "demo"},
	}
}

func resolved(name string, start, end time.Duration) triage.Alert {
	a := firing(name, start)
	a.Status, a.EndsAt = triage.StatusResolved, at(end)
	return a
}

// notify stores one notification about the model "demo".
func notify(t *testing.T, s *store.Store, received time.Duration, alerts ...triage.Alert) store.Outcome {
	t.Helper()
	return notifyModel(t, s, "demo", received, alerts...)
}

func notifyModel(t *testing.T, s *store.Store, model string, received time.Duration, alerts ...triage.Alert) store.Outcome {
	t.Helper()
	out, err := s.Intake(t.Context(), delivery(model, received, alerts...), policy)
	require.NoError(t, err)
	require.Len(t, out.Changes, 1)
	return out
}

func delivery(model string, received time.Duration, alerts ...triage.Alert) store.Delivery {
	in := triage.Incident{GroupKey: "{}:{" + model + "}", Receiver: "triage", Scope: triage.Scope{Model: model}, Now: at(received)}
	key := model
	in.Status = triage.StatusResolved
	start := time.Time{}
	for _, a := range alerts {
		key += "|" + a.Fingerprint + a.Status + a.StartsAt.String() + a.EndsAt.String()
		if a.Status == triage.StatusFiring {
			in.Status = triage.StatusFiring
			if start.IsZero() || a.StartsAt.Before(start) {
				start = a.StartsAt
			}
		}
	}
	in.Alerts = alerts
	in.ID = "id-" + model + "-" + start.UTC().Format("150405")
	sum := sha256.Sum256([]byte(key))
	return store.Delivery{Key: hex.EncodeToString(sum[:]), Received: at(received), Incidents: []triage.Incident{in}}
}

// claim takes the job that is due.
func claim(t *testing.T, s *store.Store, owner string, now time.Duration) store.Job {
	t.Helper()
	j, found, err := s.Claim(t.Context(), owner, at(now), 20*time.Second)
	require.NoError(t, err)
	require.True(t, found, "a job is due at %s", now)
	return j
}

func noJob(t *testing.T, s *store.Store, now time.Duration) {
	t.Helper()
	j, found, err := s.Claim(t.Context(), "nobody", at(now), 20*time.Second)
	require.NoError(t, err)
	require.False(t, found, "no job is due at %s: %+v", now, j)
}

// report is a report on an incident.
func report(bottleneck string, now time.Duration, status string) triage.Report {
	v := triage.CauseFound
	if bottleneck == "healthy" {
		v = triage.NoBottleneck
	}
	return triage.Report{
		Schema: triage.SchemaVersion, Verdict: v, GeneratedAt: at(now),
		Incident:    triage.IncidentInfo{Status: status},
		Bottlenecks: []triage.Hypothesis{{ID: bottleneck, Probability: 0.9}},
		Triggers:    []triage.Hypothesis{{ID: "traffic_surge", Probability: 0.8}},
	}
}

func incident(t *testing.T, s *store.Store, id string) store.Incident {
	t.Helper()
	in, _, err := s.Incident(t.Context(), id)
	require.NoError(t, err)
	return in
}
