package failures_test

import (
	"bytes"
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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/config"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/kb/runbook"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	storetest.Stop()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const token = "0123456789abcdef"

// clock is the time plus what a test has skipped.
type clock struct{ skipped atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.skipped.Load())) }
func (c *clock) skip(d time.Duration) { c.skipped.Add(int64(d)) }

// world is what a service lives in. It outlives the service: a test can start another one in it.
type world struct {
	storage string
	slack   *fakeslack.Server
	api     string // Of the fake Slack.
	clock   *clock
	engine  server.Triager
	fake    *engine // The engine, unless a test brings another.
	// settings are added to the configuration.
	settings string
	// pictures lets the service upload charts.
	pictures bool
}

// newWorld returns a world with a workspace whose bot has some scopes; without any it has all.
func newWorld(t *testing.T, scopes ...string) *world {
	t.Helper()
	w := &world{storage: storetest.SQLite(t), clock: &clock{}, fake: &engine{}}
	w.engine = w.fake
	w.slack = fakeslack.New(fakeslack.Options{Token: "xoxb-secret", Scopes: scopes})
	api, stop, err := w.slack.Listen(t.Context())
	require.NoError(t, err)
	t.Cleanup(stop)
	w.api = api
	return w
}

// service is a running service.
type service struct {
	w       *world
	store   *store.Store
	server  *server.Server
	http    *httptest.Server
	metrics *prometheus.Registry
	logs    *observer.ObservedLogs
	stop    func() // Ends it as a shutdown does.
}

// start runs a service until the end of the test, or until stop.
func (w *world) start(t *testing.T) *service {
	t.Helper()
	return w.startWith(t)
}

// startWith is start with some sections of the configuration left to the world's settings.
func (w *world) startWith(t *testing.T, sections ...string) *service {
	t.Helper()
	text := w.settings + "\n"
	for section, settings := range map[string]string{
		"server":     `{external_url: "https://triage.example.org"}`,
		"webhook":    `{bearer_token: ` + token + `}`,
		"prometheus": `{url: "http://127.0.0.1:1"}`,
		"slack":      fmt.Sprintf(`{bot_token: xoxb-secret, api_url: %q, channel: %s, timeout: 2s}`, w.api+"/api/", fakeslack.DefaultChannel),
		"triage":     `{debounce: 0s, edit_interval: 0s, retriage: [], workers: 2}`,
	} {
		if !slices.Contains(sections, section) {
			text += section + ": " + settings + "\n"
		}
	}
	cfg, err := config.Parse([]byte(text), "", config.NoEnv)
	require.NoError(t, err)
	n, err := slack.New(slack.Config{
		Token: cfg.Slack.BotToken.Read, APIURL: cfg.Slack.APIURL, Timeout: time.Duration(cfg.Slack.Timeout), Pace: time.Millisecond,
	})
	require.NoError(t, err)
	s := &service{w: w, metrics: prometheus.NewRegistry()}
	s.store, err = store.Open(t.Context(), w.storage, store.Options{NoSync: true})
	require.NoError(t, err)
	core, logs := observer.New(zap.DebugLevel)
	s.logs = logs
	s.server, err = server.New(t.Context(), server.Options{
		Parts: &server.Parts{
			Config: cfg, Knowledge: kb.Default(), Runbooks: runbook.Default(), Engine: w.engine, Notifier: n, Pictures: w.pictures,
		},
		Store: s.store, Log: zap.New(core), Metrics: server.NewMetrics(s.metrics, "test"), Version: "test",
		Gatherer: s.metrics, Owner: t.Name() + time.Now().String(), Now: w.clock.now,
		ResponseHosts: []string{strings.TrimPrefix(w.api, "http://")},
	})
	require.NoError(t, err)
	s.http = httptest.NewServer(s.server.Handler())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.server.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		err := <-done
		s.http.Close()
		if !errors.Is(err, store.ErrClosed) { // Unless the test has closed the store.
			require.NoError(t, err)
		}
		require.NoError(t, s.store.Close())
	})
	t.Cleanup(s.stop)
	return s
}

// engine is a Triager that finds the same every time.
type engine struct {
	mu    sync.Mutex
	asked int
	tell  func(n int, in triage.Incident) triage.Report
}

func (e *engine) Triage(_ context.Context, in triage.Incident) (triage.Report, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	r := notifytest.KVLongerOutputs()
	if e.tell != nil {
		r = e.tell(e.asked, in)
	}
	r.GeneratedAt = in.Now
	r.Incident.ID, r.Incident.Status, r.Incident.Scope, r.Incident.Alerts = in.ID, in.Status, in.Scope, in.Alerts
	r.Incident.Truncated = in.Truncated
	return r, nil
}

