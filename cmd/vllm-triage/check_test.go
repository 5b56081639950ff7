package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/config"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq/promqtest"
	"vllm-triage/triage/store"
)

var epoch = time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)

const someConfig = `
prometheus: {url: "http://127.0.0.1:1"}
webhook: {bearer_token: 0123456789abcdef}
slack: {bot_token: xoxb-secret, signing_secret: sign-secret, channel: "#llm"}
server: {external_url: "https://triage.example.org"}
links: {prometheus: "https://prometheus.example.org"}
routes:
  - match: {namespace: prod}
    channel: "#prod"
    language: ko
`

func TestCheck(t *testing.T) {
	t.Parallel()
	r := vllmTriage(t, "check", "--config", configured(t, someConfig))
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Contains(t, r.stdout, "ok       knowledge base: ")
	require.Contains(t, r.stdout, "ok       runbooks: ")
	require.Contains(t, r.stdout, `ok       routes[0]: {namespace="prod"} -> #prod, live, language ko, times in UTC`)
	require.Contains(t, r.stdout, "ok       all others: {} -> #llm, live, language en, times in UTC")
	require.NotContains(t, r.stdout, "warning")
	require.NotContains(t, r.stdout, "secret")
}

func TestCheckFindsMistakes(t *testing.T) {
	t.Parallel()
	path := configured(t, "server: {lisen: x}\n")
	r := vllmTriage(t, "check", "--config", path)
	require.Equal(t, exitFailed, r.code)
	require.Equal(t, "vllm-triage check: "+path+`:
prometheus.url: is missing: the server that scrapes vLLM, such as http://prometheus:9090
line 1: server.lisen: unknown key, did you mean "listen"?
`, r.stderr)

	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "kb", "causes"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kb", "causes", "mine.yaml"), []byte("nonsense: 1\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte("tls: 1\n"), 0o600))
	path = filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path,
		[]byte(someConfig+"triage: {knowledge_dir: kb}\n"+"alertmanager: {url: 'http://a:1'}\n"), 0o600))
	r = vllmTriage(t, "check", "--config", path)
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stdout, "FAILED   knowledge base: ")
	require.Contains(t, r.stdout, "mine.yaml")
	require.Equal(t, "vllm-triage check: 1 of the checks failed\n", r.stderr)

	r = vllmTriage(t, "check", "config.yaml")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stderr, "the file is named by --config")
}

func TestCheckPrints(t *testing.T) {
	t.Parallel()
	r := vllmTriage(t, "check", "--print-example")
	require.Equal(t, exitOK, r.code)
	require.Equal(t, string(config.Example()), r.stdout)
	r = vllmTriage(t, "check", "--dump", "--config", configured(t, someConfig))
	require.Equal(t, exitOK, r.code)
	require.Contains(t, r.stdout, "bot_token: <secret>")
	require.Contains(t, r.stdout, "debounce: 20s")
	require.NotContains(t, r.stdout, "-secret")
}

func TestCheckLive(t *testing.T) {
	t.Parallel()
	p := promqtest.Load(t, `load 15s
  vllm:num_requests_running{model_name="demo",instance="a"} 1x20
  vllm:num_requests_running{model_name="demo",instance="b"} 1x20
  vllm_num_requests_running{model_name="ray",instance="c"} 1x20
`, promqtest.StartAt(time.Now().Add(-3*time.Minute)))
	db := filepath.Join(t.TempDir(), "s.db")
	s, err := store.Open(t.Context(), db, store.Options{NoSync: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	text := strings.Replace(someConfig, "http://127.0.0.1:1", p.URL(), 1) + "storage: sqlite:" + db + "\n"
	text = strings.Replace(text, "slack: {", "slack: {api_url: "+slackAt(t)+"/api/, ", 1)
	r := vllmTriage(t, "check", "--live", "--config", configured(t, text))
	require.Equal(t, exitOK, r.code, r.stdout+r.stderr)
	require.Contains(t, r.stdout, "ok       prometheus: "+p.URL()+" answers (")
	require.Contains(t, r.stdout, `ok       vLLM metrics: "demo" (2 engines), "ray" (1 engine)`)
	require.Contains(t, r.stdout, "warning  alert rules: none about vLLM")
	require.Contains(t, r.stdout, "ok       storage: sqlite, 0 incidents, 0 firing")
	require.Contains(t, r.stdout, "ok       slack: ")
	require.NotContains(t, r.stdout, "-secret")
}

// slackAt starts a fake Slack that grants some scopes.
func slackAt(t *testing.T, scopes ...string) string {
	t.Helper()
	s := fakeslack.New(fakeslack.Options{Token: "xoxb-secret", Scopes: scopes})
	base, stop, err := s.Listen(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { stop(); s.Close() })
	return base
}

func TestCheckLiveSaysWhatIsDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Replace(someConfig, "slack: {", "slack: {api_url: "+slackAt(t, "commands")+"/api/, ", 1) +
		"storage: sqlite:" + filepath.Join(dir, "none.db") + "\n"
	r := vllmTriage(t, "check", "--live", "--config", configured(t, text))
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stdout, "FAILED   prometheus: ask prometheus at http://127.0.0.1:1: server unavailable")
	require.Contains(t, r.stdout, "warning  storage: open store: there is no database")
	require.Contains(t, r.stdout, "FAILED   slack: scope chat:write is missing")
	require.Contains(t, r.stdout, "warning  slack: without scope files:write")
	require.NotContains(t, r.stdout, "xoxb-secret")
}

