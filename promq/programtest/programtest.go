// Package programtest runs real programs, such as Alertmanager, beside a test.
package programtest

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Require is the environment variable that makes a test fail, and not skip, where a program is not installed.
const Require = "VLLM_TRIAGE_REQUIRE_TOOLS"

// FreeAddress is a host and port of the loopback interface on which nobody listens.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	require.NoError(tb, l.Close())
	return l.Addr().String()
}

// Answers says whether a GET of the address gives 200.
func Answers(tb testing.TB, address string) bool {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(tb, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}

// Alertmanager starts Debian's Alertmanager without receivers in a temporary folder and returns its base address once it is
// ready. Without the program the test is skipped, unless Require is set.
func Alertmanager(tb testing.TB) string {
	tb.Helper()
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		program, err = exec.LookPath("alertmanager")
	}
	if err != nil {
		if os.Getenv("VLLM_TRIAGE_REQUIRE_ALERTMANAGER") != "" || os.Getenv(Require) != "" {
			tb.Fatal("alertmanager is not installed, and the environment requires it")
		}
		tb.Skip("alertmanager is not installed")
	}
	dir := tb.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	require.NoError(tb, os.WriteFile(config, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600))
	address := FreeAddress(tb)
	out := &output{}
	// Not bound to the test's context, which ends before the cleanup that stops the program in peace.
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), program, "--config.file="+config, //nolint:gosec // Of a test.
		"--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--cluster.listen-address=")
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(tb, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // Ended by a signal.
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		if tb.Failed() {
			tb.Log(out)
		}
	})
	base := "http://" + address
	for deadline := time.Now().Add(30 * time.Second); !Answers(tb, base+"/-/ready"); {
		if time.Now().After(deadline) {
			tb.Fatal("alertmanager is not ready within 30 s")
		}
		select {
		case <-tb.Context().Done():
			tb.Fatal(context.Cause(tb.Context()))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return base
}

// output collects what a program prints.
type output struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	return len(p), nil
}

// String returns what was printed so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
