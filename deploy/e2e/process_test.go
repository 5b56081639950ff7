//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a program that runs beside the test. What it printed is shown when the test fails.
type process struct {
	command *exec.Cmd
	output  lockedBuffer
	done    chan error
}

// start runs a program until the end of the test, where it is asked to stop and has ten seconds to obey.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err, "install it, or run .ci/run, which does")
	// Not bound to the test's context, which ends before the cleanup that stops the program in peace.
	p := &process{command: exec.CommandContext(context.WithoutCancel(t.Context()), path, args...), done: make(chan error, 1)}
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	p.command.Dir = t.TempDir()
	require.NoError(t, p.command.Start())
	go func() { p.done <- p.command.Wait() }()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(name), p.output.String())
		}
	})
	return p
}

// wait lets the program end by itself and requires that it succeeds.
func (p *process) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.done:
		p.done <- err
		require.NoError(t, err, "%s:\n%s", p.command.Path, p.output.String())
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not end", p.command.Path)
	}
}

// stop ends the program as an operator would and requires that it obeys.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return
	}
	select {
	case err := <-p.done:
		p.done <- err // For the next who asks.
	case <-time.After(30 * time.Second):
		_ = p.command.Process.Kill()
		t.Errorf("%s did not stop within 30 s of SIGTERM", p.command.Path)
	}
}

// eventually polls until the condition holds.
func eventually(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(context.Cause(t.Context()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// adapted copies a file with replacements, each of which must occur: the test runs what is shipped, only faster.
func adapted(t *testing.T, from, to string, replacements ...string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	require.NoError(t, err)
	text := string(raw)
	for i := 0; i < len(replacements); i += 2 {
		require.Contains(t, text, replacements[i], from)
		text = strings.ReplaceAll(text, replacements[i], replacements[i+1])
	}
	require.NoError(t, os.WriteFile(to, []byte(text), 0o600))
}

// lockedBuffer collects the output of a program.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
