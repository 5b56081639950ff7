package alertmanager_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/promq/programtest"
)

func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(context.Cause(t.Context()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fire makes alerts fire, as Prometheus does.
func fire(t *testing.T, base string, labels ...map[string]string) {
	t.Helper()
	var alerts []map[string]any
	for _, l := range labels {
		alerts = append(alerts, map[string]any{"labels": l, "startsAt": time.Now().Add(-time.Minute).UTC()})
	}
	body, err := json.Marshal(alerts)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/v2/alerts", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// TestARealAlertmanager goes through a silence's whole life.
func TestARealAlertmanager(t *testing.T) {
	t.Parallel()
	base := programtest.Alertmanager(t)
	// A dead peer in front: the living one behind it answers.
	c := newClient(t, alertmanager.Config{URLs: []string{"http://" + programtest.FreeAddress(t), base}})
	ctx := t.Context()

	version, err := c.Version(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, version)

	weird := `we"ird \ mödel` + "\nline"
	fire(t, base,
		map[string]string{"alertname": "VLLMHighTTFT", "model_name": weird, "namespace": "prod"},
		map[string]string{"alertname": "VLLMHighTTFT", "model_name": "other", "namespace": "prod"})
	alerts, err := c.Alerts(ctx)
	require.NoError(t, err)
	require.Len(t, alerts, 2)
	require.Less(t, alerts[0].Fingerprint, alerts[1].Fingerprint)
	mine, err := c.Alerts(ctx, alertmanager.Equal("model_name", weird), alertmanager.Equal("namespace", "prod"))
	require.NoError(t, err)
	require.Len(t, mine, 1)
	require.Equal(t, weird, mine[0].Labels["model_name"])
	require.False(t, mine[0].Silenced())
	require.WithinDuration(t, time.Now().Add(-time.Minute), mine[0].StartsAt, 30*time.Second)

	matchers := []alertmanager.Matcher{alertmanager.Equal("model_name", weird), alertmanager.Equal("namespace", "prod")}
	end := time.Now().Add(time.Hour)
	id, err := c.CreateSilence(ctx, matchers, time.Now(), end, "Kim (U0KIM)", alertmanager.Tag+" incident i-1: 1h")
	require.NoError(t, err)
	_, err = c.CreateSilence(ctx, []alertmanager.Matcher{alertmanager.Equal("model_name", "x")}, time.Now(), end, "amtool", "by hand")
	require.NoError(t, err)

	listed, err := c.ListSilences(ctx, true, alertmanager.Tag)
	require.NoError(t, err)
	require.Len(t, listed, 1, "only ours")
	require.Equal(t, id, listed[0].ID)
	require.Equal(t, "Kim (U0KIM)", listed[0].CreatedBy)
	require.Equal(t, alertmanager.Tag+" incident i-1: 1h", listed[0].Comment)
	require.Equal(t, alertmanager.StateActive, listed[0].State)
	require.WithinDuration(t, end, listed[0].EndsAt, time.Second)
	require.True(t, listed[0].Covers(matchers, end.Add(-time.Second)))
	require.False(t, listed[0].Covers(matchers, end.Add(time.Minute)))
	require.False(t, listed[0].Covers(matchers[:1], end.Add(-time.Second)))
	all, err := c.ListSilences(ctx, true, "")
	require.NoError(t, err)
	require.Len(t, all, 2)

	eventually(t, 10*time.Second, "the alert is silenced, the other is not", func() bool {
		mine, err = c.Alerts(ctx)
		require.NoError(t, err)
		silenced := map[string]bool{}
		for _, a := range mine {
			silenced[a.Labels["model_name"]] = a.Silenced()
		}
		return silenced[weird] && !silenced["other"]
	})

	require.NoError(t, c.ExpireSilence(ctx, id))
	kind(t, alertmanager.Expired, c.ExpireSilence(ctx, id))
	kind(t, alertmanager.NotFound, c.ExpireSilence(ctx, "5a5b1d7e-1111-4f0e-8a53-0123456789ab"))
	kind(t, alertmanager.NotFound, c.ExpireSilence(ctx, "../alerts"))
	listed, err = c.ListSilences(ctx, true, alertmanager.Tag)
	require.NoError(t, err)
	require.Empty(t, listed)
	over, err := c.ListSilences(ctx, false, alertmanager.Tag)
	require.NoError(t, err)
	require.Len(t, over, 1)
	require.Equal(t, alertmanager.StateExpired, over[0].State)

	_, err = c.CreateSilence(ctx, matchers, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour), "Kim", "in the past")
	kind(t, alertmanager.Refused, err)
	require.ErrorContains(t, err, "past")
}
