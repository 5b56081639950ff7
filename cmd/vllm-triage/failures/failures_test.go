package failures_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/store"
)

// ago is an alert's start that is recent.
func ago(d time.Duration) time.Time { return time.Now().Add(-d).UTC().Truncate(time.Second) }

// Each of the fifteen failures of the list has a test here, by its number.
func TestEveryFailureHasATest(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("failures_test.go")
	require.NoError(t, err)
	for n := 1; n <= 15; n++ {
		require.Regexp(t, fmt.Sprintf(`(?m)^func TestFailure%02d\w+\(`, n), string(source))
	}
}

// Alertmanager treats 429 and every other 4xx as final: the notification would be lost. 503 is tried again.
func TestFailure01OverloadIs503AndNever429(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = "pages: {rate_limit: 1}"
	s := w.start(t)
	body := payload(alert{name: "A", model: "demo", start: ago(time.Minute)})
	for range 100 {
		status, answer := s.post(t, body)
		require.Equal(t, http.StatusOK, status, answer)
	}
	s.settled(t)
	require.NoError(t, s.store.Close())
	status, answer := s.post(t, body)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, answer, "the notification could not be stored")
	s.server.Drain()
	status, answer = s.post(t, body)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "shutting down; try again\n", answer)
	require.InDelta(t, 2, s.metric(t, `vllm_triage_webhook_requests_total{result="unavailable"}`), 0)
}

// The first 200 comes after the commit: what was answered is on the disk for another process to read.
func TestFailure01AnsweredIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	for i := range 20 {
		model := "demo-" + string(rune('a'+i))
		s.deliver(t, alert{name: "A", model: model, start: ago(time.Minute)})
		other, err := store.Open(t.Context(), w.storage, store.Options{Existing: true})
		require.NoError(t, err)
		found, err := other.Incidents(t.Context(), store.Filter{Model: model})
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.NoError(t, other.Close())
	}
}

// Retries, two Alertmanagers and a restart deliver the same: one incident, one message.
func TestFailure02SamePayloadTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	body := payload(alert{name: "A", model: "demo", start: ago(time.Minute)})
	peer := []byte(strings.Replace(string(body), "http://alertmanager", "http://its-peer", 1))
	for range 5 {
		s.post(t, body)
		s.post(t, peer)
	}
	s.settled(t)
	s.stop()
	s = w.start(t)
	s.post(t, peer)
	s.settled(t)
	w.one(t)
	require.InDelta(t, 1, s.metric(t, `vllm_triage_webhook_requests_total{result="duplicate"}`), 0)
	require.InDelta(t, 0, s.metric(t, `vllm_triage_webhook_requests_total{result="accepted"}`), 0)
}

// A notification that could not be stored is not remembered as seen.
func TestFailure03SeenOnlyOnceStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	body := payload(alert{name: "A", model: "demo", start: ago(time.Minute)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/webhook/alertmanager", strings.NewReader(string(body)))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	answer := newRecorder()
	s.server.Handler().ServeHTTP(answer, req)
	require.Equal(t, http.StatusServiceUnavailable, answer.status)
	require.InDelta(t, 1, s.metric(t, `vllm_triage_webhook_requests_total{result="unavailable"}`), 0)

	status, _ := s.post(t, body)
	require.Equal(t, http.StatusOK, status)
	s.settled(t)
	w.one(t)
	require.InDelta(t, 0, s.metric(t, `vllm_triage_webhook_requests_total{result="duplicate"}`), 0)
	for _, what := range []string{"expired"} {
		require.InDelta(t, 0, s.metric(t, `vllm_triage_lost_total{what="`+what+`"}`), 0)
	}
}

// recorder takes an answer without a connection.
type recorder struct {
	header http.Header
	status int
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

// While Slack limits the rate, edits are not queued one behind the other: the newest state is told once it lets us.
func TestFailure04RateLimitMergesEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	start := ago(time.Minute)
	s.deliver(t, alert{name: "A", model: "demo", start: start})
	s.settled(t)
	edits := w.calls("chat.update")
	w.slack.Inject(fakeslack.Fault{Method: "chat.update", Status: http.StatusTooManyRequests, RetryAfter: "1"})
	alerts := []alert{{name: "A", model: "demo", start: start}}
	for _, name := range []string{"B", "C", "D", "E"} {
		alerts = append(alerts, alert{name: name, model: "demo", start: start})
		s.deliver(t, alerts...)
		require.Eventually(t, func() bool {
			return w.fake.count() == len(alerts)
		}, 5*time.Second, time.Millisecond)
	}
	s.settled(t)
	root := w.one(t)
	shows(t, root, "5 alerts fire")
	require.LessOrEqual(t, w.calls("chat.update")-edits, 6, "one that was refused, then card and details once or twice")
	require.Equal(t, 1, w.calls("chat.postMessage")-1, "card and details were posted once each")
}

// A message that is late says so, and one that is too old is not posted at all.
func TestFailure05LateMessagesSaySo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Status: http.StatusServiceUnavailable})
	s.deliver(t, alert{name: "A", model: "demo", start: ago(time.Minute)})
	require.Eventually(t, func() bool { return w.calls("chat.postMessage") == 1 }, 5*time.Second, time.Millisecond)
	w.clock.skip(16 * time.Minute)
	s.settled(t)
	shows(t, w.one(t), "Posted 16 min late; the alert still fires.")

	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Status: http.StatusServiceUnavailable})
	s.deliver(t, alert{name: "A", model: "other", start: ago(time.Minute)})
	require.Eventually(t, func() bool {
		pending, err := s.store.PendingConversations(t.Context())
		return err == nil && len(pending) == 1 && pending[0].Reason == "unavailable"
	}, 5*time.Second, time.Millisecond)
	w.clock.skip(25 * time.Hour)
	s.settled(t)
	w.one(t)
	require.InDelta(t, 1, s.metric(t, `vllm_triage_lost_total{what="expired"}`), 0)
}

