package chatops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/notify"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq"
	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/kb/runbook"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const (
	token   = "xoxb-canary-token-of-the-test"
	secret  = "canary-signing-secret"
	kim     = "U0KIM" // Speaks Korean, lives in Seoul.
	ann     = "U0ANN" // Speaks English, lives in New York.
	bob     = "U0BOB" // Slack knows nothing of him.
	channel = fakeslack.DefaultChannel
	incID   = "inc-1"
)

// knowledge and books are loaded once: they are read-only.
var (
	knowledge = sync.OnceValue(kb.Default)
	books     = runbook.Default
)

// engine answers with a report and remembers what it was asked.
type engine struct {
	mu     sync.Mutex
	asked  []triage.Incident
	report triage.Report
	err    error
	hold   chan struct{} // When set, answers wait until it is closed.
}

func (e *engine) Triage(ctx context.Context, in triage.Incident) (triage.Report, error) {
	e.mu.Lock()
	e.asked = append(e.asked, in)
	r, err, hold := e.report, e.err, e.hold
	e.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return triage.Report{}, ctx.Err()
		}
	}
	r.GeneratedAt = in.Now
	r.Incident.ID, r.Incident.Status, r.Incident.Scope = in.ID, in.Status, in.Scope
	return r, err
}

func (e *engine) questions() []triage.Incident {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

func (e *engine) set(f func(*engine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e)
}

// models is a source of models that can fail or hang.
type models struct {
	mu   sync.Mutex
	list []chatops.Model
	err  error
	hang bool
	n    int
}

func (m *models) Models(ctx context.Context, _ time.Time) ([]chatops.Model, error) {
	m.mu.Lock()
	m.n++
	list, err, hang := slices.Clone(m.list), m.err, m.hang
	m.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return list, err
}

// silencer is an Alertmanager in memory.
type silencer struct {
	mu    sync.Mutex
	list  []alertmanager.Silence
	fail  error
	slow  chan struct{} // When set, making a silence waits for it.
	made  int
	ended int
}

func (s *silencer) CreateSilence(
	_ context.Context, ms []alertmanager.Matcher, start, end time.Time, by, comment string,
) (string, error) {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	if slow != nil {
		<-slow
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return "", s.fail
	}
	s.made++
	id := fmt.Sprintf("silence-%d", s.made)
	s.list = append(s.list, alertmanager.Silence{
		ID: id, State: alertmanager.StateActive, Matchers: ms, StartsAt: start, EndsAt: end, CreatedBy: by, Comment: comment,
	})
	return id, nil
}

func (s *silencer) ListSilences(_ context.Context, active bool, tag string) ([]alertmanager.Silence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	var out []alertmanager.Silence
	for _, x := range s.list {
		if strings.HasPrefix(x.Comment, tag) && (!active || x.State == alertmanager.StateActive) {
			out = append(out, x)
		}
	}
	return out, nil
}

func (s *silencer) ExpireSilence(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for i, x := range s.list {
		if x.ID == id && x.State == alertmanager.StateActive {
			s.list[i].State = alertmanager.StateExpired
			s.ended++
			return nil
		}
		if x.ID == id {
			return &alertmanager.Error{Kind: alertmanager.Expired, Op: "expire silence", Err: errors.New("over")}
		}
	}
	return &alertmanager.Error{Kind: alertmanager.NotFound, Op: "expire silence", Err: errors.New("unknown")}
}

func (s *silencer) silences() []alertmanager.Silence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// counters remember what was counted.
type counters struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counters) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key]++
}

func (c *counters) get(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key]
}

func (c *counters) Rejected(e chatops.Endpoint, r chatops.Rejection) {
	c.add(string(e) + "/" + string(r))
}
func (c *counters) Handled(a chatops.Act, o chatops.Outcome) { c.add(string(a) + "/" + string(o)) }
func (c *counters) Answered(ok bool)                         { c.add(fmt.Sprint("answered/", ok)) }

// faulty is a store that can be told to fail.
type faulty struct {
	*store.Store
	err atomic.Pointer[error]
}

func (f *faulty) failing() error {
	if e := f.err.Load(); e != nil {
		return *e
	}
	return nil
}

func (f *faulty) Incident(ctx context.Context, id string) (store.Incident, []triage.Alert, error) {
	if err := f.failing(); err != nil {
		return store.Incident{}, nil, err
	}
	return f.Store.Incident(ctx, id)
}

func (f *faulty) Incidents(ctx context.Context, x store.Filter) ([]store.Incident, error) {
	if err := f.failing(); err != nil {
		return nil, err
	}
	return f.Store.Incidents(ctx, x)
}

func (f *faulty) Feedback(ctx context.Context, id string) ([]store.Feedback, error) {
	if err := f.failing(); err != nil {
		return nil, err
	}
	return f.Store.Feedback(ctx, id)
}

