package reload_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"vllm-triage/cmd/vllm-triage/server/reload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFailureChangesNothingAndIsSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte("a"), 0o600))
	core, logs := observer.New(zap.InfoLevel)
	registry := prometheus.NewPedanticRegistry()
	failure := errors.New("line 3: unknown key")
	applied := 0
	r := reload.New(reload.Options{
		Apply: func(context.Context) error {
			applied++
			if applied == 1 {
				return failure
			}
			return nil
		},
		Paths: func() []string { return []string{path} }, Log: zap.New(core), Registry: registry,
	})
	metric := func(successful string) {
		t.Helper()
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP vllm_triage_config_last_reload_successful Whether the last reload of the configuration was taken up.
# TYPE vllm_triage_config_last_reload_successful gauge
vllm_triage_config_last_reload_successful `+successful+"\n"), "vllm_triage_config_last_reload_successful"))
	}
	metric("1")
	require.ErrorIs(t, r.Reload(t.Context(), reload.ByRequest), failure)
	metric("0")
	require.Equal(t, "line 3: unknown key", logs.All()[0].ContextMap()["error"])
	require.NoError(t, r.Reload(t.Context(), reload.ByRequest))
	metric("1")
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	n, err := testutil.GatherAndCount(registry, "vllm_triage_config_reloads_total")
	require.NoError(t, err)
	require.Equal(t, 6, n, "every series is there from the start")
}

func TestSignalsAndFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte("a"), 0o600))
	var applied atomic.Int64
	r := reload.New(reload.Options{
		Apply: func(context.Context) error { applied.Add(1); return nil },
		Paths: func() []string { return []string{path, "", filepath.Join(dir, "none")} },
		Every: time.Millisecond, Log: zap.NewNop(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx, signals)
	}()
	eventually := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return applied.Load() == n }, 5*time.Second, time.Millisecond)
	}
	signals <- syscall.SIGHUP
	eventually(1)
	require.NoError(t, os.WriteFile(path, []byte("b"), 0o600))
	require.Eventually(t, func() bool { return applied.Load() >= 2 }, 5*time.Second, time.Millisecond)
	cancel()
	<-done
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	last := ""
	changed := func(why string) {
		t.Helper()
		now := reload.Fingerprint(filepath.Join(dir, "mount"), filepath.Join(dir, "absent"))
		require.NotEqual(t, last, now, why)
		require.Equal(t, now, reload.Fingerprint(filepath.Join(dir, "mount"), filepath.Join(dir, "absent")))
		last = now
	}
	// The way Kubernetes mounts a ConfigMap.
	write("v1/config.yaml", "a")
	write("v2/config.yaml", "b")
	require.NoError(t, os.Symlink(filepath.Join(dir, "v1"), filepath.Join(dir, "mount")))
	changed("first")
	require.NoError(t, os.Remove(filepath.Join(dir, "mount")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "v2"), filepath.Join(dir, "mount")))
	changed("the link moved")
	write("v2/causes/x.yaml", "c")
	changed("a file more")
	require.NoError(t, os.Rename(filepath.Join(dir, "v2", "causes", "x.yaml"), filepath.Join(dir, "v2", "causes", "y.yaml")))
	changed("another name")
	write("absent", "z")
	changed("a file that was not there")
}
