package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// Five alerts of one fault arrive within seconds: they are waited for and told in one message.
func TestDebounceLetsAlertsArriveTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	for i, name := range []string{"Queue", "KV", "Preempting", "E2E"} {
		w.pass(3 * time.Second)
		w.notify(alert{name: name, start: time.Duration(i+1) * 3 * time.Second})
	}
	require.Empty(t, w.roots())
	w.pass(7 * time.Second)
	require.Empty(t, w.roots(), "19 s after the first alert")
	w.pass(time.Second)
	require.Contains(t, said(w.card()), "5 alerts fire")
	require.Equal(t, 1, w.engine.count())
	require.Len(t, w.engine.last().Alerts, 5)
	require.Equal(t, []string{"details"}, w.thread())
}

// What resolves by itself within the debounce time is kept, and told to nobody.
func TestSelfResolvedIsKeptNotPosted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.jump(10 * time.Second)
	w.notify(alert{name: "TTFT", end: 9 * time.Second})
	w.pass(time.Minute)
	require.Empty(t, w.slack.Calls())
	in := w.incident()
	require.Equal(t, triage.StatusResolved, in.Status)
	require.Equal(t, int64(1), in.Revision, "it was looked at, for the page")

	// When it comes back it is the same incident, now told, and nothing is said to have changed: nobody knew of it.
	w.notify(alert{name: "TTFT", start: 70 * time.Second})
	w.pass(30 * time.Second)
	require.Contains(t, said(w.card()), "came back once")
	require.Equal(t, []string{"details"}, w.thread())
	require.Equal(t, 1, w.incident().Flaps)
}

// Each incident is looked at again after 2, 5 and 10 minutes while it fires, and not after that.
func TestLooksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.pass(11 * time.Minute)
	var at []time.Duration
	for _, q := range w.engine.asked {
		at = append(at, q.Now.Sub(begin))
	}
	require.Equal(t, []time.Duration{20 * time.Second, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute}, at)
	w.pass(20 * time.Minute)
	require.Equal(t, 4, w.engine.count())
	require.Len(t, w.card().Edits, 3)
}

// An alert that joins makes the incident be looked at again; the message is edited at most every 30 s and then shows the
// newest state, not each that was between.
func TestJoinsAreMergedIntoOneEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.pass(21 * time.Second)
	require.Empty(t, w.card().Edits)
	for _, name := range []string{"B", "C", "D"} {
		w.notify(alert{name: name, start: 21 * time.Second})
		w.pass(6 * time.Second)
	}
	require.Empty(t, w.card().Edits, "18 s after the post")
	require.Equal(t, 4, w.engine.count(), "each was looked at")
	w.pass(15 * time.Second)
	card := w.card()
	require.Len(t, card.Edits, 1)
	require.Contains(t, said(card), "4 alerts fire")
	require.GreaterOrEqual(t, card.Edits[0].At.Sub(begin), 50*time.Second)
}

// A repeat is counted and changes nothing; copies of it from a second Alertmanager are not even counted.
func TestRepeatsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	require.Equal(t, 0, w.incident().Repeats)
	w.jump(4 * time.Hour)
	calls := len(w.slack.Calls())
	asked := w.engine.count()
	w.notify(alert{name: "TTFT"})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	require.Equal(t, 1, w.incident().Repeats)
	require.Equal(t, asked, w.engine.count())
	require.Len(t, w.slack.Calls(), calls, "nothing was told")
}

// Alertmanager may cut a notification: how many it left out is counted in.
func TestTruncatedAlertsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.deliver(notification(97, alert{name: "A"}, alert{name: "B"}, alert{name: "C", end: time.Second}))
	w.pass(21 * time.Second)
	text := said(w.card())
	require.Contains(t, text, "2 alerts fire")
	require.Contains(t, text, "97")
	require.Equal(t, 97, w.engine.last().Truncated)
}

// An incident keeps 500 alerts in full; the others are counted, so the sum is still right.
func TestManyAlertsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	alerts := make([]alert, 700)
	for i := range alerts {
		alerts[i] = alert{name: "A" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26))}
	}
	w.deliver(notification(0, alerts...))
	w.pass(21 * time.Second)
	q := w.engine.last()
	require.Len(t, q.Alerts, 500)
	require.Equal(t, 200, q.Truncated)
}