// Alerts of one group that arrive together, at two replicas, post one root.
func TestFailure06TwoAlertsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replicas := []*service{w.start(t), w.start(t)}
	var wg sync.WaitGroup
	for i, name := range []string{"A", "B", "C", "D"} {
		wg.Go(func() {
			status, answer := replicas[i%2].post(t, payload(alert{name: name, model: "demo", start: ago(time.Minute)}))
			if status != http.StatusOK {
				t.Error(answer)
			}
		})
	}
	wg.Wait()
	replicas[0].settled(t)
	shows(t, w.one(t), "4 alerts fire")
}

// A post whose answer was lost is found again instead of being made a second time.
func TestFailure06LostAnswerIsNoSecondPost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Drop: true})
	s.deliver(t, alert{name: "A", model: "demo", start: ago(time.Minute)})
	s.settled(t)
	root := w.one(t)
	require.Len(t, w.thread(root)["details"], 1)
	require.InDelta(t, 1, s.metric(t, `vllm_triage_message_lookups_total{outcome="found"}`), 0)
}

// Without the scope to look, the message is posted again: twice is better than not at all, and the metric says so.
func TestFailure06LostAnswerWithoutScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "chat:write")
	s := w.start(t)
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Drop: true})
	s.deliver(t, alert{name: "A", model: "demo", start: ago(time.Minute)})
	s.settled(t)
	require.Len(t, w.roots(), 2)
	require.InDelta(t, 1, s.metric(t, `vllm_triage_message_lookups_total{outcome="blind"}`), 0)
}

// Somebody deletes the message: the next news make a fresh one, and edit that from then on.
func TestFailure07DeletedRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	start := ago(time.Minute)
	s.deliver(t, alert{name: "A", model: "demo", start: start})
	s.settled(t)
	require.True(t, w.slack.Delete(fakeslack.DefaultChannel, w.one(t).TS))
	s.deliver(t, alert{name: "A", model: "demo", start: start}, alert{name: "B", model: "demo", start: start})
	s.settled(t)
	fresh := w.one(t)
	shows(t, fresh, "2 alerts fire")
	s.deliver(t, alert{name: "A", model: "demo", start: start, end: time.Now()}, alert{name: "B", model: "demo", start: start, end: time.Now()})
	s.settled(t)
	require.Equal(t, fresh.TS, w.one(t).TS)
	require.Contains(t, w.one(t).Text, "Resolved")
}

// The picture fails: the texts are out all the same.
func TestFailure08PictureDoesNotHoldTheTextBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pictures = true
	w.slack.Inject(fakeslack.Fault{Method: "files.getUploadURLExternal", Error: "fatal_error", Times: 50})
	s := w.start(t)
	s.deliver(t, alert{name: "A", model: "demo", start: ago(time.Minute)})
	s.settled(t)
	root := w.one(t)
	require.Len(t, w.thread(root)["details"], 1)
	require.Positive(t, w.calls("files.getUploadURLExternal"))
	require.Positive(t, s.logs.FilterMessage("picture not uploaded").Len())
}

