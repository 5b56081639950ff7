package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/config"
	"vllm-triage/notify"
	"vllm-triage/notify/chart"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/triage/store"
)

// A message that Slack does not let be edited any more gets one fresh root with a thread of its own, which is edited from
// then on.
func TestMessagesThatCannotBeEditedArePostedAfreshOnce(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"message_not_found", "cant_update_message", "edit_window_closed"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.notify(alert{name: "TTFT"})
			w.pass(time.Minute)
			w.slack.Inject(fakeslack.Fault{Method: "chat.update", Error: code})
			w.pass(20 * time.Minute)
			roots := w.slack.Roots(channel)
			require.Len(t, roots, 2, "one fresh root, not one for each edit")
			require.NotEmpty(t, roots[1].Edits, "the fresh one is edited from then on")
			require.Equal(t, 2, w.posts(notify.KindDetails))
		})
	}
}

// Too long a text is refused like blocks: the plain text goes out, and the incident is not lost.
func TestTooLongIsSentPlain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"msg_too_long", "msg_blocks_too_long", "invalid_blocks"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Error: code})
			w.notify(alert{name: "TTFT"})
			w.pass(time.Minute)
			require.Empty(t, w.card().Blocks)
			require.Contains(t, w.card().Text, "KV cache full")
			require.Equal(t, []string{"details"}, w.thread())
		})
	}
}

// A revoked token is as bad as a wrong one: nothing is tried with it, and it is said loudly.
func TestRevokedTokenIsLoud(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Error: "token_revoked"})
	w.notify(alert{name: "TTFT"})
	w.pass(5 * time.Minute)
	require.Empty(t, w.roots())
	require.Equal(t, 1, w.calls("chat.postMessage"), "it is not tried again and again")
	line := w.logs.FilterMessage("delivery failed").All()[0]
	require.Equal(t, "error", line.Level.String())
	require.Contains(t, line.ContextMap()["error"], "reinstall the app")
	dead, err := w.store.DeadConversations(t.Context())
	require.NoError(t, err)
	require.Len(t, dead, 1)
	require.Equal(t, "auth", dead[0].Reason)
}

// The answer to the second of two notes is lost. It is not mistaken for the first, which is of the same kind.
func TestRepliesOfOneKindAreNotMistaken(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		fault fakeslack.Fault
		found float64
	}{
		"it arrived":  {fakeslack.Fault{Method: "chat.postMessage", Drop: true}, 1},
		"it did not":  {fakeslack.Fault{Method: "chat.postMessage", Status: http.StatusBadGateway}, 0},
		"nobody knew": {fakeslack.Fault{Method: "chat.postMessage", Error: "internal_error"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.notify(alert{name: "TTFT"})
			w.pass(time.Minute)
			for i := range 2 {
				if i == 1 {
					w.slack.Inject(fault.fault)
				}
				body, err := json.Marshal(notify.NewNote(w.incident().ID, "en", "", "note "+strconv.Itoa(i)))
				require.NoError(t, err)
				require.NoError(t, w.store.AddNote(t.Context(), w.incident().ID, "note-"+strconv.Itoa(i), body, w.clock.now()))
				w.pass(2 * time.Minute)
			}
			var notes []string
			for _, m := range w.slack.Thread(channel, w.card().TS) {
				if m.Kind() == "note" {
					notes = append(notes, m.Text)
				}
			}
			require.Equal(t, []string{"note 0", "note 1"}, notes)
			require.InDelta(t, fault.found, w.metric(`vllm_triage_message_lookups_total{outcome="found"}`), 0)
		})
	}
}

// What a reload says of who may do what counts from the next command on.
func TestPermissionsAreReloaded(t *testing.T) {
	t.Parallel()
	w, base := talking(t)
	ask := func() string {
		t.Helper()
		req, err := w.slack.SlashRequest(t.Context(), w.http.URL+"/slack/commands", signingSecret, base, channel, "U0MINA",
			"/vllm-triage", "explain "+strconv.FormatInt(time.Now().UnixNano(), 10))
		require.NoError(t, err)
		resp, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	require.NotContains(t, ask(), "You may not")
	fresh := *w.parts.Config
	fresh.Slack.Permissions = config.Permissions{Commands: config.Rule{Users: []string{"U0OTHER"}}}
	w.server.Swap(&server.Parts{
		Config: &fresh, Knowledge: w.parts.Knowledge, Runbooks: w.parts.Runbooks, Engine: w.parts.Engine, Notifier: w.parts.Notifier,
	})
	require.Contains(t, ask(), "You may not look up causes")
}

// A re-check and an opinion from Slack are on the incident's page, under the person's name.
func TestWhatPeopleDoInSlackIsOnThePage(t *testing.T) {
	t.Parallel()
	w, base := talking(t)
	id := w.incident().ID
	for _, action := range []string{"right", "recheck"} {
		req, err := w.slack.InteractionRequest(t.Context(), w.http.URL+"/slack/interactions", signingSecret, base, fakeslack.Press{
			Channel: channel, TS: w.card().TS, User: "U0MINA", ActionID: action, Value: id,
		})
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, w.send(req))
	}
	var checks []store.Check
	require.Eventually(t, func() bool {
		opinions, err := w.store.Feedback(t.Context(), id)
		require.NoError(t, err)
		checks, err = w.store.Checks(t.Context(), id)
		require.NoError(t, err)
		return len(opinions) == 1 && len(checks) == 1
	}, 10*time.Second, 5*time.Millisecond)
	require.False(t, checks[0].DoneAt.IsZero())
	status, page := w.get("/incidents/"+id, authorized)
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, page, "(Slack U0MINA)")
	require.Contains(t, page, "Re-check")
}

// The picture of the page is in the site's time zone and in the reader's language, like the page around it.
func TestThePictureOfThePageIsForItsReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sections: map[string]string{
		"slack": `{bot_token: ` + botToken + `, api_url: "SLACK", channel: ` + channel + `, timezone: Asia/Seoul}`,
	}})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	reports, err := w.store.Reports(t.Context(), w.incident().ID)
	require.NoError(t, err)
	seoul, err := time.LoadLocation("Asia/Seoul")
	require.NoError(t, err)
	for _, language := range []string{"en", "ko"} {
		want, err := chart.PNG(*reports.Latest, chart.Options{Language: language, Location: seoul})
		require.NoError(t, err)
		status, got := w.get("/incidents/"+w.incident().ID+"/chart.png?lang="+language, authorized)
		require.Equal(t, http.StatusOK, status)
		require.True(t, bytes.Equal(want, []byte(got)), language)
	}
}

// A runbook that is opened from an incident that is over has the numbers from while it lasted.
func TestRunbookOfAnIncidentThatIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	address := "/runbooks/kv_cache_exhaustion?incident=" + w.incident().ID
	status, during := w.get(address, authorized)
	require.Equal(t, http.StatusOK, status)
	w.notify(alert{name: "TTFT", end: 2 * time.Minute})
	w.pass(2 * time.Minute)
	require.Equal(t, "resolved", w.incident().Status)
	status, after := w.get(address, authorized)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, after, "Resolved: KV cache full")
	const usage = "98 %"
	require.Contains(t, during, usage)
	require.Contains(t, after, usage)
}