func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// alert is one alert of a payload.
type alert struct {
	name, model string
	start, end  time.Time
	labels      map[string]string
	notes       map[string]string
}

// payload is a notification about alerts, as Alertmanager writes it. The group's status is "firing" when an alert is.
func payload(alerts ...alert) []byte {
	type item struct {
		Status       string            `json:"status"`
		Labels       map[string]string `json:"labels"`
		Annotations  map[string]string `json:"annotations"`
		StartsAt     time.Time         `json:"startsAt"`
		EndsAt       time.Time         `json:"endsAt"`
		GeneratorURL string            `json:"generatorURL"`
		Fingerprint  string            `json:"fingerprint"`
	}
	status := "resolved"
	var items []item
	for _, a := range alerts {
		x := item{Status: "resolved", Annotations: a.notes, StartsAt: a.start, EndsAt: a.end, Fingerprint: a.name + a.model}
		if a.end.IsZero() {
			x.Status, status = "firing", "firing"
		}
		x.Labels = map[string]string{"alertname": a.name, "model_name": a.model, "namespace": "llm", "severity": "warning"}
		maps.Copy(x.Labels, a.labels)
		items = append(items, x)
	}
	body, err := json.Marshal(map[string]any{
		"version": "4", "groupKey": "{}:{model_name=\"demo\"}", "receiver": "triage", "status": status, "alerts": items,
		"externalURL": "http://alertmanager", "truncatedAlerts": 0, "groupLabels": map[string]string{},
		"commonLabels": map[string]string{}, "commonAnnotations": map[string]string{},
	})
	if err != nil {
		panic(err) // Strings and times always marshal.
	}
	return body
}

// post sends a body to the webhook and returns the status and the answer.
func (s *service) post(t *testing.T, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+"/webhook/alertmanager", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(answer)
}

// deliver sends a notification that must be taken.
func (s *service) deliver(t *testing.T, alerts ...alert) {
	t.Helper()
	status, answer := s.post(t, payload(alerts...))
	require.Equal(t, http.StatusOK, status, answer)
}

// settled waits until nothing is left to do or to tell.
func (s *service) settled(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		// Jobs first: one that ends leaves something to tell.
		jobs, err := s.store.Jobs(t.Context())
		if err != nil {
			return false
		}
		for _, j := range jobs {
			if j.Kind == store.KindTriage {
				return false
			}
		}
		pending, err := s.store.PendingConversations(t.Context())
		return err == nil && len(pending) == 0
	}, 15*time.Second, 5*time.Millisecond)
}

// roots are the messages in the channel.
func (w *world) roots() []fakeslack.Message { return w.slack.Roots(fakeslack.DefaultChannel) }

// one returns the only message in the channel.
func (w *world) one(t *testing.T) fakeslack.Message {
	t.Helper()
	all := w.roots()
	require.Len(t, all, 1)
	return all[0]
}

// thread is what hangs below a message, by kind.
func (w *world) thread(m fakeslack.Message) map[string][]fakeslack.Message {
	out := map[string][]fakeslack.Message{}
	for _, reply := range w.slack.Thread(fakeslack.DefaultChannel, m.TS) {
		out[reply.Kind()] = append(out[reply.Kind()], reply)
	}
	return out
}

// shows says that a message's blocks hold a text.
func shows(t *testing.T, m fakeslack.Message, text string) {
	t.Helper()
	if !strings.Contains(string(m.Blocks), text) { // The blocks themselves are too long to be shown.
		t.Fatalf("%q is not in the message %q", text, m.Text)
	}
}

// calls counts the calls of a Slack method.
func (w *world) calls(method string) int {
	n := 0
	for _, c := range w.slack.Calls() {
		if c.Method == method {
			n++
		}
	}
	return n
}

// metric is the value of one series, such as `vllm_triage_lost_total{what="job"}`.
func (s *service) metric(t *testing.T, series string) float64 {
	t.Helper()
	name, _, _ := strings.Cut(series, "{")
	text, err := testutil.GatherAndFormat(s.metrics, expfmt.TypeTextPlain, name)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			var f float64
			_, err := fmt.Sscan(value, &f)
			require.NoError(t, err)
			return f
		}
	}
	t.Fatalf("there is no series %s", series)
	return 0
}

// contextWithStop is a context that a test ends by itself.
func contextWithStop(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	return ctx, stop
}