// profile is what Slack knows of a person.
type profile struct{ name, zone, locale string }

// world is a workspace with the service in it.
type world struct {
	t        *testing.T
	fake     *fakeslack.Server
	slack    *httptest.Server
	app      *httptest.Server
	service  *chatops.Service
	store    *faulty
	engine   *engine
	models   *models
	silencer *silencer
	counts   *counters
	logs     *observer.ObservedLogs
	settings *chatops.Settings
	// ahead is how much the service's clock is ahead of Slack's.
	ahead   atomic.Int64
	submits atomic.Int64

	mu      sync.Mutex
	people  map[string]profile
	groups  map[string][]string                // nil members: the call fails.
	asked   map[string]int                     // Calls of users.info and usergroups.users.list.
	hang    map[string]bool                    // Methods that do not answer.
	connect func(*http.Request) map[string]any // Answers apps.connections.open.
}

// newWorld makes a workspace. change may change settings and configuration.
func newWorld(t *testing.T, change ...func(*chatops.Settings, *chatops.Config)) *world {
	t.Helper()
	w := &world{
		t: t, fake: fakeslack.New(fakeslack.Options{Token: token}),
		engine: &engine{report: notifytest.KVLongerOutputs()}, silencer: &silencer{}, counts: &counters{},
		models: &models{list: []chatops.Model{{Name: "llama", Namespace: "prod", Replicas: 3}}},
		people: map[string]profile{
			kim: {"김민지", "Asia/Seoul", "ko-KR"}, ann: {"Ann", "America/New_York", "en-US"},
		},
		groups: map[string][]string{}, asked: map[string]int{}, hang: map[string]bool{},
	}
	w.slack = httptest.NewServer(http.HandlerFunc(w.serveSlack))
	w.store = &faulty{Store: storetest.Open(t, storetest.SQLite(t))}
	core, logs := observer.New(zap.DebugLevel)
	w.logs = logs
	w.settings = &chatops.Settings{
		Engine: w.engine, Knowledge: knowledge(), Runbooks: books(), Models: w.models, Silencer: w.silencer, Language: "en",
		Zone:    time.UTC,
		Message: notify.Options{BaseURL: "https://triage.example.org", PrometheusURL: "https://prometheus.example.org"},
	}
	c := chatops.Config{
		Store: w.store,
		Token: func() (string, error) { return token, nil }, SigningSecret: func() (string, error) { return secret, nil },
		APIURL: w.slack.URL + "/api/", Timeout: 5 * time.Second, ResponseHosts: []string{strings.TrimPrefix(w.slack.URL, "http://")},
		Metrics: w.counts, Log: zap.New(core), Now: w.now,
	}
	for _, f := range change {
		f(w.settings, &c)
	}
	c.Settings = func() chatops.Settings { return *w.settings }
	var err error
	w.service, err = chatops.New(c)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("/slack/commands", w.service.Slash)
	mux.HandleFunc("/slack/interactions", w.service.Interactivity)
	mux.HandleFunc("/slack/events", w.service.Events)
	w.app = httptest.NewServer(mux)
	t.Cleanup(func() {
		w.app.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, w.service.Close(ctx))
		w.fake.Close()
		w.slack.Close()
		require.Empty(t, w.fake.Violations(), "everything is escaped")
		for _, l := range w.logs.All() {
			line := fmt.Sprint(l.Message, l.ContextMap())
			require.NotContains(t, line, "canary", "secrets never print")
			require.NotContains(t, line, "/response/", "response URLs are secrets")
			require.NotEqual(t, "panic", l.Message, line)
		}
	})
	return w
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// serveSlack answers what the fake does not know, and hands the rest to it.
func (w *world) serveSlack(rw http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	w.mu.Lock()
	w.asked[method]++
	hang, connect := w.hang[method], w.connect
	w.mu.Unlock()
	reply := func(v any) { _ = json.NewEncoder(rw).Encode(v) }
	switch {
	case hang:
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	case method == "apps.connections.open" && connect != nil:
		reply(connect(r))
	case method == "users.info":
		w.mu.Lock()
		p, ok := w.people[r.FormValue("user")]
		w.mu.Unlock()
		if !ok {
			reply(map[string]any{"ok": false, "error": "user_not_found"})
			return
		}
		reply(map[string]any{"ok": true, "user": map[string]any{
			"id": r.FormValue("user"), "name": "x", "tz": p.zone, "tz_offset": 3600, "locale": p.locale,
			"profile": map[string]any{"display_name": p.name},
		}})
	case method == "usergroups.users.list":
		w.mu.Lock()
		users := w.groups[r.FormValue("usergroup")]
		w.mu.Unlock()
		if users == nil {
			reply(map[string]any{"ok": false, "error": "missing_scope", "needed": "usergroups:read"})
			return
		}
		reply(map[string]any{"ok": true, "users": users})
	default:
		w.fake.ServeHTTP(rw, r)
	}
}

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) calls(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[method]
}

