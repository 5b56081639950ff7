package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"vllm-triage/config"
)

const minimal = "prometheus: {url: http://prometheus:9090}\n"

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse([]byte(text), t.TempDir(), config.NoEnv)
	require.NoError(t, err)
	return c
}

func TestMinimal(t *testing.T) {
	t.Parallel()
	c := parse(t, minimal)
	require.Equal(t, ":9099", c.Server.Listen)
	require.Equal(t, config.Bytes(2<<20), c.Webhook.MaxBody)
	require.Equal(t, 10_000, c.Webhook.MaxAlerts)
	require.Equal(t, model.Duration(90*24*time.Hour), c.Retention)
	require.True(t, c.Prometheus.HTTP.Config().EnableHTTP2, "the defaults of prometheus/common apply without http_config")
	require.False(t, c.Prometheus.HTTP.Config().FollowRedirects)
	dsn, err := c.Storage.Read()
	require.NoError(t, err)
	require.Equal(t, config.DefaultStorage, dsn)
	require.False(t, c.Webhook.Authenticated())
	require.False(t, c.Slack.Enabled())
	require.Len(t, c.Warnings(), 4)
}

func TestHTTPConfigIsThatOfPrometheus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := config.Parse([]byte(`
prometheus:
  url: https://user:hunter2@prometheus.example.org/prefix
  http_config:
    authorization: {credentials_file: token}
    http_headers: {X-Scope-OrgID: {values: [team]}}
  params: {dedup: ["true"]}
alertmanager:
  url: http://alertmanager:9093
  http_config: {follow_redirects: true}
`), dir, config.NoEnv)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "token"), c.Prometheus.HTTP.Config().Authorization.CredentialsFile)
	require.Equal(t, "Bearer", c.Prometheus.HTTP.Config().Authorization.Type)
	require.True(t, c.Prometheus.HTTP.Config().EnableHTTP2)
	require.False(t, c.Prometheus.HTTP.Config().FollowRedirects, "our default, although the library's is true")
	require.True(t, c.Alertmanager.HTTP.Config().FollowRedirects)
	require.Equal(t, "true", c.Prometheus.Values().Get("dedup"))
	require.Equal(t, "https://user:hunter2@prometheus.example.org/prefix", c.Prometheus.URL.Raw())
	require.Equal(t, "https://prometheus.example.org/prefix", c.Prometheus.URL.String())
}

func TestAlertmanagerPeers(t *testing.T) {
	t.Parallel()
	require.Empty(t, parse(t, minimal).Alertmanager.Peers())
	require.Equal(t, []config.Address{config.NewAddress("http://a:9093")},
		parse(t, minimal+"alertmanager: {url: 'http://a:9093'}\n").Alertmanager.Peers())
	require.Equal(t, []config.Address{config.NewAddress("http://b:9093"), config.NewAddress("http://a:9093")},
		parse(t, minimal+"alertmanager: {urls: ['http://b:9093', 'http://a:9093']}\n").Alertmanager.Peers())
}

func TestPermissionsOfNobodyInParticular(t *testing.T) {
	t.Parallel()
	require.True(t, parse(t, minimal).Slack.Permissions.IsZero())
	p := parse(t, minimal+"slack: {permissions: {each: {share: {users: [U0123456789]}}}}\n").Slack.Permissions
	require.False(t, p.IsZero())
	require.True(t, p.Silence.IsZero())
	require.Equal(t, []string{"U0123456789"}, p.Each["share"].Users)
}

// Each file in testdata/bad breaks one rule; its last comment says which message that gives.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 30)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var want []string
			for line := range strings.Lines(string(data)) {
				if text, ok := strings.CutPrefix(line, "#! "); ok {
					want = append(want, strings.TrimSpace(text))
				}
			}
			require.NotEmpty(t, want, "the file must say which message it expects: #! line 1: …")
			_, err = config.Parse(data, "testdata", func(name string) (string, bool) {
				return "", name == "VLLM_TRIAGE_PAGES_LINK_KEY" && strings.Contains(file, "empty-env")
			})
			require.Error(t, err)
			require.Equal(t, strings.Join(want, "\n"), err.Error())
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	_, err := config.Load(path, config.NoEnv)
	require.ErrorContains(t, err, "read configuration: open "+path)
	require.NoError(t, os.WriteFile(path, []byte("log: {level: loud}\n"), 0o600))
	_, err = config.Load(path, config.NoEnv)
	require.EqualError(t, err, path+`:
prometheus.url: is missing: the server that scrapes vLLM, such as http://prometheus:9090
line 1: log.level: must be "debug", "info", "warn" or "error"`)
}

