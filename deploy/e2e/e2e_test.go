//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq/programtest"
)

const (
	model = "demo-7b"
	token = "e2e-0123456789abcdef"

	// Tokens that clients want of an answer, before and after one of them forgets max_tokens.
	shortAnswer, longAnswer = 100, 2000
)

// calm is how long the server works before anything happens. The engine calls less than 45 s before the onset no baseline,
// and the programs need some seconds to start.
const calm = 80 * time.Second

// TestAlertBecomesMessageAndResolves lets a server run out of KV cache because answers grow, and follows the alert from the
// rule to Slack and back.
func TestAlertBecomesMessageAndResolves(t *testing.T) {
	vllm := startServer(t)
	slack := fakeslack.New(fakeslack.Options{Token: "xoxb-e2e"})
	slackURL, stopSlack, err := slack.Listen(t.Context())
	require.NoError(t, err)
	t.Cleanup(stopSlack)
	s := startStack(t, vllm.address, slackURL)

	t.Log("calm: a baseline, the heartbeat, no alert about vLLM")
	eventually(t, 30*time.Second, "the heartbeat arrives", func() bool {
		return s.metric(t, "vllm_triage_heartbeat_last_received_timestamp_seconds") > 0
	})
	vllm.run(t, calm)
	require.Empty(t, s.incidents(t), "nothing is wrong yet")
	require.Empty(t, slack.Roots(fakeslack.DefaultChannel))

	t.Log("answers grow twentyfold")
	vllm.ask(longAnswer)
	eventually(t, 90*time.Second, "a message", func() bool { return len(slack.Roots(fakeslack.DefaultChannel)) > 0 })
	eventually(t, 60*time.Second, "the cause is found", func() bool {
		all := s.incidents(t)
		return len(all) == 1 && all[0].Verdict == "cause_found" && all[0].Bottleneck == "kv_cache_exhaustion"
	})
	incident := s.incidents(t)[0]
	require.Equal(t, "longer_outputs", incident.Trigger, "the report: %s", s.get(t, "/api/v1/incidents/"+incident.ID))
	require.Equal(t, model, incident.Scope.Model)
	require.Equal(t, "firing", incident.Status)
	eventually(t, 20*time.Second, "the message tells the cause", func() bool {
		return strings.Contains(whole(slack.Roots(fakeslack.DefaultChannel)[0]), "KV cache")
	})

	t.Log("the clients with the long answers leave")
	vllm.ask(shortAnswer)
	vllm.leave(2 * shortAnswer)
	eventually(t, 90*time.Second, "the incident resolves", func() bool { return s.incidents(t)[0].Status == "resolved" })
	eventually(t, 30*time.Second, "the message says so", func() bool {
		return strings.Contains(slack.Roots(fakeslack.DefaultChannel)[0].Text, "Resolved")
	})

	roots := slack.Roots(fakeslack.DefaultChannel)
	require.Len(t, roots, 1, "one incident, one message")
	require.NotEmpty(t, roots[0].Edits, "kept up to date by edits")
	require.NotEmpty(t, slack.Thread(fakeslack.DefaultChannel, roots[0].TS), "with its evidence in the thread")
	require.Empty(t, slack.Violations(), "Slack would have refused something")
	require.Len(t, s.incidents(t), 1)

	t.Log("what Prometheus sees of the service")
	require.Positive(t, s.query(t, `up{job="vllm-triage"}`))
	eventually(t, 10*time.Second, "webhooks are counted", func() bool {
		return s.query(t, `sum(vllm_triage_webhook_requests_total{result="accepted"})`) >= 3
	})
	require.Zero(t, s.query(t, `sum(vllm_triage_lost_total)`))
	require.Zero(t, s.query(t, `count(ALERTS{alertname=~"VLLMTriage.+", alertname!="VLLMTriageHeartbeat", alertstate="firing"}) or vector(0)`))
}

// whole is all the text of a message.
func whole(m fakeslack.Message) string { return m.Text + string(m.Blocks) }

// server is the simulated vLLM behind HTTP, in real time.
type server struct {
	*engine
	address string // host:port
	began   time.Time
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{engine: newEngine(model, shortAnswer), began: time.Now()}
	metrics := s.handler()
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.advance(time.Since(s.began)) // Whoever looks sees the present.
		metrics.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	s.address = strings.TrimPrefix(listener.URL, "http://")
	return s
}

// run lets the server work until it has been up for a time.
func (s *server) run(t *testing.T, uptime time.Duration) {
	t.Helper()
	eventually(t, uptime, "the server has run", func() bool { return time.Since(s.began) >= uptime })
}

// stack is Prometheus, Alertmanager and the service.
type stack struct{ prometheus, service string }

