package triage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
)

const minimal = `{"version":"4","status":"firing","alerts":[{"status":"firing","labels":{"alertname":"A"},` +
	`"startsAt":"2026-11-29T14:00:00Z","endsAt":"0001-01-01T00:00:00Z"}]}`

func TestParsePayloadRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, want string }{
		"empty":            {"", "not JSON"},
		"no JSON":          {"hello", "not JSON"},
		"trailing data":    {minimal + "{}", "after top-level value"},
		"other version":    {strings.Replace(minimal, `"4"`, `"1"`, 1), `version is "1"`},
		"custom payload":   {`{"text":"x"}`, `custom "payload:"`},
		"no alerts":        {`{"version":"4","alerts":[]}`, "no alerts"},
		"unknown status":   {strings.Replace(minimal, `[{"status":"firing"`, `[{"status":"on"`, 1), `alerts[0].status is "on"`},
		"no start":         {strings.Replace(minimal, "2026-11-29T14:00:00Z", "0001-01-01T00:00:00Z", 1), "startsAt is missing"},
		"nested too deep":  {strings.Repeat("[", 100), "nests deeper"},
		"deep in a string": {strings.Replace(minimal, `"A"`, `"\"[[[[[[[[[[[[[[[[[[[["`, 1) + "x", "after top-level"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := triage.ParsePayload([]byte(tc.body))
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestParsePayloadReadsWhatAlertmanagerSent(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/incidents/*/webhooks/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		body, err := os.ReadFile(f)
		require.NoError(t, err)
		p, err := triage.ParsePayload(body)
		require.NoError(t, err, f)
		require.NotEmpty(t, triage.NewIncidents(p, time.Now()), f)
	}
}

func FuzzParsePayload(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(`{"version":"4","groupKey":"{}:{}","truncatedAlerts":99999999999,"alerts":[{"status":"resolved",` +
		`"labels":{"model_name":"\u0000"},"startsAt":"2026-11-29T14:00:00Z","endsAt":"2026-11-29T13:00:00Z"}]}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := triage.ParsePayload(body)
		if err != nil {
			return
		}
		now := time.Date(2026, 11, 29, 15, 0, 0, 0, time.UTC)
		seen := 0
		for _, in := range triage.NewIncidents(p, now) {
			seen += len(in.Alerts)
			require.NotEmpty(t, in.ID)
			require.False(t, in.EndsAt().After(now))
			require.GreaterOrEqual(t, in.Truncated, 0)
			if u := in.RunbookURL(); u != "" {
				require.True(t, strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://"), u)
			}
		}
		require.Equal(t, len(p.Alerts), seen)
	})
}