// do sends a request of Slack and returns the answer. Slack waits three seconds.
func (w *world) do(r *http.Request, err error) (status int, body string) {
	w.t.Helper()
	require.NoError(w.t, err)
	began := time.Now()
	resp, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	require.Less(w.t, time.Since(began), 3*time.Second, "Slack does not wait longer")
	return resp.StatusCode, string(data)
}

// slash types a command and returns what is answered at once.
func (w *world) slash(user, text string) string {
	w.t.Helper()
	status, body := w.do(w.fake.SlashRequest(w.t.Context(), w.app.URL+"/slack/commands", secret, w.slack.URL, channel, user,
		"/vllm-triage", text))
	require.Equal(w.t, http.StatusOK, status, body)
	if body == "" {
		return ""
	}
	var ack struct {
		Type   string          `json:"response_type"`
		Text   string          `json:"text"`
		Blocks json.RawMessage `json:"blocks"`
	}
	require.NoError(w.t, json.Unmarshal([]byte(body), &ack), body)
	require.Equal(w.t, "ephemeral", ack.Type)
	code, problems := fakeslack.Validate(ack.Blocks)
	require.Empty(w.t, code, problems)
	require.Empty(w.t, fakeslack.ReadMarkup(ack.Text, ack.Blocks).Violations)
	return ack.Text
}

// press presses a button or chooses from a menu.
func (w *world) press(user, ts, action, value, option string) {
	w.t.Helper()
	status, body := w.do(w.fake.InteractionRequest(w.t.Context(), w.app.URL+"/slack/interactions", secret, w.slack.URL,
		fakeslack.Press{Channel: channel, TS: ts, User: user, ActionID: action, Value: value, Option: option}))
	require.Equal(w.t, http.StatusOK, status, body)
	require.Empty(w.t, body)
}

// submit submits the last modal and returns what is answered.
func (w *world) submit(user, cause, comment string) string {
	w.t.Helper()
	views := w.fake.Views()
	require.NotEmpty(w.t, views)
	values := map[string]map[string]any{"comment": {"comment": map[string]any{"type": "plain_text_input", "value": comment}}}
	if cause != "" {
		values["cause"] = map[string]any{"cause": map[string]any{
			"type": "static_select", "selected_option": map[string]any{"value": cause},
		}}
	}
	v := views[len(views)-1]
	v.Hash += strconv.FormatInt(w.submits.Add(1), 10) // No two requests of Slack are the same.
	status, body := w.do(w.fake.SubmitRequest(w.t.Context(), w.app.URL+"/slack/interactions", secret, user, v, values))
	require.Equal(w.t, http.StatusOK, status, body)
	return body
}

// eventually polls until something holds.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s\nephemeral: %v\nlogs: %v", what, texts(w.fake.Ephemeral(channel)), w.logs.All())
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatal(context.Cause(w.t.Context()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func texts(ms []fakeslack.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.To+": "+m.Text)
	}
	return out
}

// private waits for the n-th message that only one person sees, and returns it.
func (w *world) private(n int, user string) fakeslack.Message {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d private answers", n), func() bool { return len(w.fake.Ephemeral(channel)) >= n })
	m := w.fake.Ephemeral(channel)[n-1]
	require.Equal(w.t, user, m.To)
	return m
}

// counted waits until something was counted that often: then all of it has been done.
func (w *world) counted(key string, n int) {
	w.t.Helper()
	w.eventually(key, func() bool { return w.counts.get(key) >= n })
	require.Equal(w.t, n, w.counts.get(key), key)
}

// open makes a firing incident about a model, with a report and a conversation, and the card in the channel; it returns the
// card's ts.
func (w *world) open(id string, report triage.Report, alerts ...triage.Alert) string {
	w.t.Helper()
	ctx, now := w.t.Context(), time.Now()
	if len(alerts) == 0 {
		alerts = []triage.Alert{alert("VLLMHighTTFT", map[string]string{"model_name": "llama", "namespace": "prod", "pod": "vllm-0"})}
	}
	_, err := w.store.Intake(ctx, store.Delivery{Key: id, Received: now, Incidents: []triage.Incident{{
		ID: id, GroupKey: "g", Receiver: "triage", Status: triage.StatusFiring, Now: now,
		Scope:  triage.Scope{Model: alerts[0].Labels["model_name"], Namespace: alerts[0].Labels["namespace"]},
		Alerts: alerts,
	}}}, store.Policy{FlapWindow: time.Minute, DuplicateWindow: time.Minute})
	require.NoError(w.t, err)
	w.report(id, report, triage.StatusFiring)
	return w.fake.Say(channel, fakeslack.BotUser, "the card")
}

