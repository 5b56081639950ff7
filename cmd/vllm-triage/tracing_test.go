package main

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/config"
	"vllm-triage/promq/promqtest"
	"vllm-triage/triage/store"
)

// receiver takes traces as an OpenTelemetry collector does.
type receiver struct {
	mu    sync.Mutex
	spans []*otlp.Span
	names map[string]string // Of the service, by key.
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	raw, err := io.ReadAll(body)
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(raw, &sent)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "not traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range sent.GetResourceSpans() {
		for _, a := range resource.GetResource().GetAttributes() {
			c.names[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// named are the spans with a name.
func (c *receiver) named(name string) []*otlp.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*otlp.Span
	for _, s := range c.spans {
		if s.GetName() == name {
			out = append(out, s)
		}
	}
	return out
}

// A webhook and the triage after it arrive at a collector: the webhook in the trace of its caller, the triage with its stages
// and each query below them. No secret is among them.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := &receiver{names: map[string]string{}}
	endpoint := httptest.NewServer(c)
	defer endpoint.Close()
	p := promqtest.Load(t, `load 15s
  vllm:num_requests_running{model_name="demo",instance="a"} 1x80
`, promqtest.StartAt(time.Now().Add(-20*time.Minute)))
	const token = "0123456789abcdef"
	cfg, err := config.Parse([]byte("prometheus: {url: '"+p.URL()+"'}\nwebhook: {bearer_token: "+token+"}\n"+
		"tracing: {endpoint: '"+endpoint.URL+"'}\n"), "", config.NoEnv)
	require.NoError(t, err)
	parts, err := assemble(cfg)
	require.NoError(t, err)
	st, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "s.db"), store.Options{NoSync: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	traces, err := newTracing(t.Context(), cfg.Tracing, "replica-1", zap.NewNop())
	require.NoError(t, err)
	now := time.Now()
	s, err := server.New(t.Context(), server.Options{
		Parts: parts, Store: st, Metrics: server.NewMetrics(prometheus.NewRegistry(), "test"), Owner: "replica-1",
		Tracing: traces.provider, Now: func() time.Time { return now },
	})
	require.NoError(t, err)

	body := `{"version":"4","groupKey":"{}:{}","receiver":"r","status":"firing","alerts":[{"status":"firing","fingerprint":"a",` +
		`"startsAt":"` + now.Add(-time.Minute).UTC().Format(time.RFC3339) + `","labels":{"alertname":"A","model_name":"demo"}}]}`
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhook/alertmanager", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+token)
	const caller = "4bf92f3577b34da6a3ce929d0e0e4736"
	req.Header.Set("Traceparent", "00-"+caller+"-00f067aa0ba902b7-01")
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, req)
	require.Equal(t, http.StatusOK, answer.Code)
	now = now.Add(time.Minute)
	_, err = s.DoDue(t.Context())
	require.NoError(t, err)
	traces.stop()

	require.Equal(t, "vllm-triage", c.names["service.name"])
	require.Equal(t, "replica-1", c.names["service.instance.id"])
	webhook, job := c.named("webhook"), c.named("triage")
	require.Len(t, webhook, 1)
	require.Equal(t, caller, trace.TraceID(webhook[0].GetTraceId()).String())
	require.Len(t, job, 1)
	for _, name := range []string{"plan", "observe", "weigh", "report"} {
		stage := c.named(name)
		require.Len(t, stage, 1, name)
		require.Equal(t, job[0].GetSpanId(), stage[0].GetParentSpanId(), name)
	}
	queries := c.named("query")
	require.Greater(t, len(queries), 10)
	for _, q := range queries {
		require.Equal(t, job[0].GetTraceId(), q.GetTraceId())
	}
	require.NotContains(t, prototext(c.spans), token)
}

// prototext is all that spans say.
func prototext(spans []*otlp.Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.String())
	}
	return b.String()
}

// Without an endpoint there is nothing; a collector that is away delays the end by a bounded time and fails nothing.
func TestTracingIsOptional(t *testing.T) {
	t.Parallel()
	none, err := newTracing(t.Context(), config.Tracing{Sample: 1}, "x", zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, none.provider)
	none.stop()
	away, err := newTracing(t.Context(), config.Tracing{Endpoint: config.NewAddress("http://127.0.0.1:1"), Sample: 1}, "x", zap.NewNop())
	require.NoError(t, err)
	_, span := away.provider.Tracer("x").Start(t.Context(), "x")
	span.End()
	away.stop()
}
