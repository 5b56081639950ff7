package main

import (
	"bytes"
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
