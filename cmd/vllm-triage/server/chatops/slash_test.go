package chatops_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq"
	"vllm-triage/triage"
)

func TestAQuestionIsAnsweredTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, "Looking at llama · last 30 min …", w.slash(ann, "llama for 30m"))
	m := w.private(1, ann)
	require.Contains(t, m.Text, "KV cache full")
	require.Empty(t, w.fake.Roots(channel), "nobody else sees it")
	asked := w.engine.questions()
	require.Len(t, asked, 1)
	require.Equal(t, triage.Scope{Model: "llama"}, asked[0].Scope)
	require.Equal(t, 30*time.Minute, asked[0].For)
	require.Equal(t, triage.StatusAdhoc, asked[0].Status)
	require.WithinDuration(t, time.Now(), asked[0].Now, 10*time.Second)
	require.NotContains(t, string(m.Blocks), "/incidents/", "a question has no page")
	require.Contains(t, string(m.Blocks), "https://triage.example.org/runbooks/kv_cache_exhaustion")
	require.NotContains(t, string(m.Blocks), `"recheck"`, "there is no incident to re-check")
	w.counted("triage/done", 1)
	w.counted("answered/true", 1)
}

func TestAnswersComeBeforePrometheusIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := make(chan struct{})
	w.engine.set(func(e *engine) { e.hold = hold })
	w.models.hang = true
	w.change(func() { w.hang["users.info"] = true }) // Slack itself is slow too.
	require.Contains(t, w.slash(ann, "llama"), "Looking at", "world.do checks the three seconds")
	require.Empty(t, w.fake.Ephemeral(channel))
	w.models.mu.Lock()
	w.models.hang = false
	w.models.mu.Unlock()
	w.change(func() { w.hang["users.info"] = false })
	w.ahead.Store(int64(2 * time.Minute))
	require.Contains(t, w.slash(ann, "llama ns=prod"), "Looking at")
	w.eventually("the engine is asked", func() bool { return len(w.engine.questions()) >= 1 })
	require.Empty(t, w.fake.Ephemeral(channel))
	close(hold)
	w.private(1, ann)
}

func TestShareShowsItToTheChannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NotEmpty(t, w.slash(kim, "llama --share"))
	w.eventually("a message in the channel", func() bool { return len(w.fake.Roots(channel)) == 1 })
	m := w.fake.Roots(channel)[0]
	require.Contains(t, m.Text, "KV cache full", "in the channel's language, not in Kim's")
	require.Contains(t, m.Markup().Mentions, "<@"+kim+">", "who asked stands in it")
	require.NotContains(t, string(m.Blocks), "adhoc_share")
	require.Empty(t, w.fake.Ephemeral(channel))
}

func TestTheButtonsBelowAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slash(ann, "llama at 2026-11-01T10:00Z")
	m := w.private(1, ann)
	buttons := buttonsOf(t, m)
	require.Contains(t, buttons, "adhoc_details")
	require.Contains(t, buttons, "adhoc_share")
	w.press(ann, m.TS, "adhoc_details", buttons["adhoc_details"], "")
	details := w.private(2, ann)
	require.Contains(t, details.Text, "Details · KV cache full")
	require.Len(t, w.engine.questions(), 1, "the answer is remembered")
	w.press(ann, m.TS, "adhoc_share", buttons["adhoc_share"], "")
	w.eventually("shared", func() bool { return len(w.fake.Roots(channel)) == 1 })
	w.press(ann, m.TS, "adhoc_share", buttons["adhoc_share"], "")
	require.Contains(t, w.private(3, ann).Text, "a moment ago", "a double click shares once")
	require.Len(t, w.fake.Roots(channel), 1)

	// Another process does not know the answer: it puts the same question again.
	other := newWorld(t)
	other.press(ann, "1.000001", "adhoc_details", buttons["adhoc_details"], "")
	other.private(1, ann)
	require.Len(t, other.engine.questions(), 1)
	require.Equal(t, w.engine.questions()[0], other.engine.questions()[0])
	other.press(ann, "1.000001", "adhoc_details", `{"t":"garbage"}`, "")
	require.Contains(t, other.private(2, ann).Text, "another version")

	// Who is told that it failed may press again at once.
	failing := newWorld(t)
	failing.engine.set(func(e *engine) { e.err = errors.New("no route to host") })
	failing.press(ann, "1.000001", "adhoc_details", buttons["adhoc_details"], "")
	require.Contains(t, failing.private(1, ann).Text, "I could not look")
	failing.engine.set(func(e *engine) { e.err = nil })
	failing.press(ann, "1.000001", "adhoc_details", buttons["adhoc_details"], "")
	require.Contains(t, failing.private(2, ann).Text, "Details · KV cache full")
}

func TestTheSameCommandRunsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slash(ann, "llama for 30m")
	require.Contains(t, w.slash(ann, " llama  for 30m "), "a moment ago")
	require.Contains(t, w.slash(ann, "llama for “30m”"), "a moment ago")
	require.Contains(t, w.slash(kim, "llama for 30m"), "조회 중", "somebody else")
	require.Contains(t, w.slash(ann, "llama for 31m"), "Looking at", "something else")
	w.counted("triage/done", 3)
	w.counted("triage/repeated", 2)
	w.ahead.Store(int64(11 * time.Second))
	require.Contains(t, w.slash(ann, "llama for 30m"), "Looking at")
	w.counted("triage/done", 4)

	w.engine.set(func(e *engine) { e.err = errors.New("canary-inside-an-error") })
	w.slash(ann, "llama for 5m")
	w.counted("triage/failed", 1)
	failed := w.fake.Ephemeral(channel)
	require.Contains(t, failed[len(failed)-1].Text, "my log has the details")
	require.NotContains(t, failed[len(failed)-1].Text, "canary")
	w.logs.TakeAll() // The log may name the cause.
	w.engine.set(func(e *engine) { e.err = nil })
	require.Contains(t, w.slash(ann, "llama for 5m"), "Looking at", "what failed may be tried again at once")
	w.counted("triage/done", 5)
}

func TestPrometheusIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.engine.set(func(e *engine) {
		e.err = &promq.Error{Kind: promq.KindUnavailable, Target: "http://prometheus:9090", Err: errors.New("connection refused")}
	})
	w.slash(kim, "llama")
	require.Contains(t, w.private(1, kim).Text, "조회하지 못했습니다: ask prometheus at http://prometheus:9090: server unavailable")
}

func TestExpiredResponseURLs(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := newWorld(t)
	w.engine.set(func(e *engine) { e.hold = hold })
	w.slash(ann, "llama")
	w.slash(ann, "llama --share")
	w.eventually("both are asked", func() bool { return len(w.engine.questions()) >= 1 })
	w.ahead.Store(int64(31 * time.Minute))
	close(hold)
	w.counted("triage/done", 2)
	require.Contains(t, w.private(1, ann).Text, "KV cache full", "by chat.postEphemeral")
	require.Len(t, w.fake.Roots(channel), 1, "by chat.postMessage")
	methods := map[string]int{}
	for _, c := range w.fake.Calls() {
		methods[c.Method]++
	}
	require.Zero(t, methods["response_url"])
	require.Equal(t, 1, methods["chat.postEphemeral"])
	require.Equal(t, 1, methods["chat.postMessage"])
}

// TestResponseURLsThatSlackRefuses covers URLs that Slack says are used up or expired, and other failures.
func TestResponseURLsThatSlackRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault fakeslack.Fault
		calls int // Of response_url.
		other int // Of chat.postEphemeral.
	}{
		"used up":          {fakeslack.Fault{Method: "response_url", Status: http.StatusNotFound, Body: `{"ok":false,"error":"used_url"}`}, 1, 1},
		"expired":          {fakeslack.Fault{Method: "response_url", Error: "expired_url"}, 1, 1},
		"broken":           {fakeslack.Fault{Method: "response_url", Status: http.StatusInternalServerError}, 1, 1},
		"limited":          {fakeslack.Fault{Method: "response_url", Status: http.StatusTooManyRequests, RetryAfter: "0"}, 2, 0},
		"limited for long": {fakeslack.Fault{Method: "response_url", Status: http.StatusTooManyRequests, RetryAfter: "600"}, 1, 1},
		"blocks refused":   {fakeslack.Fault{Method: "response_url", Error: "invalid_blocks"}, 2, 0},
	} {
		w := newWorld(t)
		w.fake.Inject(tc.fault)
		w.slash(ann, "llama")
		m := w.private(1, ann)
		require.Contains(t, m.Text, "KV cache full", name)
		require.Equal(t, name == "blocks refused", len(m.Blocks) == 0, name)
		w.counted("answered/true", 1)
		methods := map[string]int{}
		for _, c := range w.fake.Calls() {
			methods[c.Method]++
		}
		require.Equal(t, tc.calls, methods["response_url"], name)
		require.Equal(t, tc.other, methods["chat.postEphemeral"], name)
	}

	t.Run("the bot is not in the channel", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.fake.AddChannel(fakeslack.Channel{ID: ann, Name: "dm"})
		w.fake.Inject(fakeslack.Fault{Method: "response_url", Error: "expired_url"})
		w.fake.Inject(fakeslack.Fault{Method: "chat.postEphemeral", Error: "not_in_channel"})
		w.slash(ann, "llama")
		w.eventually("a direct message", func() bool { return len(w.fake.Roots(ann)) == 1 })
	})
	t.Run("nothing works", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.fake.Inject(fakeslack.Fault{Times: 10, Error: "fatal_error"})
		w.slash(ann, "llama")
		w.counted("answered/false", 1)
		require.NotEmpty(t, w.logs.FilterMessage("answer not delivered").All())
	})
}

