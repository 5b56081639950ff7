package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/cmd/vllm-triage/server/sweep"
	"vllm-triage/config"
	"vllm-triage/notify"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/kb/runbook"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin is when the tests' stories begin.
var begin = time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)

const (
	token    = "webhook-token-0123456789"
	botToken = "xoxb-test-token"
	channel  = fakeslack.DefaultChannel
)

// The knowledge and the runbooks are read once for all tests: nothing changes them.
var (
	knowledge = sync.OnceValue(kb.Default)
	runbooks  = sync.OnceValue(runbook.Default)
)

// clock is the time of a story. Nothing but the test moves it.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = t
}

// world is a service with everything around it.
type world struct {
	t       testing.TB
	clock   *clock
	slack   *fakeslack.Server
	store   *store.Store
	server  *server.Server
	http    *httptest.Server
	metrics *prometheus.Registry
	logs    *observer.ObservedLogs
	level   zap.AtomicLevel
	parts   *server.Parts
	engine  *engine
	address string // Of the store.
}

// setup says what differs from the usual world. Sections replace those of the configuration.
type setup struct {
	sections map[string]string
	storage  string            // Empty: a new SQLite file.
	slack    fakeslack.Options // Now is set.
	chat     *fakeslack.Server // Used instead of a new one.
	notifier notify.Notifier   // Used instead of Slack's.
	triager  server.Triager    // Used instead of engine.
	alerts   sweep.Source      // Knows which alerts fire.
	ping     func(context.Context) error
	reload   func() error
	pictures bool
	open     bool
	clock    *clock
	owner    string
	pace     time.Duration
	timeouts server.Timeouts
	hosts    []string // Response URLs may lead there.
}

func newWorld(t testing.TB, o setup) *world {
	t.Helper()
	w := &world{t: t, clock: o.clock, engine: &engine{}, metrics: prometheus.NewRegistry(), slack: o.chat}
	if w.clock == nil {
		w.clock = &clock{at: begin}
	}
	if w.slack == nil {
		o.slack.Now = w.clock.now
		w.slack = fakeslack.New(o.slack)
	}
	api, stop, err := w.slack.Listen(t.Context())
	require.NoError(t, err)
	t.Cleanup(stop)
	sections := map[string]string{
		"server":     `{external_url: "https://triage.example.org"}`,
		"webhook":    `{bearer_token: ` + token + `}`,
		"prometheus": `{url: "http://127.0.0.1:1"}`,
		"slack":      fmt.Sprintf(`{bot_token: %s, api_url: "%s/api/", channel: %s}`, botToken, api, channel),
	}
	maps.Copy(sections, o.sections)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		fmt.Fprintf(&text, "%s: %s\n", name, strings.ReplaceAll(sections[name], "SLACK", api+"/api/"))
	}
	cfg, err := config.Parse([]byte(text.String()), "", config.NoEnv)
	require.NoError(t, err)
	if o.storage == "" {
		o.storage = storetest.SQLite(t)
	}
	w.address = o.storage
	w.store, err = store.Open(t.Context(), o.storage, store.Options{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	if o.notifier == nil && cfg.Slack.Enabled() {
		if o.pace == 0 {
			o.pace = time.Microsecond
		}
		o.notifier, err = slack.New(slack.Config{
			Token: cfg.Slack.BotToken.Read, APIURL: cfg.Slack.APIURL, Timeout: 5 * time.Second, Pace: o.pace,
			View: slack.View{Interactive: true, Charts: slack.TextCharts},
		})
		require.NoError(t, err)
	}
	if o.triager == nil {
		o.triager = w.engine
	}
	w.parts = &server.Parts{
		Config: cfg, Knowledge: knowledge(), Runbooks: runbooks(), Engine: o.triager, Notifier: o.notifier,
		Pictures: o.pictures, Alerts: o.alerts, Ping: o.ping,
	}
	core, logs := observer.New(zap.DebugLevel)
	w.logs, w.level = logs, zap.NewAtomicLevel()
	if o.owner == "" {
		o.owner = "replica-1"
	}
	w.server, err = server.New(t.Context(), server.Options{
		Parts: w.parts, Store: w.store, Log: zap.New(core), Metrics: server.NewMetrics(w.metrics, "test"), Version: "test",
		Gatherer: w.metrics, Owner: o.owner, Now: w.clock.now, Open: o.open, Reload: o.reload, Level: &w.level, Timeouts: o.timeouts, ResponseHosts: o.hosts,
	})
	require.NoError(t, err)
	w.http = httptest.NewServer(w.server.Handler())
	t.Cleanup(func() {
		w.http.Close()
		w.server.Close(context.WithoutCancel(t.Context()))
		http.DefaultClient.CloseIdleConnections()
	})
	return w
}

// settle does everything that is due now.
func (w *world) settle() {
	w.t.Helper()
	_, err := w.server.DoDue(w.t.Context())
	require.NoError(w.t, err)
}

// pass lets time go by and does everything at the time at which it becomes due, as the background loops do.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	end := w.clock.now().Add(d)
	w.settle()
	for w.clock.now().Before(end) {
		next := end
		for _, due := range []func(context.Context) (time.Time, error){w.store.NextJob, w.store.NextDelivery} {
			at, err := due(w.t.Context())
			require.NoError(w.t, err)
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if !next.After(w.clock.now()) {
			next = w.clock.now().Add(time.Second) // Due and not done: it is tried at the next look.
		}
		w.clock.set(next)
		w.settle()
	}
}

// jump lets time go by at once.
func (w *world) jump(d time.Duration) {
	w.t.Helper()
	w.clock.set(w.clock.now().Add(d))
	w.settle()
}

// engine is a Triager that finds the same cause while an incident fires and nothing once it is over, unless told otherwise.
type engine struct {
	mu    sync.Mutex
	asked []triage.Incident
	tell  func(n int, in triage.Incident) (triage.Report, error)
}

// Triage implements server.Triager.
func (e *engine) Triage(_ context.Context, in triage.Incident) (triage.Report, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, in)
	if e.tell != nil {
		r, err := e.tell(len(e.asked), in)
		return about(r, in), err
	}
	if in.Status == triage.StatusResolved {
		return about(over(), in), nil
	}
	return about(notifytest.KVLongerOutputs(), in), nil
}

