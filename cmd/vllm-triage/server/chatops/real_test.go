package chatops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
	"vllm-triage/promq/programtest"
)

// TestSilencesInARealAlertmanager presses the buttons with Debian's Alertmanager behind them.
func TestSilencesInARealAlertmanager(t *testing.T) {
	t.Parallel()
	client, err := alertmanager.New(alertmanager.Config{URLs: []string{programtest.Alertmanager(t)}})
	require.NoError(t, err)
	t.Cleanup(client.Close)

	w := newWorld(t)
	w.settings.Silencer = client
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.press(kim, ts, slack.ActionSilence, "", slack.Silence24h+":"+incID)
	w.counted("silence/done", 1)
	made, err := client.ListSilences(t.Context(), true, alertmanager.Tag)
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.Equal(t, "김민지 (Slack "+kim+")", made[0].CreatedBy)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), made[0].EndsAt, time.Minute)
	w.press(ann, ts, slack.ActionSilence, "", slack.Silence4h+":"+incID)
	require.Contains(t, w.private(2, ann).Text, "This is silenced already by 김민지")

	w.slash(ann, "silences")
	listed := w.private(3, ann)
	buttons := buttonsOf(t, listed)
	require.Equal(t, made[0].ID, strings.TrimSuffix(buttons["expire_silence_0"], "|"+incID))
	w.press(ann, listed.TS, "expire_silence_0", buttons["expire_silence_0"], "")
	w.counted("expire/done", 1)
	w.press(ann, listed.TS, "expire_silence_0", buttons["expire_silence_0"], "")
	w.counted("expire/repeated", 1)
	made, err = client.ListSilences(t.Context(), true, "")
	require.NoError(t, err)
	require.Empty(t, made)
}
