//go:build crash

package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
)

// binary builds the program once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vllm-triage-crash")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "vllm-triage")
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", path, "vllm-triage/cmd/vllm-triage").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	stopPostgres()
	os.Exit(code)
}

// process is a program that can be killed and started again.
type process struct {
	name string
	args []string
	log  *os.File

	mu  sync.Mutex
	cmd *exec.Cmd
}

// prepare makes a program ready to be started; its output is appended to a file that is shown when the test fails.
func prepare(t *testing.T, name string, args ...string) *process {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err, "install it, or run .ci/run, which does")
	log, err := os.Create(filepath.Join(t.TempDir(), filepath.Base(name)+".log"))
	require.NoError(t, err)
	p := &process{name: path, args: args, log: log}
	t.Cleanup(func() {
		p.kill()
		_ = log.Close()
		if t.Failed() {
			data, err := os.ReadFile(log.Name())
			if err == nil {
				t.Logf("end of the output of %s:\n%s", filepath.Base(name), data[max(0, len(data)-20_000):])
			}
		}
	})
	return p
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), p.name, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Dir = filepath.Dir(p.log.Name())
	// The program dies with the test.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, p.cmd.Start())
}

// kill ends the program as kill -9 does, and waits until it is gone.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
}

// accepted remembers the models about which a firing notification was answered with 200: from then on the service owes a
// message. What Alertmanager could not get through before all was over is nobody's loss but its own.
type accepted struct {
	mu     sync.Mutex
	models map[string]bool
}

func (a *accepted) note(body []byte) {
	p, err := triage.ParsePayload(body)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range p.Alerts {
		if x.Status == triage.StatusFiring {
			a.models[x.Labels["model_name"]] = true
		}
	}
}

func (a *accepted) has(model string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.models[model]
}

// balancer spreads requests over replicas, as a Kubernetes Service does: it knows nothing of who is alive. It sees what is
// answered with 200.
func balancer(t *testing.T, backends []string, taken *accepted) string {
	t.Helper()
	var n atomic.Uint64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: backends[n.Add(1)%uint64(len(backends))]})
		},
		ModifyResponse: func(r *http.Response) error {
			if body, ok := r.Request.Context().Value(bodyKey{}).([]byte); ok && r.StatusCode == http.StatusOK {
				taken.note(body)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), bodyKey{}, body)))
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + l.Addr().String()
}

// bodyKey carries a request's body to its answer.
type bodyKey struct{}

// eventually polls until the condition holds.
func eventually(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		require.True(t, time.Now().Before(deadline), "%s within %s", what, limit)
		time.Sleep(100 * time.Millisecond)
	}
}

// answers says whether an address answers 200.
func answers(t *testing.T, address string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// post sends JSON and returns an error unless it was taken.
func post(ctx context.Context, address string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return errors.New(resp.Status)
	}
	return nil
}