// A verdict that changes adds one line to the thread that says why; the card shows the new one.
func TestChangedVerdictAddsOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.engine.says(func(n int, _ triage.Incident) (triage.Report, error) {
		if n == 1 {
			return notifytest.KVLongerOutputs(), nil
		}
		r := notifytest.KVLongerOutputs()
		r.Bottlenecks[0].ID = "prefill_bound"
		return r, nil
	})
	w.notify(alert{name: "TTFT"})
	w.pass(6 * time.Minute)
	require.Equal(t, []string{"details", "change"}, w.thread())
	require.Contains(t, w.replies(notify.KindChange)[0], "Verdict changed")
}

// The end turns the message green, sets the values of now beside those of the incident, and is said once in the thread.
func TestResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.pass(3 * time.Minute)
	require.NotContains(t, w.card().Text, "Resolved")
	w.notify(alert{name: "TTFT", end: 3 * time.Minute})
	w.pass(time.Minute)
	card := w.card()
	require.Contains(t, card.Text, "Resolved")
	require.Contains(t, string(card.Blocks), "🟢")
	require.Equal(t, []string{"details", "resolved"}, w.thread())
	require.Contains(t, w.replies(notify.KindResolved)[0], "→")
	require.Empty(t, w.slack.Violations())
	require.False(t, w.slack.Thread(channel, card.TS)[1].Broadcast)
}

// A route may show the end in the channel too.
func TestResolveIsBroadcastWhenWanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sections: map[string]string{"routes": `[{broadcast_resolve: true}]`}})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	w.notify(alert{name: "TTFT", end: time.Minute})
	w.pass(time.Minute)
	require.True(t, w.slack.Thread(channel, w.card().TS)[1].Broadcast)
}

// An alert that fires and ends again and again keeps one message with a counter, and does not flood the thread.
func TestFlapsKeepOneMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	at := time.Duration(0)
	for range 10 {
		w.notify(alert{name: "TTFT", start: at})
		w.pass(time.Minute)
		at += time.Minute
		w.notify(alert{name: "TTFT", start: at - time.Minute, end: at - time.Second})
		w.pass(time.Minute)
		at += time.Minute
	}
	require.Equal(t, 9, w.incident().Flaps)
	require.Contains(t, said(w.card()), "came back 9 times")
	require.Len(t, w.replies(notify.KindResolved), 4)
}

// Beyond the flap window it is another incident with a message of its own.
func TestAfterTheFlapWindowItIsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	w.notify(alert{name: "TTFT", end: time.Minute})
	w.jump(20 * time.Minute)
	w.notify(alert{name: "TTFT", start: 21 * time.Minute})
	w.pass(time.Minute)
	require.Len(t, w.roots(), 2)
}

// A message that somebody deleted is posted afresh, once, with a thread of its own; nobody is called a second time.
func TestDeletedMessageIsPostedAfresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sections: map[string]string{"routes": `[{mention: here}]`}})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	first := w.card()
	require.Equal(t, []string{"<!here>"}, first.Markup().Mentions)
	w.slack.Delete(channel, first.TS)
	w.pass(10 * time.Minute)
	second := w.card()
	require.NotEqual(t, first.TS, second.TS)
	require.Empty(t, second.Markup().Mentions)
	require.Equal(t, []string{"details"}, w.thread())
	require.Equal(t, 2, w.posts(notify.KindCard))
}

// The root may be gone while only the thread has news: Slack then posts the reply into the channel. It is taken back.
func TestDeletedMessageIsNoticedByTheThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	w.slack.Delete(channel, w.card().TS)
	body, err := json.Marshal(notify.NewNote(w.incident().ID, "en", "", "a note"))
	require.NoError(t, err)
	require.NoError(t, w.store.AddNote(t.Context(), w.incident().ID, "x", body, w.clock.now()))
	w.pass(5 * time.Second)
	require.Equal(t, []string{"details", "note"}, w.thread())
}

// A channel that takes no message makes noise and keeps the message; once it takes one, those before come too.
func TestChannelErrorsAreLoudAndRevived(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"not_in_channel", "channel_not_found", "is_archived"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Error: code})
			w.notify(alert{name: "TTFT"})
			w.pass(time.Minute)
			require.Empty(t, w.roots())
			dead, err := w.store.DeadConversations(t.Context())
			require.NoError(t, err)
			require.Len(t, dead, 1)
			require.Equal(t, "channel", dead[0].Reason)
			line := w.logs.FilterMessage("delivery failed").All()[0]
			require.Equal(t, "error", line.Level.String())
			require.Contains(t, line.ContextMap()["error"], code)
			require.InDelta(t, 1, w.metric(`vllm_triage_notification_errors_total{reason="channel"}`), 0)
			require.Equal(t, 1, w.calls("chat.postMessage"), "it is not tried again and again")

			w.notify(alert{name: "TTFT", model: "other"})
			w.pass(time.Minute)
			require.Len(t, w.roots(), 2)
		})
	}
}

