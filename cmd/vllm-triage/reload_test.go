package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/config"
	"vllm-triage/triage/store"
)

// A new configuration is taken up as a whole; one with a mistake, or that would let everybody in, changes nothing.
func TestApply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	write := func(level, webhook string, debounce time.Duration) {
		t.Helper()
		text := fmt.Sprintf("prometheus: {url: \"http://127.0.0.1:1\"}\nwebhook: %s\nlog: {level: %s}\ntriage: {debounce: %s}\n",
			webhook, level, debounce)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	const good = "{bearer_token: 0123456789abcdef}"
	write("info", good, 20*time.Second)
	cfg, err := config.Load(file, config.NoEnv)
	require.NoError(t, err)
	parts, err := assemble(cfg)
	require.NoError(t, err)
	st, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "store.db"), store.Options{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	s, err := server.New(t.Context(), server.Options{
		Parts: parts, Store: st, Metrics: server.NewMetrics(prometheus.NewRegistry(), "test"), Owner: "test",
	})
	require.NoError(t, err)
	level := zap.NewAtomicLevel()
	from := source{file, config.NoEnv, false}
	load := func() error { return apply(context.WithoutCancel(t.Context()), s, zap.NewNop(), &level, from) }

	write("debug", good, 40*time.Second)
	require.NoError(t, load())
	require.Equal(t, zap.DebugLevel, level.Level())
	require.Equal(t, 40*time.Second, time.Duration(s.Parts().Config.Triage.Debounce))

	now := s.Parts()
	write("loud", good, time.Second)
	require.Error(t, load())
	write("info", "{}", time.Second)
	require.ErrorContains(t, load(), "nobody may post alerts")
	require.Same(t, now, s.Parts())
	require.Equal(t, zap.DebugLevel, level.Level())
}

// A web configuration that only encrypts proves nothing about who posts.
func TestWebConfigMustVerify(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"tls_server_config: {cert_file: a.pem, key_file: b.pem}":                                      false,
		"tls_server_config: {cert_file: a.pem, key_file: b.pem, client_auth_type: RequestClientCert}": false,
		"tls_server_config: {client_auth_type: RequireAndVerifyClientCert}":                           true,
		"basic_auth_users: {alertmanager: x}":                                                         true,
	} {
		file := filepath.Join(t.TempDir(), "web.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		if err := server.CheckWebConfig(file); good {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, "verifies nobody", text)
		}
	}
}
