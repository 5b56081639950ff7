package flood_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq/programtest"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

var (
	length  = flag.Duration("flood", 10*time.Second, "how long to flood")
	senders = flag.Int("senders", 32, "connections that send at once")
)

const (
	token = "flood-0123456789abcdef"
	// bareEnv makes the test binary a bare server on the address in it.
	bareEnv = "VLLM_TRIAGE_FLOOD_BARE"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(bareEnv); address != "" {
		bare(address)
		return
	}
	code := m.Run()
	storetest.Stop()
	os.Exit(code)
}

// bare is what a receiver without storage does: it reads the notification, looks at it and answers.
func bare(address string) {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.GET("/-/ready", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.POST("/webhook/alertmanager", func(c echo.Context) error {
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		if _, err := triage.ParsePayload(body); err != nil {
			return echo.NewHTTPError(http.StatusBadRequest, err.Error())
		}
		return c.NoContent(http.StatusOK)
	})
	fmt.Fprintln(os.Stderr, e.Start(address))
}

func BenchmarkWebhooks(b *testing.B) {
	for engine, fresh := range storetest.Engines() {
		b.Run(engine, func(b *testing.B) {
			storage := fresh(b)
			t := serve(b, storage)
			flood(b, t)
			t.stop()
			stored(b, storage)
		})
	}
	b.Run("bare", func(b *testing.B) {
		self, err := os.Executable()
		require.NoError(b, err)
		listen := programtest.FreeAddress(b)
		flood(b, start(b, listen, []string{bareEnv + "=" + listen}, self))
	})
}

// stored makes sure that what was answered is in the database.
func stored(b *testing.B, storage string) {
	b.Helper()
	s, err := store.Open(b.Context(), storage, store.Options{Existing: true})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	stats, err := s.Stats(b.Context(), time.Now())
	require.NoError(b, err)
	require.Equal(b, models, stats.Incidents["firing"])
	last, err := s.Incidents(b.Context(), store.Filter{Limit: models})
	require.NoError(b, err)
	require.Len(b, last, models)
}

// target is a program under flood.
type target struct {
	base string
	pid  int
	stop func()
}

// serve starts the real program on a database.
func serve(tb testing.TB, storage string) target {
	tb.Helper()
	dir := tb.TempDir()
	binary := filepath.Join(dir, "vllm-triage")
	// As it is shipped (see the Makefile): static and without symbols, which count in memory too.
	build := exec.CommandContext(tb.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "vllm-triage/cmd/vllm-triage")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(tb, err, string(out))
	listen := programtest.FreeAddress(tb)
	file := filepath.Join(dir, "config.yaml")
	// The flood is about the intake: triages would begin after it.
	require.NoError(tb, os.WriteFile(file, []byte(fmt.Sprintf(`
server: {listen: %q}
webhook: {bearer_token: %s}
storage: %q
prometheus: {url: "http://127.0.0.1:1"}
triage: {debounce: 10m}
log: {level: error}
`, listen, token, storage)), 0o600))
	return start(tb, listen, nil, binary, "serve", "--config", file)
}

func start(tb testing.TB, listen string, env []string, name string, args ...string) target {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), name, args...)
	cmd.Env = append(os.Environ(), env...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(tb, cmd.Start())
	t := target{base: "http://" + listen, pid: cmd.Process.Pid}
	t.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if tb.Failed() {
			tb.Log(log.String())
		}
	})
	tb.Cleanup(t.stop)
	require.Eventually(tb, func() bool { return programtest.Answers(tb, t.base+"/-/ready") }, 30*time.Second, 20*time.Millisecond)
	return t
}