// exampleDir holds the files that the example names.
func exampleDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "secrets"), 0o700))
	for name, text := range map[string]string{
		"webhook-token":        strings.Repeat("w", 32),
		"webhook-password":     strings.Repeat("p", 32),
		"link-key":             strings.Repeat("k", 32),
		"slack-bot-token":      "xoxb-1-2-3",
		"slack-signing-secret": strings.Repeat("s", 32),
		"slack-app-token":      "xapp-1",
		"prometheus-token":     "t",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "secrets", name), []byte(text+"\n"), 0o600))
	}
	for _, name := range []string{"knowledge", "runbooks"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "web.yaml"), nil, 0o600))
	return dir
}

func TestExampleIsValid(t *testing.T) {
	t.Parallel()
	c, err := config.Parse(config.Example(), exampleDir(t), config.NoEnv)
	require.NoError(t, err)
	require.Len(t, c.Routes, 2)
	require.Equal(t, []string{
		"slack: neither app_token nor signing_secret: buttons and commands do not work",
	}, c.Warnings())
}

// Everything that the example comments out is valid too, and shows the default where there is one.
func TestExampleUncommented(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for line := range strings.Lines(string(config.Example())) {
		trimmed := strings.TrimLeft(line, " ")
		if body, ok := strings.CutPrefix(trimmed, "# "); ok && isYAML(body) {
			line = line[:len(line)-len(trimmed)] + body
		}
		out.WriteString(line)
	}
	c, err := config.Parse([]byte(out.String()), exampleDir(t), config.NoEnv)
	require.NoError(t, err, out.String())
	def := config.Default()
	require.Equal(t, def.Triage.Retriage, c.Triage.Retriage)
	require.Equal(t, def.Triage.Debounce, c.Triage.Debounce)
	require.Equal(t, def.Retention, c.Retention)
	require.Equal(t, def.Log, c.Log)
	require.Equal(t, def.Slack.APIURL, c.Slack.APIURL)
	require.Equal(t, def.Webhook.MaxBody, c.Webhook.MaxBody)
	require.Equal(t, def.Pages.LinkTTL, c.Pages.LinkTTL)
	require.NotEmpty(t, c.Links.GrafanaExplore)
	require.NotEmpty(t, c.Triage.KnowledgeDir)
	require.Len(t, c.Alertmanager.Peers(), 2)
	require.Len(t, c.Slack.Permissions.Each, 1)
	require.Contains(t, out.String(), strings.Join(config.Acts(), ", "), "the example names every act that can be restricted")
	require.Equal(t, []string{"S0123456789"}, c.Slack.Permissions.Groups())
	require.Empty(t, c.Warnings())
}

// isYAML tells a key that was commented out from a sentence.
func isYAML(s string) bool {
	s = strings.TrimLeft(s, " ")
	key, _, found := strings.Cut(s, ":")
	return found && key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") == "" &&
		key != "optional" && !strings.Contains(s, " with: ")
}

func FuzzParse(f *testing.F) {
	f.Add(config.Example())
	f.Add([]byte(minimal))
	for _, s := range []string{
		"", "a: &a [*a]", "prometheus: {url: [1]}", "routes: [{match_re: {a: '('}}]", "routes:\n- match: {\"\": x}\n",
		"retention: 1y\nwebhook: {max_body: 9999999999GiB}", "storage: 'postgres://%zz'", "? [a]\n: b", "<<: {a: 1}",
	} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse(data, dir, config.NoEnv)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		_, err = c.Dump()
		require.NoError(t, err)
		c.Targets([]map[string]string{{"severity": "critical"}})
	})
}
