package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq/promqtest"
)

// live is a configuration whose servers answer.
func live(t *testing.T, scopes []string, more string) string {
	t.Helper()
	prom := promqtest.Load(t, `load 30s
  vllm:num_requests_running{model_name="demo"} 1x20
`, promqtest.StartAt(epoch))
	chat := fakeslack.New(fakeslack.Options{Scopes: scopes})
	api := httptest.NewServer(chat)
	t.Cleanup(func() {
		chat.Close()
		api.Close()
	})
	return fmt.Sprintf(`
prometheus: {url: %q}
webhook: {bearer_token: 0123456789abcdef}
storage: %q
slack:
  bot_token: xoxb-secret
  signing_secret: sign-secret
  channel: "#llm"
  api_url: %q
`, prom.URL(), "sqlite:"+t.TempDir()+"/none.db", api.URL+"/api/") + more
}

func TestCheckLiveNamesTheScopes(t *testing.T) {
	t.Parallel()
	byGroup := "  permissions: {silence: {groups: [S0ONCALL]}}\n"
	r := vllmTriage(t, "check", "--live", "--config", configured(t, live(t, []string{"commands"}, "")))
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stdout, "FAILED   slack: scope chat:write is missing")
	require.Contains(t, r.stdout, "warning  slack: without scope files:write: ")
	require.NotContains(t, r.stdout, "usergroups:read", "nobody is let in by group, so nothing is lost")

	r = vllmTriage(t, "check", "--live", "--config", configured(t, live(t, []string{"chat:write"}, byGroup)))
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stdout, "FAILED   slack: scope commands is missing", "buttons and commands are configured")
	require.Contains(t, r.stdout, "FAILED   slack: scope usergroups:read is missing: slack.permissions names S0ONCALL")

	r = vllmTriage(t, "check", "--live", "--config", configured(t, live(t,
		append(fakeslack.AllScopes(), "usergroups:read"), byGroup)))
	require.Equal(t, exitOK, r.code, r.stdout)
	require.NotContains(t, r.stdout, "scope")
}

func TestCheckLiveAsksEachAlertmanager(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"versionInfo":{"version":"0.30.0"}}`))
	}))
	t.Cleanup(up.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	r := vllmTriage(t, "check", "--live", "--config", configured(t, live(t, nil,
		fmt.Sprintf("alertmanager: {urls: [%q, %q]}\n", up.URL, down.URL))))
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.stdout, "ok       alertmanager.urls[0]: "+up.URL+" answers (0.30.0)")
	require.Contains(t, r.stdout, "FAILED   alertmanager.urls[1]: read status at "+down.URL+": unavailable")

	r = vllmTriage(t, "check", "--live", "--config", configured(t, live(t, nil, fmt.Sprintf("alertmanager: {url: %q}\n", up.URL))))
	require.Equal(t, exitOK, r.code, r.stdout)
	require.Contains(t, r.stdout, "ok       alertmanager: "+up.URL+" answers")
}