// Uploads refuse channel names, and listing channels is limited: the id that the post returned is used, nothing is listed.
func TestFailure09ChannelNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.AddChannel(fakeslack.Channel{ID: "C0NAMED", Name: "by-name"})
	w.pictures = true
	w.settings = "routes: [{channel: \"#by-name\"}]"
	s := w.start(t)
	s.deliver(t, alert{name: "A", model: "demo", start: ago(time.Minute)})
	s.settled(t)
	roots := w.slack.Roots("C0NAMED")
	require.Len(t, roots, 1)
	files := 0
	for _, reply := range w.slack.Thread("C0NAMED", roots[0].TS) {
		files += len(reply.Files)
	}
	require.Equal(t, 1, files)
	require.Zero(t, w.calls("conversations.list"))

	// A second incident whose answer is lost is looked for by that id, too.
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Drop: true})
	s.deliver(t, alert{name: "A", model: "other", start: ago(time.Minute)})
	s.settled(t)
	require.Len(t, w.slack.Roots("C0NAMED"), 2)
	require.InDelta(t, 1, s.metric(t, `vllm_triage_message_lookups_total{outcome="found"}`), 0)
}

// Slack does not like a block: the plain text goes out.
func TestFailure10RefusedBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Error: "invalid_blocks", Messages: []string{"/blocks/3 too long"}})
	s.deliver(t, alert{name: "A", model: "demo", start: ago(time.Minute)})
	s.settled(t)
	root := w.one(t)
	require.Empty(t, root.Blocks)
	require.Contains(t, root.Text, "demo")
}

// Names come from whoever deploys a model: they never become a mention, a link or a format.
func TestFailure11HostileLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	evil := "<!channel> <https://evil.example|click> *bold* & \u202e"
	s.deliver(t, alert{
		name: evil, model: evil, start: ago(time.Minute),
		labels: map[string]string{"instance": evil, "severity": "<!here>"},
		notes:  map[string]string{"summary": evil, "runbook_url": "javascript:alert(1)"},
	})
	s.settled(t)
	root := w.one(t)
	for _, m := range append([]fakeslack.Message{root}, w.thread(root)["details"]...) {
		markup := m.Markup()
		require.Empty(t, markup.Mentions, m.Text)
		for _, link := range markup.Links {
			u, err := url.Parse(link)
			require.NoError(t, err)
			require.Contains(t, []string{"http", "https"}, u.Scheme)
			require.NotEqual(t, "evil.example", u.Host)
		}
	}
	require.Empty(t, w.slack.Violations())
}

// The status of the group says "firing" while an alert of it has ended: each alert's own status counts, and an end never
// begins a triage.
func TestFailure12StatusOfEachAlert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	start := ago(time.Minute)
	ended := payload(alert{name: "A", model: "demo", start: start, end: start.Add(30 * time.Second)})
	status, _ := s.post(t, []byte(strings.Replace(string(ended), `"status":"resolved"}`, `"status":"firing"}`, 1)))
	require.Equal(t, http.StatusOK, status)
	s.settled(t)
	require.Empty(t, w.roots())
	require.Zero(t, w.fake.count())

	s.deliver(t, alert{name: "A", model: "m", start: start, end: start.Add(30 * time.Second)}, alert{name: "B", model: "m", start: start})
	s.settled(t)
	root := w.one(t)
	require.NotContains(t, root.Text, "Resolved")
	shows(t, root, "1 alert fires, 1 resolved")
}

// The alert comes and goes: one incident, one message, and a counter.
func TestFailure13Flaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	start := ago(10 * time.Minute)
	for range 3 {
		s.deliver(t, alert{name: "A", model: "demo", start: start})
		s.settled(t)
		s.deliver(t, alert{name: "A", model: "demo", start: start, end: start.Add(time.Minute)})
		s.settled(t)
		start = start.Add(2 * time.Minute)
	}
	root := w.one(t)
	require.Contains(t, root.Text, "Resolved")
	shows(t, root, "came back 2 times")
	// A repeat, and the toggle of a pair of Prometheus servers, begin nothing.
	asked := w.fake.count()
	start = start.Add(-2 * time.Minute)
	s.deliver(t, alert{name: "A", model: "demo", start: start})
	s.settled(t)
	require.Equal(t, asked, w.fake.count())
	require.Contains(t, w.one(t).Text, "Resolved")
}

