package triage_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
)

func clock(s string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-11-29T"+s+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// alertJSON is one alert as Alertmanager writes it.
func alertJSON(t *testing.T, status string, labels, annotations map[string]string, starts, ends time.Time) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"status": status, "labels": labels, "annotations": annotations, "startsAt": starts, "endsAt": ends,
	})
	require.NoError(t, err)
	return raw
}

func incidentsOf(t *testing.T, now time.Time, alerts ...json.RawMessage) []triage.Incident {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"version": "4", "receiver": `vllm\.triage \(prod\)`, "status": "firing", "alerts": alerts, "truncatedAlerts": 3,
	})
	require.NoError(t, err)
	p, err := triage.ParsePayload(raw)
	require.NoError(t, err)
	return triage.NewIncidents(p, now)
}

func TestIncidentsAreSplitByModel(t *testing.T) {
	t.Parallel()
	now := clock("14:05:00")
	in := incidentsOf(t, now,
		alertJSON(t, "firing", map[string]string{"alertname": "TTFT", "model_name": "b"}, nil, clock("14:02:00"), time.Time{}),
		alertJSON(t, "firing", map[string]string{"alertname": "TTFT", "model_name": "a"}, nil, clock("14:01:00"), time.Time{}),
		alertJSON(t, "firing", map[string]string{"alertname": "Queue", "model_name": "a", "pod": "x"}, nil, clock("14:03:00"),
			time.Time{}),
	)
	require.Len(t, in, 2)
	require.Equal(t, "a", in[0].Scope.Model)
	require.Len(t, in[0].Alerts, 2, "a pod beside the model does not split the incident")
	require.Empty(t, in[0].Scope.Pod)
	require.Equal(t, "b", in[1].Scope.Model)
	require.NotEqual(t, in[0].ID, in[1].ID)
	require.Equal(t, "vllm.triage (prod)", in[0].Receiver, "Alertmanager quotes the receiver's name")
	require.Equal(t, 3, in[0].Truncated)
}

func TestScopeFollowsWhateverLabelsSurvive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels map[string]string
		want   triage.Scope
	}{
		"everything": {
			map[string]string{"model_name": "m", "namespace": "n", "instance": "i", "pod": "p", "job": "j", "cluster": "c"},
			triage.Scope{Model: "m", Namespace: "n", Cluster: "c"},
		},
		"model only":          {map[string]string{"model_name": "m"}, triage.Scope{Model: "m"}},
		"model, another name": {map[string]string{"model": "org/m"}, triage.Scope{Model: "org/m"}},
		"pod only":            {map[string]string{"pod": "p"}, triage.Scope{Pod: "p"}},
		"exported pod":        {map[string]string{"exported_pod": "p", "exported_namespace": "n"}, triage.Scope{Pod: "p", Namespace: "n"}},
		"instance of a job":   {map[string]string{"instance": "i", "job": "j"}, triage.Scope{Instance: "i"}},
		"job only":            {map[string]string{"job": "j"}, triage.Scope{Job: "j"}},
		"nothing":             {map[string]string{"severity": "page"}, triage.Scope{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := incidentsOf(t, clock("14:05:00"), alertJSON(t, "firing", tc.labels, nil, clock("14:00:00"), time.Time{}))
			require.Len(t, in, 1)
			require.Equal(t, tc.want, in[0].Scope)
		})
	}
}

func TestEachAlertsOwnStatusDecides(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"alertname": "A", "model_name": "m"}
	now := clock("14:10:00")

	mixed := incidentsOf(t, now,
		alertJSON(t, "resolved", labels, nil, clock("14:00:00"), clock("14:04:00")),
		alertJSON(t, "firing", labels, nil, clock("14:05:00"), clock("14:50:00")))[0]
	require.Equal(t, triage.StatusFiring, mixed.Status)
	require.Equal(t, clock("14:05:00"), mixed.StartsAt(), "the alert that still fires dates the incident")
	require.Zero(t, mixed.EndsAt(), "a firing alert's endsAt says nothing")

	over := incidentsOf(t, now,
		alertJSON(t, "resolved", labels, nil, clock("14:00:00"), clock("14:04:00")),
		alertJSON(t, "resolved", labels, nil, clock("14:01:00"), clock("14:30:00")))[0]
	require.Equal(t, triage.StatusResolved, over.Status, "although the notification's own status is firing")
	require.Equal(t, now, over.EndsAt(), "never after now")
}

func TestOnlyWebAddressesBecomeRunbookLinks(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"https://runbooks.example.org/x": "https://runbooks.example.org/x",
		"http://r/x#KV":                  "http://r/x#KV",
		"javascript:alert(1)":            "",
		"kubectl rollout restart":        "",
		"//evil.example.org/x":           "",
		"":                               "",
	} {
		in := incidentsOf(t, clock("14:05:00"), alertJSON(t, "firing", map[string]string{"model_name": "m"},
			map[string]string{"runbook_url": value}, clock("14:00:00"), time.Time{}))
		require.Equal(t, want, in[0].RunbookURL(), value)
	}
}