func flood(b *testing.B, t target) {
	b.Helper()
	idle := memory(b, t.pid, "VmRSS")
	send(b, t, time.Second) // Connections, prepared statements.
	used := processor(b, t.pid)
	b.ResetTimer()
	got := send(b, t, *length)
	b.StopTimer()
	used = processor(b, t.pid) - used
	require.Zero(b, got.failed, got.problem)
	slices.Sort(got.took)
	at := func(share float64) float64 {
		return float64(got.took[int(share*float64(len(got.took)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(float64(len(got.took))/length.Seconds(), "webhooks/s")
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	// What a webhook costs does not depend on what else the machine does.
	b.ReportMetric(float64(used.Microseconds())/float64(len(got.took)), "cpu-µs/webhook")
	b.ReportMetric(idle, "idle-MB")
	b.ReportMetric(memory(b, t.pid, "VmHWM"), "peak-MB")
	b.ReportMetric(0, "ns/op") // Says nothing here.
}

// result is how a flood was answered.
type result struct {
	took    []time.Duration
	failed  int
	problem string // The first failure.
}

// models is how many incidents there are at once.
const models = 500

// send floods a target from several connections.
func send(tb testing.TB, t target, d time.Duration) result {
	tb.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *senders}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var out result
	deadline := time.Now().Add(d)
	var wg sync.WaitGroup
	for range *senders {
		wg.Go(func() {
			var took []time.Duration
			for time.Now().Before(deadline) {
				body := notification(serial.Add(1))
				began := time.Now()
				err := deliver(tb.Context(), client, t.base, body)
				took = append(took, time.Since(began))
				if err != nil {
					mu.Lock()
					if out.failed++; out.failed == 1 {
						out.problem = err.Error()
					}
					mu.Unlock()
				}
			}
			mu.Lock()
			defer mu.Unlock()
			out.took = append(out.took, took...)
		})
	}
	wg.Wait()
	return out
}

func deliver(ctx context.Context, client *http.Client, base string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/webhook/alertmanager", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return err
}

// serial numbers the notifications of all floods: each says something new, so each must be written.
var serial atomic.Int64

var began = time.Now().UTC().Truncate(time.Second)

// notification is the n-th notification: two alerts of one of the models, one of which has just begun or ended.
func notification(n int64) []byte {
	model := "flood-" + strconv.FormatInt(n%models, 10)
	round := time.Duration(n / models)
	item := func(name string, start, end time.Time) map[string]any {
		status := "firing"
		if !end.IsZero() {
			status = "resolved"
		}
		return map[string]any{
			"status": status, "startsAt": start, "endsAt": end, "fingerprint": name + model,
			"labels": map[string]string{
				"alertname": name, "model_name": model, "namespace": "llm", "severity": "warning", "cluster": "eu-1",
				"prometheus": "monitoring/k8s", "job": "vllm",
			},
			"annotations": map[string]string{
				"summary":     "p95 time to first token of " + model + " is 7.3 s",
				"description": "The threshold is 2 s. The queue holds 61 requests, the KV cache is at 98 %.",
				"runbook_url": "https://triage.example.org/runbooks/index",
			},
			"generatorURL": "http://prometheus.example.org/graph?g0.expr=histogram_quantile%280.95%2C+sum+by+%28le%29+%28rate%28" +
				"vllm%3Atime_to_first_token_seconds_bucket%5B5m%5D%29%29%29+%3E+2&g0.tab=1",
		}
	}
	start := began.Add(round * 2 * time.Second)
	second := item("VLLMQueueGrowing", start, time.Time{})
	if round%2 == 1 {
		second = item("VLLMQueueGrowing", start.Add(-2*time.Second), start)
	}
	body, err := json.Marshal(map[string]any{
		"version": "4", "groupKey": `{}:{model_name="` + model + `"}`, "receiver": "vllm-triage", "status": "firing",
		"alerts":      []any{item("VLLMHighTTFT", began, time.Time{}), second},
		"groupLabels": map[string]string{"model_name": model}, "commonLabels": map[string]string{"model_name": model},
		"commonAnnotations": map[string]string{}, "externalURL": "http://alertmanager.example.org", "truncatedAlerts": 0,
	})
	if err != nil {
		panic(err) // Strings and times always marshal.
	}
	return body
}

var statusLine = regexp.MustCompile(`(?m)^(\w+):\s+(\d+) kB$`)

// memory is a figure of a process, in megabytes.
func memory(tb testing.TB, pid int, name string) float64 {
	tb.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	require.NoError(tb, err)
	for _, m := range statusLine.FindAllSubmatch(text, -1) {
		if string(m[1]) == name {
			kb, err := strconv.ParseFloat(string(m[2]), 64)
			require.NoError(tb, err)
			return kb * 1024 / 1e6
		}
	}
	tb.Fatalf("no %s in /proc/%d/status", name, pid)
	return 0
}

// processor is the processor time that a process has used, in steps of 10 ms.
func processor(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	require.NoError(tb, err)
	// After the name, which may hold anything, come the state and eleven others before utime and stime.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	require.Greater(tb, len(fields), 12)
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(tb, err)
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}
