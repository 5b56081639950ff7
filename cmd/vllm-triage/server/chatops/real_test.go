package chatops_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
)

// TestSilencesInARealAlertmanager presses the buttons with Debian's Alertmanager behind them.
func TestSilencesInARealAlertmanager(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		if os.Getenv("VLLM_TRIAGE_REQUIRE_ALERTMANAGER") != "" || os.Getenv("VLLM_TRIAGE_REQUIRE_TOOLS") != "" {
			t.Fatal("alertmanager is not installed, and the environment requires it")
		}
		t.Skip("alertmanager is not installed")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	require.NoError(t, os.WriteFile(config, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600))
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--config.file="+config,
		"--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--cluster.listen-address=")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // Ended by a signal.
	})
	client, err := alertmanager.New(alertmanager.Config{URLs: []string{"http://" + address}})
	require.NoError(t, err)
	t.Cleanup(client.Close)

	w := newWorld(t)
	w.eventually("alertmanager is ready", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/-/ready", http.NoBody)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
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
