package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ran is what a command line did.
type ran struct {
	code   int
	stdout string
	stderr string
}

// vllmTriage runs the program in this process.
func vllmTriage(t *testing.T, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), environment{
		args: args, getenv: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
	})
	return ran{code, stdout.String(), stderr.String()}
}

// configured writes a configuration into a temporary directory and returns its path.
func configured(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestStoppedWhileItStarts: a service that is told to stop before it serves did not fail; a command that found nothing did.
func TestStoppedWhileItStarts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := configured(t, "prometheus: {url: 'http://127.0.0.1:1'}\nwebhook: {bearer_token: 0123456789abcdef}\n"+
		"slack: {bot_token: xoxb-0123456789, channel: '#x'}\nserver: {listen: '127.0.0.1:0'}\nstorage: 'sqlite:"+filepath.Join(t.TempDir(), "a.db")+"'\n")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"serve", "--config", path}, exitOK, "stopped before it served"},
		{[]string{"triage", "--prometheus", "http://127.0.0.1:1"}, exitFailed, "canceled"},
	} {
		var stderr bytes.Buffer
		code := run(ctx, environment{
			args: tt.args, getenv: func(string) string { return "" }, lookupenv: func(string) (string, bool) { return "", false },
			stdin: strings.NewReader(""), stdout: io.Discard, stderr: &stderr,
		})
		require.Equal(t, tt.code, code, stderr.String())
		require.Contains(t, stderr.String(), tt.want)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	r := vllmTriage(t)
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stderr, "Usage: vllm-triage COMMAND")
	r = vllmTriage(t, "help")
	require.Equal(t, exitOK, r.code)
	for _, c := range commands() {
		require.Contains(t, r.stdout, "  "+c.name+" ")
		h := vllmTriage(t, c.name, "--help")
		require.Equal(t, exitOK, h.code, c.name)
		require.Contains(t, h.stdout, "Usage: vllm-triage "+c.name+" [flags]", c.name)
		h = vllmTriage(t, c.name, "--no-such-flag")
		require.Equal(t, exitUsage, h.code, c.name)
		require.Contains(t, h.stderr, `Run "vllm-triage `+c.name+` --help" for its flags.`)
	}
	r = vllmTriage(t, "serv")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stderr, `there is no subcommand "serv"`)
}
