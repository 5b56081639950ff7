package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/slack/fakeslack"
)

const signingSecret = "signing-secret-0123456789"

// talking is a world whose Slack may send commands and presses.
func talking(t *testing.T) (*world, string) {
	t.Helper()
	c := &clock{at: time.Now()} // Signatures are checked by the clock of the machine.
	chat := fakeslack.New(fakeslack.Options{Now: c.now})
	base, stop, err := chat.Listen(t.Context())
	require.NoError(t, err)
	t.Cleanup(stop)
	w := newWorld(t, setup{
		chat: chat, clock: c, hosts: []string{strings.TrimPrefix(base, "http://")}, sections: map[string]string{
			"slack": `{bot_token: ` + botToken + `, api_url: "SLACK", channel: ` + channel + `, signing_secret: ` + signingSecret + `}`,
		},
	})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	return w, base
}

func (w *world) send(req *http.Request) int {
	w.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(w.t, err)
	require.NoError(w.t, resp.Body.Close())
	return resp.StatusCode
}

// A press below the card is kept as an opinion, and told in the thread by the deliverer.
func TestButtonsReachTheService(t *testing.T) {
	t.Parallel()
	w, base := talking(t)
	id := w.incident().ID
	req, err := w.slack.InteractionRequest(t.Context(), w.http.URL+"/slack/interactions", signingSecret, base, fakeslack.Press{
		Channel: channel, TS: w.card().TS, User: "U0MINA", ActionID: "right", Value: id,
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, w.send(req))
	require.Eventually(t, func() bool {
		opinions, err := w.store.Feedback(t.Context(), id)
		return err == nil && len(opinions) == 1 && opinions[0].Opinion == "right"
	}, 10*time.Second, 5*time.Millisecond)
}

// The slash command is answered at once; nobody but Slack can send one, with or without the webhook's credentials.
func TestSlashCommandReachesTheService(t *testing.T) {
	t.Parallel()
	w, base := talking(t)
	for secret, want := range map[string]int{signingSecret: http.StatusOK, "another-secret-0123456789": http.StatusUnauthorized} {
		req, err := w.slack.SlashRequest(t.Context(), w.http.URL+"/slack/commands", secret, base, channel, "U0MINA", "/vllm-triage", "help")
		require.NoError(t, err)
		require.Equal(t, want, w.send(req))
	}
	for _, path := range []string{"/slack/commands", "/slack/interactions", "/slack/events"} {
		status, _ := w.post(path, "payload={}", authorized, form)
		require.Equal(t, http.StatusUnauthorized, status, path)
	}
	require.InDelta(t, 1, w.metric(`vllm_triage_slack_acts_total{act="help",outcome="done"}`), 0)
}

// Without Slack the addresses do not exist.
func TestNoSlackNoEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sections: map[string]string{"slack": `{language: en}`}})
	status, _ := w.post("/slack/commands", "")
	require.Equal(t, http.StatusNotFound, status)
}
