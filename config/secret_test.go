package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"vllm-triage/config"
)

const canary = "canary-7d1f"

// holder reaches a secret through unexported fields, where fmt calls no methods.
type holder struct {
	inner struct{ secret config.Secret }
	cfg   *config.Config
	list  []config.Config
	url   config.Address
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte(`
prometheus:
  url: http://user:`+canary+`@p:9090/?token=`+canary+`
  http_config: {authorization: {credentials: `+canary+`}}
alertmanager:
  url: http://user:`+canary+`@a:9093
  http_config: {basic_auth: {username: a, password: `+canary+`}}
storage: postgres://user:`+canary+`@db/x
webhook:
  bearer_token: `+canary+canary+`
  basic_auth: {username: a, password: `+canary+`}
pages: {link_key: `+canary+canary+canary+`}
slack: {bot_token: xoxb-`+canary+`, signing_secret: `+canary+`, app_token: xapp-`+canary+`, channel: c}
`), t.TempDir(), config.NoEnv)
	require.NoError(t, err)
	token, err := c.Slack.BotToken.Read()
	require.NoError(t, err)
	require.Equal(t, "xoxb-"+canary, token, "it is there all the same")

	h := holder{cfg: c, list: []config.Config{*c}, url: c.Prometheus.URL}
	h.inner.secret = c.Slack.BotToken
	var out []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{
			c, *c, c.Slack, c.Slack.BotToken, &c.Slack.BotToken, c.Prometheus.URL, &c.Prometheus.URL, h.inner, h.url, h,
			[]config.Secret{c.Storage},
			map[string]config.Secret{"a": c.Storage},
		} {
			out = append(out, fmt.Sprintf(verb, v))
		}
	}
	data, err := json.Marshal(c)
	require.NoError(t, err)
	dump, err := c.Dump()
	require.NoError(t, err)
	core, logs := observer.New(zap.DebugLevel)
	zap.New(core).Info("x", zap.Any("config", c), zap.Any("secret", c.Storage), zap.Stringer("url", c.Prometheus.URL))
	enc := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	for _, entry := range logs.All() {
		line, err := enc.EncodeEntry(entry.Entry, entry.Context)
		require.NoError(t, err)
		out = append(out, line.String())
	}
	for _, text := range append(out, string(data), string(dump)) {
		require.NotContains(t, text, canary)
	}
	require.Contains(t, string(dump), "bot_token: <secret>")
	require.Contains(t, string(dump), "url: http://p:9090/")
}

func TestSecretIsReadOnUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(file, []byte("first-0123456789\n"), 0o600))
	c, err := config.Parse([]byte(minimal+"webhook: {bearer_token_file: token}\n"), dir, config.NoEnv)
	require.NoError(t, err)
	got, err := c.Webhook.BearerToken.Read()
	require.NoError(t, err)
	require.Equal(t, "first-0123456789", got)
	require.NoError(t, os.WriteFile(file, []byte("second-0123456789"), 0o600))
	got, err = c.Webhook.BearerToken.Read()
	require.NoError(t, err)
	require.Equal(t, "second-0123456789", got)
	require.NoError(t, os.WriteFile(file, []byte(" \n"), 0o600))
	_, err = c.Webhook.BearerToken.Read()
	require.EqualError(t, err, "read secret: "+file+" is empty")
}

func TestSecretsThatNobodyCanSend(t *testing.T) {
	t.Parallel()
	const good = "first-0123456789abcdef"
	utf16 := "\xff\xfe"
	for _, c := range []byte(good) {
		utf16 += string([]byte{c, 0})
	}
	for name, tt := range map[string]struct{ text, want string }{
		"two lines":       {good + "\n" + good + "\n", "has several lines"},
		"byte order mark": {"\uFEFF" + good + "\n", "without a byte order mark"},
		"UTF-16":          {utf16, "save it as UTF-8"},
		"NUL":             {good + "\x00" + good, "no text"},
		"not text":        {good + "\xc3\x28", "no text"},
		"huge":            {strings.Repeat("a", 1<<17), "larger than 64 KiB"},
	} {
		file := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
		_, err := config.FileSecret(file).Read()
		require.ErrorContains(t, err, tt.want, name)
		require.ErrorContains(t, err, file, name)
		require.NotContains(t, err.Error(), good, name)
		_, err = config.Parse([]byte(minimal+"webhook: {bearer_token_file: token}\n"), filepath.Dir(file), config.NoEnv)
		require.ErrorContains(t, err, "webhook.bearer_token_file: read secret: ", name)
	}
	for _, text := range []string{good, good + "\n", "  " + good + " \r\n"} {
		env := func(name string) (string, bool) { return text, name == "VLLM_TRIAGE_WEBHOOK_BEARER_TOKEN" }
		c, err := config.Parse([]byte(minimal), "", env)
		require.NoError(t, err)
		got, err := c.Webhook.BearerToken.Read()
		require.NoError(t, err)
		require.Equal(t, good, got, "a line break at the end of a variable is not part of the secret")
	}
	env := func(name string) (string, bool) { return good + "\n" + good, name == "VLLM_TRIAGE_SLACK_BOT_TOKEN" }
	_, err := config.Parse([]byte(minimal), "", env)
	require.ErrorContains(t, err, "slack.bot_token: read secret: it has several lines")
	blank := func(name string) (string, bool) { return " \n", name == "VLLM_TRIAGE_SLACK_BOT_TOKEN" }
	_, err = config.Parse([]byte(minimal), "", blank)
	require.ErrorContains(t, err, "VLLM_TRIAGE_SLACK_BOT_TOKEN is set but empty")
}

func TestSecretFromEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"VLLM_TRIAGE_SLACK_BOT_TOKEN":      "xoxb-env",
		"VLLM_TRIAGE_WEBHOOK_BEARER_TOKEN": "env-0123456789abcdef",
		"VLLM_TRIAGE_STORAGE":              "postgres://u@db/x",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	c, err := config.Parse([]byte(minimal+"slack: {channel: c}\nwebhook: {bearer_token: file-0123456789abcdef}\n"), "", lookup)
	require.NoError(t, err)
	for want, s := range map[string]config.Secret{
		"xoxb-env": c.Slack.BotToken, "file-0123456789abcdef": c.Webhook.BearerToken, "postgres://u@db/x": c.Storage,
	} {
		got, err := s.Read()
		require.NoError(t, err)
		require.Equal(t, want, got, "the file wins over the environment")
	}
}

func TestSecretEqual(t *testing.T) {
	t.Parallel()
	require.True(t, config.NewSecret("a").Equal(config.NewSecret("a")))
	require.False(t, config.NewSecret("a").Equal(config.NewSecret("b")))
	require.False(t, config.NewSecret("a").Equal(config.FileSecret("a")))
	require.False(t, config.NewSecret("").Equal(config.Secret{}))
	var unset config.Secret
	require.True(t, config.Secret{}.Equal(unset))
}