// report stores a report on an incident.
func (w *world) report(id string, r triage.Report, status string) {
	w.t.Helper()
	ctx := w.t.Context()
	require.NoError(w.t, w.store.Enqueue(ctx, store.KindTriage, id, "test", time.Now().Add(-time.Hour)))
	j, found, err := w.store.Claim(ctx, "test", time.Now(), time.Minute)
	require.NoError(w.t, err)
	require.True(w.t, found)
	require.Equal(w.t, id, j.IncidentID)
	r.Incident.Status = status
	_, err = w.store.FinishTriage(ctx, j, store.Result{Report: r, Targets: []store.Target{{Channel: channel}}}, time.Now())
	require.NoError(w.t, err)
}

// resolve ends the incident.
func (w *world) resolve() {
	w.t.Helper()
	const id = incID
	in, alerts, err := w.store.Store.Incident(w.t.Context(), id)
	require.NoError(w.t, err)
	for i := range alerts {
		alerts[i].Status, alerts[i].EndsAt = triage.StatusResolved, time.Now()
	}
	_, err = w.store.Intake(w.t.Context(), store.Delivery{Key: id + "-end", Received: time.Now(), Incidents: []triage.Incident{{
		ID: id, GroupKey: "g", Receiver: "triage", Status: triage.StatusResolved, Now: time.Now(), Scope: in.Scope, Alerts: alerts,
	}}}, store.Policy{FlapWindow: time.Minute, DuplicateWindow: time.Minute})
	require.NoError(w.t, err)
}

func alert(name string, labels map[string]string) triage.Alert {
	l := map[string]string{"alertname": name}
	maps.Copy(l, labels)
	return triage.Alert{
		Fingerprint: fmt.Sprintf("%x", name+fmt.Sprint(labels)), Name: name, Status: triage.StatusFiring, Labels: l,
		StartsAt: time.Now().Add(-10 * time.Minute).UTC(),
	}
}

// notes are the lines that wait for the incident's threads.
func (w *world) notes() []notify.Message {
	w.t.Helper()
	const id = incID
	conversations, err := w.store.Conversations(w.t.Context(), id)
	require.NoError(w.t, err)
	var out []notify.Message
	for _, c := range conversations {
		for _, p := range c.Posts {
			if !strings.HasPrefix(p.Part, "note-") {
				continue
			}
			var m notify.Message
			require.NoError(w.t, json.Unmarshal(p.Body, &m))
			require.Equal(w.t, notify.KindNote, m.Kind)
			require.Equal(w.t, id, m.IncidentID)
			out = append(out, m)
		}
	}
	return out
}

// buttonsOf are the buttons of a message: action id and value.
func buttonsOf(t *testing.T, m fakeslack.Message) map[string]string {
	t.Helper()
	var blocks []struct {
		Type     string `json:"type"`
		Elements []struct {
			ActionID string          `json:"action_id"`
			Value    string          `json:"value"`
			Confirm  json.RawMessage `json:"confirm"`
		} `json:"elements"`
	}
	require.NoError(t, json.Unmarshal(m.Blocks, &blocks))
	out := map[string]string{}
	for _, b := range blocks {
		if b.Type != "actions" {
			continue
		}
		for _, e := range b.Elements {
			out[e.ActionID] = e.Value
			if strings.HasPrefix(e.ActionID, "expire") {
				require.NotEmpty(t, e.Confirm, "ending a silence is confirmed")
			}
		}
	}
	return out
}

// newFuzzWorld is a service without a workspace: Slack refuses every call.
func newFuzzWorld(f *testing.F) http.Handler {
	f.Helper()
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ok":false,"error":"fatal_error"}`)
	}))
	e := &engine{report: notifytest.Healthy()}
	service, err := chatops.New(chatops.Config{
		Settings: func() chatops.Settings {
			return chatops.Settings{Engine: e, Knowledge: knowledge(), Silencer: &silencer{}, Language: "ko"}
		},
		Store: &faulty{Store: storetest.Open(f, storetest.SQLite(f))}, APIURL: slack.URL + "/api/",
		Token: func() (string, error) { return token, nil }, SigningSecret: func() (string, error) { return secret, nil },
	})
	require.NoError(f, err)
	f.Cleanup(func() {
		require.NoError(f, service.Close(context.WithoutCancel(f.Context())))
		slack.Close()
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/slack/commands", service.Slash)
	mux.HandleFunc("/slack/interactions", service.Interactivity)
	mux.HandleFunc("/slack/events", service.Events)
	return mux
}

func promqtestServer(t *testing.T, notation string) *promq.Client {
	t.Helper()
	return promqtest.Load(t, notation).Client()
}
