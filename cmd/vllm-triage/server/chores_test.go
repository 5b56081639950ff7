package server_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

func watchdog(start time.Duration) alert {
	return alert{name: "Watchdog", start: start, labels: map[string]string{"model_name": "", "namespace": ""}}
}

// A heartbeat never becomes an incident. When it stops, the channel is told once; when it is back, once more.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.pass(20 * time.Minute)
	require.Empty(t, w.roots(), "one that was never heard is not missed")
	for range 4 {
		w.notify(watchdog(0))
		w.pass(2 * time.Minute)
	}
	in, err := w.store.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	require.Empty(t, in)
	require.Empty(t, w.roots())
	last := begin.Add(26 * time.Minute)
	require.InDelta(t, float64(last.Unix()), w.metric("vllm_triage_heartbeat_last_received_timestamp_seconds"), 0)

	w.pass(time.Hour)
	require.Len(t, w.roots(), 1)
	require.Contains(t, w.roots()[0], "No heartbeat for 5m")
	require.Contains(t, w.roots()[0], "Watchdog")
	require.NotEmpty(t, w.logs.FilterMessage("heartbeat is missing: alerts may not arrive").All())

	w.notify(watchdog(0))
	w.pass(4 * time.Minute)
	require.Len(t, w.roots(), 2)
	require.Contains(t, w.roots()[1], "is back")
	w.pass(30 * time.Minute)
	require.Len(t, w.roots(), 3, "the next silence is another one")
}

// A heartbeat beside other alerts is taken out of the notification; one that has resolved is no sign of life.
func TestHeartbeatBesideOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	gone := watchdog(0)
	gone.end = time.Second
	w.notify(gone)
	w.notify(watchdog(0), alert{name: "TTFT"})
	w.pass(time.Minute)
	require.Len(t, w.engine.last().Alerts, 1)
	require.Equal(t, "TTFT", w.engine.last().Alerts[0].Name)
	beat, err := w.store.LastBeat(t.Context(), "Watchdog")
	require.NoError(t, err)
	require.Equal(t, begin, beat)
}

// The silence of a service that was down is its own and not reported as Alertmanager's. What was told before a restart is
// not told again after it.
func TestHeartbeatOverARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(watchdog(0))
	w.clock.set(begin.Add(3 * time.Hour))
	path := w.address
	again := newWorld(t, setup{storage: path, clock: w.clock, chat: w.slack, owner: "replica-2"})
	again.pass(4 * time.Minute)
	require.Empty(t, again.roots())
	again.pass(4 * time.Minute)
	require.Len(t, again.roots(), 1)
	third := newWorld(t, setup{storage: path, clock: w.clock, chat: w.slack, owner: "replica-3"})
	third.pass(10 * time.Minute)
	require.Len(t, third.roots(), 1)
}

// An end that Alertmanager told nobody of is found by asking; the message turns green.
func TestLostEndIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{alerts: &holds{}})
	w.notify(alert{name: "TTFT"})
	w.pass(11 * time.Minute)
	require.Equal(t, triage.StatusFiring, w.incident().Status)
	w.pass(8 * time.Minute)
	require.Equal(t, triage.StatusResolved, w.incident().Status)
	require.Contains(t, w.card().Text, "Resolved")
	require.Equal(t, []string{"details", "resolved"}, w.thread())
}

// What is older than the retention is dropped by itself.
func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sections: map[string]string{"retention": "30d"}})
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	w.notify(alert{name: "TTFT", end: time.Minute})
	w.pass(time.Minute)
	w.jump(29 * 24 * time.Hour)
	require.NotEmpty(t, w.incident().ID)
	w.jump(2 * 24 * time.Hour)
	in, err := w.store.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	require.Empty(t, in)
}

// Readiness asks the store, and the chat where there is one; it is patient at the start and with short failures.
func TestReadiness(t *testing.T) {
	t.Parallel()
	var down error
	asked := 0
	w := newWorld(t, setup{ping: func(context.Context) error {
		asked++
		return down
	}})
	ready := func() (int, string) { return w.get("/-/ready") }
	status, _ := ready()
	require.Equal(t, http.StatusOK, status)
	down = &notify.Error{Reason: notify.Unavailable, Retryable: true, Err: errors.New("xoxb-canary is no answer")}
	pings := func(d time.Duration) {
		for range int(d / (10 * time.Second)) {
			w.jump(10 * time.Second)
		}
	}
	pings(3 * time.Minute)
	status, _ = ready()
	require.Equal(t, http.StatusOK, status, "within the grace")
	require.LessOrEqual(t, asked, 6, "every 30 s")
	pings(time.Minute)
	status, answer := ready()
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, answer, "unavailable")
	require.NotContains(t, answer, "canary")
	// The chat is no reason to keep alerts out: they are taken, and told when it is back.
	status, _ = w.get("/-/accepting")
	require.Equal(t, http.StatusOK, status)
	// A limit, or a channel that refuses, is a sign of life.
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Error: "not_in_channel"})
	w.notify(alert{name: "TTFT", start: 5 * time.Minute})
	w.pass(21 * time.Second)
	status, _ = ready()
	require.Equal(t, http.StatusOK, status)

	w.server.Drain()
	status, answer = ready()
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "shutting down\n", answer)
	status, answer = w.get("/-/accepting")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "shutting down\n", answer)
	status, _ = w.get("/-/healthy")
	require.Equal(t, http.StatusOK, status, "it lives")
}

// The level of the log can be read and changed while the service runs, with credentials.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	status, _, _ := w.do(http.MethodPut, "/-/log-level", `{"level":"debug"}`)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, "info", w.level.String())
	status, _, _ = w.do(http.MethodPut, "/-/log-level", `{"level":"debug"}`, authorized)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "debug", w.level.String())
	status, _, _ = w.do(http.MethodPut, "/-/log-level", `{"level":"loud"}`, authorized)
	require.Equal(t, http.StatusBadRequest, status)
	status, answer := w.get("/-/log-level", authorized)
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"level":"debug"}`, answer)
}

// A reload is asked for with credentials. One that fails says why and leaves all as it is.
func TestReloadEndpoint(t *testing.T) {
	t.Parallel()
	var fails error
	loads := 0
	w := newWorld(t, setup{reload: func() error {
		loads++
		return fails
	}})
	status, _ := w.post("/-/reload", "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Zero(t, loads)
	status, _ = w.post("/-/reload", "", authorized)
	require.Equal(t, http.StatusOK, status)
	fails = errors.New("config.yaml: line 3: unknown key")
	status, answer := w.post("/-/reload", "", authorized)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Equal(t, "the old configuration stays in force:\nconfig.yaml: line 3: unknown key\n", answer)
	require.Equal(t, 2, loads)
}

// Requests have a name, which the log repeats; a name that could forge lines is not taken over.
func TestRequestID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	named := func(id string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X-Request-Id", id) }
	}
	_, _, h := w.do(http.MethodPost, "/webhook/alertmanager", string(notification(0, alert{name: "TTFT"})), authorized, named("abc-1"))
	require.Equal(t, "abc-1", h.Get("X-Request-Id"))
	require.Equal(t, "abc-1", w.logs.FilterMessage("incident opened").All()[0].ContextMap()["request_id"])
	_, _, h = w.do(http.MethodGet, "/-/healthy", "", named(`a" level=error msg="x`))
	require.Regexp(t, `^[0-9a-f]{16}$`, h.Get("X-Request-Id"))
}