// A token that does not work stops all messages, loudly, and makes the service not ready. With a token that works they all
// come, newest state first and only.
func TestBadTokenIsLoudAndRevived(t *testing.T) {
	t.Parallel()
	bad := &notify.Error{Reason: notify.Auth, Err: errors.New("invalid_auth"), Hint: "copy it again"}
	good := false
	w := newWorld(t, setup{})
	w.parts.Ping = func(context.Context) error {
		if good {
			return nil
		}
		return bad
	}
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Error: "invalid_auth"})
	w.notify(alert{name: "TTFT"})
	w.pass(5 * time.Minute)
	require.Empty(t, w.roots())
	status, answer := w.get("/-/ready")
	require.Equal(t, 503, status)
	require.Contains(t, answer, "auth")
	require.InDelta(t, 0, w.metric("vllm_triage_notifier_last_call_successful"), 0)

	good = true
	w.pass(time.Minute)
	require.Empty(t, w.card().Edits, "the newest state, not each that was between")
	require.Equal(t, []string{"details"}, w.thread())
	status, _ = w.get("/-/ready")
	require.Equal(t, 200, status)
}

// A limit of Slack is kept: nothing is said to the channel before its time, and then only the newest state.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"with Retry-After": "1", "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Status: 429, RetryAfter: after})
			w.notify(alert{name: "TTFT"})
			w.pass(20 * time.Second)
			require.Empty(t, w.roots())
			waiting, err := w.store.PendingConversations(t.Context())
			require.NoError(t, err)
			require.Len(t, waiting, 1)
			require.Equal(t, "rate_limited", waiting[0].Reason)
			wait := 30 * time.Second
			if after != "" {
				wait = time.Second
			}
			require.Equal(t, begin.Add(20*time.Second+wait), waiting[0].NextAt)
			require.InDelta(t, 1, w.metric(`vllm_triage_notification_errors_total{reason="rate_limited"}`), 0)
		})
	}
}

// Errors of Slack's servers pass; a message is never posted twice because of them.
func TestServerErrorsPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for _, status := range []int{503, 500, 502} {
		w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Status: status})
	}
	w.notify(alert{name: "TTFT"})
	w.pass(2 * time.Minute)
	require.NotEmpty(t, w.card().TS)
	require.Equal(t, []string{"details"}, w.thread())
}

// The connection broke after Slack had taken the message: it is found by its metadata instead of being posted twice. So are
// the replies.
func TestLostAnswersAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Drop: true})
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Drop: true})
	w.notify(alert{name: "TTFT"})
	w.pass(2 * time.Minute)
	require.NotEmpty(t, w.card().TS)
	require.Equal(t, []string{"details"}, w.thread())
	require.InDelta(t, 2, w.metric(`vllm_triage_message_lookups_total{outcome="found"}`), 0)
}

// The picture comes after the text. When it fails that costs one line in the thread.
func TestPicture(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{pictures: true})
	w.notify(alert{name: "TTFT"})
	w.pass(6 * time.Minute)
	require.Equal(t, []string{"details", "picture"}, w.thread(), "one picture an incident")

	w = newWorld(t, setup{pictures: true})
	w.slack.Inject(fakeslack.Fault{Method: "upload", Status: 500})
	w.notify(alert{name: "TTFT"})
	w.pass(6 * time.Minute)
	require.Equal(t, []string{"details", "note"}, w.thread())

	// Without the scope nobody is told, and it is not tried for each incident.
	w = newWorld(t, setup{pictures: true, slack: fakeslack.Options{Scopes: []string{"chat:write"}}})
	for _, model := range []string{"a", "b", "c"} {
		w.notify(alert{name: "TTFT", model: model})
	}
	w.pass(time.Minute)
	require.Len(t, w.roots(), 3)
	require.Equal(t, 1, w.calls("files.getUploadURLExternal"))
}