// TestAnswersGoToSlackOnly has a signed command whose response URL leads elsewhere.
func TestAnswersGoToSlackOnly(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(elsewhere.Close)
	w := newWorld(t)
	host := strings.TrimPrefix(w.slack.URL, "http://")
	for _, address := range []string{
		elsewhere.URL + "/response/R1", "http://hooks.slack.com/x", "https://hooks.slack.com.evil.test/x",
		"http://" + host + "@" + strings.TrimPrefix(elsewhere.URL, "http://"), "file:///etc/passwd", "::",
	} {
		form := url.Values{
			"team_id": {"T1"}, "channel_id": {channel}, "user_id": {ann}, "text": {"explain " + address}, "response_url": {address},
		}
		status, _ := w.do(signedForm(t, w.app.URL+"/slack/commands", form), nil)
		require.Equal(t, http.StatusOK, status)
	}
	w.counted("explain/unclear", 6)
	require.Len(t, w.fake.Ephemeral(channel), 6, "each went by chat.postEphemeral")
	require.Zero(t, hits.Load())
	for _, c := range w.fake.Calls() {
		require.Equal(t, "chat.postEphemeral", c.Method)
	}
}

func TestTimesAreTheAuthors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seoul := zone(t, "Asia/Seoul")
	past := time.Now().Add(-3 * time.Hour).In(seoul)
	require.Contains(t, w.slash(kim, "llama at "+past.Format("2006-01-02 15:04")), "KST 기준")
	w.private(1, kim)
	require.Equal(t, past.Truncate(time.Minute).UTC(), w.engine.questions()[0].Now)

	require.Contains(t, w.slash(bob, "llama at 2026-11-01 10:00"), "10:00 UTC")
	m := w.private(2, bob)
	require.Equal(t, time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC), w.engine.questions()[1].Now)
	require.Contains(t, string(m.Blocks), "Slack does not tell me your time zone, so times are in UTC")
	require.Contains(t, w.slash(bob, "help"), "so times are in UTC")
	require.Contains(t, w.slash(ann, "help"), "in your zone, America/New_York")
	asked := w.calls("users.info")
	w.slash(kim, "help")
	w.slash(bob, "help")
	require.Equal(t, asked, w.calls("users.info"), "what Slack said is remembered")
}

func TestHelpInBothLanguages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for user, want := range map[string]string{ann: "What I can do", kim: "할 수 있는 일"} {
		text := w.slash(user, "help")
		require.Contains(t, text, want)
		for _, verb := range []string{"models", "incidents", "explain", "silences", "--share"} {
			require.Contains(t, text, verb)
		}
	}
	require.Contains(t, w.slash(ann, "llama fro 30m"), "I do not understand “fro” there.\nDid you mean for?")
	require.Contains(t, w.slash(kim, "llama at noon"), "“noon” 표현은 시각이 아닙니다")
	require.Empty(t, w.engine.questions())
	require.Zero(t, w.models.n)
	w.counted("triage/unclear", 2)
	require.Empty(t, w.fake.Ephemeral(channel), "all of it is in the first answer")
}