func (e *engine) says(tell func(n int, in triage.Incident) (triage.Report, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tell = tell
}

func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

func (e *engine) last() triage.Incident {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[len(e.asked)-1]
}

// about makes a report one on an incident.
func about(r triage.Report, in triage.Incident) triage.Report {
	r.GeneratedAt = in.Now
	r.Incident.ID, r.Incident.Status, r.Incident.Scope, r.Incident.Alerts = in.ID, in.Status, in.Scope, in.Alerts
	r.Incident.Truncated, r.Incident.GroupKey = in.Truncated, in.GroupKey
	return r
}

// over is what is found once everything is well again: the same signals, other values.
func over() triage.Report {
	r := notifytest.KVLongerOutputs()
	r.Verdict = triage.NoBottleneck
	healthy := triage.Hypothesis{ID: "healthy", Probability: 0.97, Coverage: 1}
	for _, e := range r.Bottlenecks[0].Evidence {
		if e.During != nil {
			half := *e.During / 2
			e.During = &half
		}
		healthy.Evidence = append(healthy.Evidence, e)
	}
	r.Bottlenecks = []triage.Hypothesis{healthy}
	r.Triggers = []triage.Hypothesis{{ID: "none", Probability: 0.9}}
	return r
}

// alert is one alert of a notification.
type alert struct {
	name   string
	model  string // Empty: demo.
	start  time.Duration
	end    time.Duration // 0: it fires.
	labels map[string]string
	expr   string
}

func (a alert) json() map[string]any {
	if a.model == "" {
		a.model = "demo"
	}
	out := map[string]any{
		"status": "firing", "startsAt": begin.Add(a.start), "endsAt": time.Time{}, "fingerprint": "fp-" + a.name + "-" + a.model,
		"annotations": map[string]string{}, "generatorURL": "http://prometheus:9090/graph?g0.expr=" + a.expr,
	}
	if a.end != 0 {
		out["status"], out["endsAt"] = "resolved", begin.Add(a.end)
	}
	labels := map[string]string{"alertname": a.name, "model_name": a.model, "namespace": "llm", "severity": "warning"}
	maps.Copy(labels, a.labels)
	maps.DeleteFunc(labels, func(_, v string) bool { return v == "" })
	out["labels"] = labels
	return out
}

// notification is a webhook's body. Its status is that of Alertmanager's group: firing while one alert is.
func notification(truncated int, alerts ...alert) []byte {
	status := "resolved"
	items := []map[string]any{}
	for _, a := range alerts {
		if a.end == 0 {
			status = "firing"
		}
		items = append(items, a.json())
	}
	body, err := json.Marshal(map[string]any{
		"version": "4", "groupKey": `{}:{}`, "receiver": "triage", "status": status, "alerts": items,
		"externalURL": "http://alertmanager:9093", "truncatedAlerts": truncated,
	})
	if err != nil {
		panic(err) // Strings and times always marshal.
	}
	return body
}

// notify posts a notification that must be taken.
func (w *world) notify(alerts ...alert) {
	w.t.Helper()
	w.deliver(notification(0, alerts...))
}

func (w *world) deliver(body []byte) {
	w.t.Helper()
	status, answer := w.post("/webhook/alertmanager", string(body), authorized)
	require.Equal(w.t, http.StatusOK, status, answer)
}

func authorized(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }

func (w *world) post(path, body string, with ...func(*http.Request)) (status int, answer string) {
	w.t.Helper()
	status, answer, _ = w.do(http.MethodPost, path, body, with...)
	return status, answer
}

func (w *world) get(path string, with ...func(*http.Request)) (status int, answer string) {
	w.t.Helper()
	status, answer, _ = w.do(http.MethodGet, path, "", with...)
	return status, answer
}

// do makes a request and follows no redirect.
func (w *world) do(method, path, body string, with ...func(*http.Request)) (int, string, http.Header) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, bytes.NewReader([]byte(body)))
	require.NoError(w.t, err)
	for _, f := range with {
		f(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return resp.StatusCode, string(answer), resp.Header
}

// incident is the only incident there is.
func (w *world) incident() store.Incident {
	w.t.Helper()
	all, err := w.store.Incidents(w.t.Context(), store.Filter{})
	require.NoError(w.t, err)
	require.Len(w.t, all, 1)
	return all[0]
}

// card is the only message in the channel.
func (w *world) card() fakeslack.Message {
	w.t.Helper()
	require.Len(w.t, w.roots(), 1)
	roots := w.slack.Roots(channel)
	require.Equal(w.t, string(notify.KindCard), roots[0].Kind())
	return roots[0]
}

// thread lists the kinds of the replies to the card.
func (w *world) thread() []string {
	w.t.Helper()
	var kinds []string
	for _, m := range w.slack.Thread(channel, w.card().TS) {
		kind := m.Kind()
		if len(m.Files) > 0 {
			kind = "picture"
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// replies are the texts of the replies of a kind.
func (w *world) replies(kind notify.Kind) []string {
	w.t.Helper()
	var out []string
	for _, m := range w.slack.Thread(channel, w.card().TS) {
		if m.Kind() == string(kind) {
			out = append(out, said(m))
		}
	}
	return out
}

// said is all that a message shows.
func said(m fakeslack.Message) string { return shown(m.Text, m.Blocks) }

func shown(text string, blocks json.RawMessage) string {
	var tree any
	if json.Unmarshal(blocks, &tree) != nil {
		return text
	}
	lines := []string{text}
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case []any:
			for _, e := range x {
				walk(e)
			}
		case map[string]any:
			if s, ok := x["text"].(string); ok {
				lines = append(lines, s)
			}
			for _, k := range slices.Sorted(maps.Keys(x)) {
				walk(x[k])
			}
		}
	}
	walk(tree)
	return strings.Join(lines, "\n")
}

// roots are the texts of the messages in the channel.
func (w *world) roots() []string {
	var out []string
	for _, m := range w.slack.Roots(channel) {
		out = append(out, m.Text)
	}
	return out
}

// posts counts the messages of a kind that were sent, deleted ones too.
func (w *world) posts(k notify.Kind) int {
	n := 0
	for _, c := range w.slack.Calls() {
		if c.Method == "chat.postMessage" && c.Kind == string(k) && c.Error == "" {
			n++
		}
	}
	return n
}

// holds is a source of alerts that holds none: all are over.
type holds struct {
	mu    sync.Mutex
	asked []string
}

// Ask implements sweep.Source.
func (h *holds) Ask(_ context.Context, alerts []triage.Alert, _ time.Time) ([]sweep.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]sweep.Answer, len(alerts))
	for i, a := range alerts {
		h.asked = append(h.asked, a.Fingerprint)
		out[i] = sweep.Over
	}
	return out, nil
}

// calls counts the calls of a method, failed ones too.
func (w *world) calls(method string) int {
	n := 0
	for _, c := range w.slack.Calls() {
		if c.Method == method {
			n++
		}
	}
	return n
}

// metric is the value of one series, such as `vllm_triage_lost_total{what="expired"}`.
func (w *world) metric(series string) float64 {
	w.t.Helper()
	name, rest, _ := strings.Cut(series, "{")
	families, err := w.metrics.Gather()
	require.NoError(w.t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			if strings.TrimSuffix(rest, "}") == strings.Join(labels, ",") {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	require.Fail(w.t, "no such series", series)
	return 0
}

func TestMetricsAreWellNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.metrics.MustRegister(server.NewStoreCollector(w.store, zap.NewNop()))
	problems, err := testutil.GatherAndLint(w.metrics)
	require.NoError(t, err)
	require.Empty(t, problems)
}