// A slash command whose answer takes longer than Slack waits is acknowledged at once and answered by its response URL. Slack's
// own retry, and somebody who types it again, run nothing a second time; an old signature runs nothing at all.
func TestFailure14SlowSlashCommand(t *testing.T) {
	t.Parallel()
	const secret = "signing-secret-0123456789"
	w := newWorld(t)
	w.settings = fmt.Sprintf("slack: {bot_token: xoxb-secret, api_url: %q, channel: %s, timeout: 2s, signing_secret: %s}\n",
		w.api+"/api/", fakeslack.DefaultChannel, secret)
	asked, answer := make(chan struct{}, 8), make(chan struct{})
	w.fake.tell = func(int, triage.Incident) triage.Report {
		asked <- struct{}{}
		<-answer
		return notifytest.KVLongerOutputs()
	}
	s := w.startWith(t, "slack")
	command := func(with func(*http.Request)) (int, string) {
		req, err := w.slack.SlashRequest(t.Context(), s.http.URL+"/slack/commands", secret, w.api, fakeslack.DefaultChannel,
			"U0MINA", "/vllm-triage", "for 30m")
		require.NoError(t, err)
		with(req)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	plain := func(*http.Request) {}
	status, text := command(plain)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "Looking at", "it is answered while the engine works")
	<-asked
	require.Empty(t, w.slack.Ephemeral(fakeslack.DefaultChannel))
	for _, again := range []func(*http.Request){
		plain,
		func(r *http.Request) {
			r.Header.Set("X-Slack-Retry-Num", "1")
			r.Header.Set("X-Slack-Retry-Reason", "http_timeout")
		},
	} {
		status, _ = command(again)
		require.Equal(t, http.StatusOK, status)
	}
	status, _ = command(func(r *http.Request) {
		r.Header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(time.Now().Add(-6*time.Minute).Unix(), 10))
	})
	require.Equal(t, http.StatusUnauthorized, status)
	close(answer)
	answered := func() (n int) {
		for _, m := range w.slack.Ephemeral(fakeslack.DefaultChannel) {
			if strings.Contains(m.Text, "KV cache full") {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return answered() > 0 }, 20*time.Second, 5*time.Millisecond)
	s.stop() // Whatever else was begun is finished.
	require.Equal(t, 1, answered())
	require.Equal(t, 1, w.fake.count())
	require.Empty(t, w.roots(), "nobody else sees it")
}

// Prometheus refuses the queries: nothing is concluded from what could not be read, and the message says what was missing.
func TestFailure15RefusedQueriesAreNoEvidence(t *testing.T) {
	t.Parallel()
	p := promqtest.Load(t, `load 15s
  vllm:num_requests_running{model_name="demo",instance="a"} 1x80
`, promqtest.StartAt(time.Now().Add(-20*time.Minute)))
	p.Intercept(func(string, string) *promqtest.Fault {
		return &promqtest.Fault{Status: http.StatusUnprocessableEntity, Body: `{"status":"error","errorType":"execution",` +
			`"error":"query processing would load too many samples into memory in query execution"}`}
	})
	w := newWorld(t)
	w.engine = triage.NewEngine(kb.Default(), p.Client(), triage.Options{})
	s := w.start(t)
	s.deliver(t, alert{name: "A", model: "demo", start: ago(time.Minute)})
	s.settled(t)
	require.Contains(t, w.one(t).Text, "Inconclusive")
	found, err := s.store.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	reports, err := s.store.Reports(t.Context(), found[0].ID)
	require.NoError(t, err)
	require.Equal(t, triage.Inconclusive, reports.Latest.Verdict)
	require.NotEmpty(t, reports.Latest.Missing)
	for _, m := range reports.Latest.Missing {
		require.NotEqual(t, triage.Present, m.State)
	}
	details := w.thread(w.one(t))["details"]
	require.Len(t, details, 1)
	shows(t, details[0], "query failed: Prometheus refused the query as too expensive")
}

// A verdict that changes says so once, in the thread.
func TestChangedVerdictIsSaidInTheThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.tell = func(n int, _ triage.Incident) triage.Report {
		if n == 1 {
			return notifytest.Inconclusive()
		}
		return notifytest.KVLongerOutputs()
	}
	s := w.start(t)
	start := ago(time.Minute)
	s.deliver(t, alert{name: "A", model: "demo", start: start})
	s.settled(t)
	for _, name := range []string{"B", "C"} {
		s.deliver(t, alert{name: name, model: "demo", start: start})
		s.settled(t)
	}
	require.Len(t, w.thread(w.one(t))["change"], 1)
}