func TestModelsAreFound(t *testing.T) {
	t.Parallel()
	several := []chatops.Model{
		{Name: "Qwen/Qwen3-32B", Namespace: "prod", Replicas: 2},
		{Name: "meta-llama/Llama-3.1-70B", Namespace: "canary", Replicas: 1},
		{Name: "meta-llama/Llama-3.1-70B", Namespace: "prod", Replicas: 4},
		{Name: "meta-llama/Llama-3.1-8B", Namespace: "prod", Replicas: 1},
	}
	for _, tc := range []struct {
		text  string
		model string // That is asked about; "-" is none.
		says  string
	}{
		{"Qwen/Qwen3-32B", "Qwen/Qwen3-32B", ""},
		{"qwen3-32b", "Qwen/Qwen3-32B", "Taken for Qwen/Qwen3-32B."},
		{"qwen", "Qwen/Qwen3-32B", "Taken for Qwen/Qwen3-32B."},
		{"llama-3.1-70b", "meta-llama/Llama-3.1-70B", "several namespaces (canary, prod)"},
		{"70B ns=prod", "meta-llama/Llama-3.1-70B", "Taken for"},
		{"llama", "", "/vllm-triage meta-llama/Llama-3.1-8B"},
		{"Qwen/Qwen3-23B", "", "/vllm-triage Qwen/Qwen3-32B"},
		{"Qwen3-23B", "", "/vllm-triage Qwen/Qwen3-32B"},
		{"mistral", "", "I know no model mistral."},
		{"modles", "", "Did you mean /vllm-triage models?"},
		{"", "", "Which one do you mean?"},
		{"ns=prod", "-", ""},
		{"instance=10.0.0.1:8000", "-", ""},
		{"ns=canary 8B", "", "I know no model 8B."},
	} {
		w := newWorld(t)
		w.models.list = several
		w.slash(ann, tc.text)
		m := w.private(1, ann)
		shown := m.Text + string(m.Blocks)
		require.Contains(t, shown, tc.says, tc.text)
		if tc.model == "" {
			require.Empty(t, w.engine.questions(), tc.text)
			w.counted("triage/unclear", 1)
			continue
		}
		require.Len(t, w.engine.questions(), 1, tc.text)
		require.Equal(t, strings.Trim(tc.model, "-"), w.engine.questions()[0].Scope.Model, tc.text)
	}

	t.Run("one model needs no name", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.slash(ann, "")
		w.private(1, ann)
		require.Equal(t, "llama", w.engine.questions()[0].Scope.Model)
	})
	t.Run("nobody knows the models", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.models.err = errors.New("down")
		w.slash(ann, "anything")
		require.Contains(t, string(w.private(1, ann).Blocks), "I could not list the models")
		require.Equal(t, "anything", w.engine.questions()[0].Scope.Model)
		w.open(incID, notifytest.KVLongerOutputs())
		w.slash(ann, "llmaa")
		require.Contains(t, w.private(2, ann).Text, "/vllm-triage llama", "past incidents know some")
	})
}

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.models.list = append(w.models.list, chatops.Model{Name: "qwen", Namespace: "test", Replicas: 1})
	w.open(incID, notifytest.KVLongerOutputs())
	require.Empty(t, w.slash(ann, "models"), "nothing to say yet")
	m := w.private(1, ann)
	require.Contains(t, m.Text, "2 models\n• llama (prod) · 3 replicas · 🔴 KV cache full")
	require.Contains(t, m.Text, "• qwen (test) · 1 replica")
	require.Contains(t, m.Markup().Links, "https://triage.example.org/incidents/inc-1")
	w.slash(ann, "models qw --share")
	w.eventually("shared", func() bool { return len(w.fake.Roots(channel)) == 2 })
	require.Equal(t, 1, w.models.n, "asked once a minute")
	w.ahead.Store(int64(2 * time.Minute))
	w.models.mu.Lock()
	w.models.err = errors.New("down")
	w.models.mu.Unlock()
	w.slash(kim, "models")
	require.Contains(t, w.private(2, kim).Text, "Prometheus에 조회하지 못해 과거 인시던트의 모델만 표시합니다")
	w.settings.Models = nil
	w.slash(ann, "models nothing-like-it")
	require.Contains(t, w.private(3, ann).Text, "I see no model")
}

func TestIncidentsAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *chatops.Settings, c *chatops.Config) {
		c.Sign = func(id, address string) string { return address + "?grant=" + id }
	})
	w.slash(ann, "incidents")
	require.Contains(t, w.private(1, ann).Text, "There is no such incident")
	w.open(incID, notifytest.KVLongerOutputs())
	w.resolve()
	w.open("inc-2", notifytest.Inconclusive(), alert("A", map[string]string{"model_name": "qwen"}))
	w.slash(ann, "incidents all")
	m := w.private(2, ann)
	lines := strings.Split(m.Text, "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[1], "🔴 inconclusive · qwen · firing for 10 min", "what fires comes first")
	require.Contains(t, lines[2], "🟢 KV cache full (high confidence) · llama (prod) · over since")
	require.Contains(t, m.Markup().Links, "https://triage.example.org/incidents/inc-2?grant=inc-2", "readers may open it")
	w.slash(kim, "incidents resolved")
	require.NotContains(t, w.private(3, kim).Text, "qwen")
	w.slash(ann, "incidents llma")
	require.Contains(t, w.private(4, ann).Text, "There is no incident of llma.\nDid you mean llama?")
	w.slash(ann, "incidents llama --share")
	w.eventually("shared", func() bool {
		return strings.Contains(w.fake.Roots(channel)[len(w.fake.Roots(channel))-1].Text, "llama (prod)")
	})
	broken := errors.New("disk is full")
	w.store.err.Store(&broken)
	w.slash(ann, "incidents firing")
	require.Contains(t, w.private(5, ann).Text, "I could not read or write my database")
	w.counted("incidents/failed", 1)
}

func TestCausesAreExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 0
	explain := func(user, subject string) fakeslack.Message {
		n++
		w.ahead.Add(int64(time.Minute))
		w.slash(user, "explain "+subject)
		return w.private(n, user)
	}
	for _, subject := range []string{"kv_cache_exhaustion", "KV cache exhaustion", "kv-cache-exhaustion", "kv_cache_exhastion", "KV 캐시 고갈"} {
		m := explain(ann, subject)
		require.Contains(t, m.Text, "kv_cache_exhaustion", subject)
		require.Contains(t, m.Markup().Links, "https://triage.example.org/runbooks/kv_cache_exhaustion")
		require.Contains(t, m.Text, "1. ", "the runbook's steps")
	}
	m := explain(kim, "prefill_bound")
	require.Contains(t, m.Text, "프리필 병목")
	require.Contains(t, m.Text, "프롬프트 연산이 엔진 스텝을 차지해")
	require.Contains(t, m.Markup().Links, "https://triage.example.org/runbooks/prefill_bound?lang=ko")
	require.Contains(t, explain(ann, "longer_outputs").Text, "longer_outputs", "triggers too")
	require.Contains(t, explain(ann, "bound").Text, "Did you mean")
	require.Contains(t, explain(ann, "zzzzzz").Text, "I know no cause zzzzzz.")
	all := explain(kim, "")
	for _, c := range knowledge().Causes {
		require.Contains(t, all.Text, c.ID, "none is left out")
	}
	require.NotContains(t, all.Text, "…")
}

func TestHostileTextCallsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.models.list = []chatops.Model{{Name: notifytest.HostileText, Namespace: "<!channel>"}, {Name: "other"}}
	w.engine.set(func(e *engine) { e.report = notifytest.Hostile() })
	w.open(incID, notifytest.Hostile(), alert("<!here>", map[string]string{"model_name": notifytest.HostileText}))
	n := 0
	for _, text := range []string{
		"models", "incidents", "<!channel> ", "explain <!here> & <https://evil.test|click>", `model="<!everyone>"`, "other", "silences",
		"llama <!channel>", "llama at <@U0EVIL>",
	} {
		if w.slash(ann, text) == "" || text == "other" {
			n++
			w.private(n, ann)
		}
	}
	for _, m := range append(w.fake.Ephemeral(channel), w.fake.Roots(channel)...) {
		require.Empty(t, m.Markup().Mentions, m.Text)
		for _, l := range m.Markup().Links {
			u, err := url.Parse(l)
			require.NoError(t, err)
			require.Contains(t, []string{"triage.example.org", "prometheus.example.org", "am.example.org"}, u.Host)
		}
	}
}

func TestPrometheusModels(t *testing.T) {
	t.Parallel()
	q := promqtestServer(t, `load 15s
vllm:num_requests_running{model_name="llama",namespace="prod",instance="a",engine="0"} 1x100
vllm:num_requests_running{model_name="llama",namespace="prod",instance="a",engine="1"} 1x100
vllm:num_requests_running{model_name="llama",namespace="prod",instance="b",engine="0"} 1x100
vllm_num_requests_running{model_name="ray",instance="c"} 1x100
vllm:num_requests_running{model_name="away",namespace="prod",instance="d"} 1x3
`)
	source, err := chatops.NewPrometheusModels(q)
	require.NoError(t, err)
	got, err := source.Models(t.Context(), time.Unix(0, 0).Add(25*time.Minute))
	require.NoError(t, err)
	require.Equal(t, []chatops.Model{{Name: "llama", Namespace: "prod", Replicas: 2}, {Name: "ray", Replicas: 1}}, got)
	narrow, err := chatops.NewPrometheusModels(q, promq.Equal("namespace", "prod"))
	require.NoError(t, err)
	got, err = narrow.Models(t.Context(), time.Unix(0, 0).Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, []chatops.Model{{Name: "away", Namespace: "prod", Replicas: 1}, {Name: "llama", Namespace: "prod", Replicas: 2}}, got)
}