// A message that had to wait says how late it is, and of what is true now: the incident is looked at again first.
func TestLateMessageIsCheckedFirst(t *testing.T) {
	t.Parallel()
	source := &holds{}
	w := newWorld(t, setup{alerts: source, sections: map[string]string{"triage": "{retriage: []}"}})
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Status: 503})
	w.notify(alert{name: "TTFT"})
	w.pass(20 * time.Second)
	require.Equal(t, 1, w.engine.count())
	w.jump(10 * time.Minute)
	require.Empty(t, w.roots())
	require.Equal(t, 2, w.engine.count())
	w.pass(10 * time.Second)
	first := said(w.card())
	require.Contains(t, first, "10 min")
	require.Contains(t, first, "Meanwhile the alert has stopped firing")
	require.Contains(t, source.asked, "fp-TTFT-demo")
}

// News that are too old are not posted any more; that is counted and logged, and newer news are posted again.
func TestTooOldIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sections: map[string]string{"triage": "{max_age: 1h}"}})
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Status: 503})
	w.notify(alert{name: "TTFT"})
	w.pass(20 * time.Second)
	w.jump(3 * time.Hour)
	w.pass(time.Minute)
	require.Empty(t, w.roots())
	require.Positive(t, w.metric(`vllm_triage_lost_total{what="expired"}`))
	w.notify(alert{name: "B", start: 3 * time.Hour})
	w.pass(time.Minute)
	require.NotEmpty(t, w.card().TS)
}

// Routes: shadow records and does not post, off does not even look, and each channel has its own language.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sections: map[string]string{"routes": `
  - {match: {team: shadow}, mode: shadow}
  - {match: {team: off}, mode: off}
  - {match: {team: seoul}, channel: C0SEOUL, language: ko, timezone: Asia/Seoul, continue: true}
  - {match: {team: seoul}, language: en}
  - {match: {team: quiet}, thread: false}
  - {match: {team: still}, edit: false}`}})
	w.slack.AddChannel(fakeslack.Channel{ID: "C0SEOUL", Name: "seoul"})
	for _, team := range []string{"shadow", "off", "seoul", "quiet", "still"} {
		w.notify(alert{name: "TTFT", model: team, labels: map[string]string{"team": team}})
	}
	w.pass(3 * time.Minute)
	all, err := w.store.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	revisions := map[string]int64{}
	for _, in := range all {
		revisions[in.Scope.Model] = in.Revision
	}
	require.Equal(t, map[string]int64{"shadow": 2, "off": 0, "seoul": 2, "quiet": 2, "still": 2}, revisions)
	require.Len(t, w.slack.Roots("C0SEOUL"), 1)
	require.Contains(t, w.slack.Roots("C0SEOUL")[0].Text, "KV 캐시")
	roots := w.slack.Roots(channel)
	require.Len(t, roots, 3)
	for _, m := range roots {
		require.NotContains(t, m.Text, "캐시")
		switch replies := w.slack.Thread(channel, m.TS); {
		case strings.Contains(m.Text, "quiet"):
			require.Empty(t, replies)
		case strings.Contains(m.Text, "still"):
			require.Empty(t, m.Edits)
			require.NotEmpty(t, replies)
		default:
			require.Len(t, m.Edits, 1)
		}
	}
}

// A triage that fails again and again does not keep people from knowing of the alert; neither does one that panics.
func TestFailedTriageIsToldAnyway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.engine.says(func(n int, _ triage.Incident) (triage.Report, error) {
		if n == 2 {
			panic("index out of range")
		}
		return triage.Report{}, errors.New("the knowledge does not fit")
	})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	require.Contains(t, said(w.card()), "The triage itself failed")
	require.NotEmpty(t, w.logs.FilterMessage("background work panicked").All())
	require.InDelta(t, 3, w.metric(`vllm_triage_verdicts_total{verdict="failed"}`), 0)
}

// Each replica may be killed at any time: what it had claimed goes to another when its lease ends.
func TestAnotherReplicaTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	w.clock.set(begin.Add(20 * time.Second))
	for kind := ""; kind != store.KindTriage; {
		j, found, err := w.store.Claim(t.Context(), "killed", w.clock.now(), 20*time.Second)
		require.NoError(t, err)
		require.True(t, found)
		kind = j.Kind
	}
	w.pass(19 * time.Second)
	require.Empty(t, w.roots())
	w.pass(2 * time.Second)
	require.NotEmpty(t, w.card().TS)
}