// startStack starts the three from the files that are shipped, with the times shortened.
func startStack(t *testing.T, vllm, slack string) *stack {
	t.Helper()
	dir := t.TempDir()
	address := map[string]string{}
	for _, name := range []string{"prometheus", "alertmanager", "service"} {
		address[name] = programtest.FreeAddress(t)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "webhook-token"), []byte(token+"\n"), 0o600))

	binary := filepath.Join(dir, "vllm-triage")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "vllm-triage/cmd/vllm-triage").CombinedOutput()
	require.NoError(t, err, "%s", out)
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
server: {listen: %q}
webhook: {bearer_token_file: webhook-token}
storage: "sqlite:%s/triage.db"
prometheus: {url: "http://%s"}
alertmanager: {url: "http://%s"}
slack: {bot_token: xoxb-e2e, api_url: "%s/api/", channel: %s}
triage: {debounce: 3s, edit_interval: 1s, retriage: [10s, 20s, 40s]}
log: {format: console}
`, address["service"], dir, address["prometheus"], address["alertmanager"], slack, fakeslack.DefaultChannel), 0o600))
	start(t, binary, "check", "--config", config).wait(t)
	start(t, binary, "serve", "--config", config)
	eventually(t, 10*time.Second, "the service is ready", func() bool { return programtest.Answers(t, "http://"+address["service"]+"/-/ready") })

	manager := filepath.Join(dir, "alertmanager.yml")
	adapted(t, "../alertmanager/alertmanager.yml", manager,
		"http://vllm-triage:9099", "http://"+address["service"],
		"/etc/alertmanager/secrets/webhook-token", filepath.Join(dir, "webhook-token"),
		"group_wait: 15s", "group_wait: 1s",
		"group_interval: 1m", "group_interval: 3s",
	)
	start(t, "prometheus-alertmanager", "--config.file="+manager, "--storage.path="+filepath.Join(dir, "am"),
		"--web.listen-address="+address["alertmanager"], "--cluster.listen-address=")
	eventually(t, 20*time.Second, "Alertmanager is ready", func() bool { return programtest.Answers(t, "http://"+address["alertmanager"]+"/-/ready") })

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "rules"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "secrets"), 0o700))
	adapted(t, "../prometheus/prometheus.yml", filepath.Join(dir, "prometheus.yml"),
		"scrape_interval: 15s", "scrape_interval: 1s",
		"evaluation_interval: 15s", "evaluation_interval: 1s",
		"targets: [alertmanager:9093]", "targets: ["+address["alertmanager"]+"]",
		"vllm:8000", vllm,
		"targets: [vllm-triage:9099]", "targets: ["+address["service"]+"]",
		"secrets/webhook-token", filepath.Join(dir, "webhook-token"),
	)
	adapted(t, "../prometheus/rules/vllm.yml", filepath.Join(dir, "rules", "vllm.yml"),
		"[5m]", "[15s]", "[2m]", "[6s]", "offset 2m", "offset 6s", "[3m]", "[10s]", "[10m]", "[30s]",
		"for: 5m", "for: 6s", "for: 3m", "for: 6s", "for: 2m", "for: 3s", "for: 1m", "for: 2s",
	)
	adapted(t, "../prometheus/rules/vllm-triage.yml", filepath.Join(dir, "rules", "vllm-triage.yml"))
	start(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address["prometheus"],
		// What fires before Prometheus has found its Alertmanager is sent again after this time, not after a minute.
		"--rules.alert.resend-delay=5s")
	eventually(t, 20*time.Second, "Prometheus is ready", func() bool { return programtest.Answers(t, "http://"+address["prometheus"]+"/-/ready") })
	return &stack{prometheus: "http://" + address["prometheus"], service: "http://" + address["service"]}
}

// incident is what the service's API tells of one.
type incident struct {
	ID     string
	Status string
	Scope  struct {
		Model string `json:"model_name"`
	}
	Verdict    string
	Bottleneck string
	Trigger    string
}

// get reads an address of the service with the webhook's token.
func (s *stack) get(t *testing.T, path string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.service+path, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
	return body
}

func (s *stack) incidents(t *testing.T) []incident {
	t.Helper()
	var answer struct{ Incidents []incident }
	require.NoError(t, json.Unmarshal(s.get(t, "/api/v1/incidents"), &answer))
	return answer.Incidents
}

// metric returns a metric of the service that has no labels.
func (s *stack) metric(t *testing.T, name string) float64 {
	t.Helper()
	for line := range strings.Lines(string(s.get(t, "/metrics"))) {
		var value float64
		if n, err := fmt.Sscanf(line, name+" %g", &value); err == nil && n == 1 {
			return value
		}
	}
	t.Fatalf("the service exports no %s", name)
	return 0
}

// query asks Prometheus for the one value of an expression.
func (s *stack) query(t *testing.T, expr string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		s.prometheus+"/api/v1/query?query="+url.QueryEscape(expr), http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.Len(t, answer.Data.Result, 1, expr)
	var value float64
	_, err = fmt.Sscan(fmt.Sprint(answer.Data.Result[0].Value[1]), &value)
	require.NoError(t, err)
	return value
}