func TestCheckLivePrometheusRefuses(t *testing.T) {
	t.Parallel()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(p.Close)
	text := strings.Replace(someConfig, "http://127.0.0.1:1", p.URL, 1) + "storage: sqlite:" + filepath.Join(t.TempDir(), "s.db") + "\n"
	r := vllmTriage(t, "check", "--live", "--config", configured(t, text))
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stdout, "FAILED   prometheus: ")
	require.Contains(t, r.stdout, "credentials refused")
}

// A login page answers everything with 200: it must not pass for a Prometheus without a version, nor for Slack.
func TestCheckLiveLoginPage(t *testing.T) {
	t.Parallel()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>log in</html>")) }))
	t.Cleanup(p.Close)
	path := configured(t, "prometheus: {url: '"+p.URL+"'}\nslack: {bot_token: xoxb-0123456789, channel: '#x', api_url: '"+p.URL+"/api/'}\n"+
		"storage: sqlite:"+filepath.Join(t.TempDir(), "s.db")+"\n")
	r := vllmTriage(t, "check", "--live", "--config", path)
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stdout, "FAILED   prometheus: ")
	require.NotContains(t, r.stdout, "ok       prometheus")
	require.Regexp(t, "FAILED   slack: .*check slack.api_url and the proxy", r.stdout)
}

func TestJobsAndBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "s.db")
	path := configured(t, "prometheus: {url: 'http://p:9090'}\nstorage: sqlite:"+db+"\n")
	r := vllmTriage(t, "jobs", "--config", path)
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stderr, "there is no database")
	s, err := store.Open(t.Context(), db, store.Options{NoSync: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	r = vllmTriage(t, "jobs", "--config", path)
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Equal(t, "nothing waits and nothing was given up\n", r.stdout)

	copied := filepath.Join(dir, "copy.db")
	r = vllmTriage(t, "backup", copied, "--config", path)
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Contains(t, r.stdout, copied+": 0.")
	r = vllmTriage(t, "backup", "--config", path, copied)
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stderr, "exists already")
	require.Equal(t, exitUsage, vllmTriage(t, "backup", "--config", path).code)
}

func TestJobsRetry(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	path := configured(t, "prometheus: {url: 'http://p:9090'}\nstorage: sqlite:"+db+"\n")
	s, err := store.Open(t.Context(), db, store.Options{NoSync: true})
	require.NoError(t, err)
	for _, incident := range []string{"a", "b", "c"} {
		require.NoError(t, s.Enqueue(t.Context(), store.KindTriage, incident, "opened", epoch))
	}
	for range 2 {
		j, found, err := s.Claim(t.Context(), "w", epoch, 1)
		require.NoError(t, err)
		require.True(t, found)
		require.NoError(t, s.Bury(t.Context(), j, context.DeadlineExceeded))
	}
	require.NoError(t, s.Close())
	r := vllmTriage(t, "jobs", "--dead", "--config", path)
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Equal(t, 3, strings.Count(r.stdout, "\n"), r.stdout)
	require.Contains(t, r.stdout, "j1  dead   2026-11-29T14:00:00Z  1         a         triage: opened  context deadline exceeded")
	r = vllmTriage(t, "jobs", "list", "--config", path)
	require.Equal(t, 4, strings.Count(r.stdout, "\n"), r.stdout)

	r = vllmTriage(t, "jobs", "retry", "j1", "--config", path)
	require.Equal(t, "j1 will be retried\n", r.stdout, r.stderr)
	r = vllmTriage(t, "jobs", "retry", "j1", "--config", path)
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stderr, "dead job 1: not found")
	r = vllmTriage(t, "jobs", "retry", "all", "--config", path)
	require.Equal(t, "1 job and 0 messages will be retried\n", r.stdout)
	for _, args := range [][]string{{"retry"}, {"retry", "x1"}, {"retry", "all", "j1"}, {"drop"}, {"retry", "j0"}} {
		require.Equal(t, exitUsage, vllmTriage(t, append(append([]string{"jobs"}, args...), "--config", path)...).code, args)
	}
}
