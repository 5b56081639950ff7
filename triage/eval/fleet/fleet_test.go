package fleet_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
	"vllm-triage/promq/programtest"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/eval/robust"
	"vllm-triage/triage/kb"
)

const (
	incidents = "../../testdata/incidents"
	incident  = "device-slow-a"
)

// answer is what the asking process reports of itself.
type answer struct {
	Queries   int           `json:"queries"`
	Bytes     int64         `json:"bytes"`
	Took      time.Duration `json:"took"`
	InQueries time.Duration `json:"in_queries"`
	PeakMB    float64       `json:"peak_mb"`
	Verdict   string        `json:"verdict"`
	First     string        `json:"first"`
	P         float64       `json:"p"`
	Where     string        `json:"where"`
	Slowest   string        `json:"slowest"`
}

// TestFleet asks a real Prometheus about fleets of the sizes in FLEET, each with one slow replica.
func TestFleet(t *testing.T) {
	sizes := os.Getenv("FLEET")
	if sizes == "" {
		t.Skip("FLEET is not set")
	}
	binary, err := exec.LookPath("prometheus")
	require.NoError(t, err, "install the distribution's prometheus package")
	recs, err := eval.LoadRecordings(filepath.Join(incidents, incident))
	require.NoError(t, err)

	var large []answer
	t.Logf("| replicas | series | samples | queries | kB back | time | in queries | peak of triage | peak of Prometheus | answer | slowest queries |")
	for field := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		require.NoError(t, err, "FLEET is a list of numbers, such as 1,100,2000")
		series := robust.Fleet(recs[0], n-1, 30*time.Minute, 15*time.Second)
		dir := t.TempDir()
		count, samples := len(series), writeBlock(t, dir, series)
		url, peak := startPrometheus(t, binary, dir)
		a := askElsewhere(t, url)
		t.Logf("| %d | %d | %d | %d | %d | %.1f s | %.1f s | %.0f MB | %.0f MB | %s %.2f at %s | %s |", n, count, samples, a.Queries,
			a.Bytes/1000, a.Took.Seconds(), a.InQueries.Seconds(), a.PeakMB, peak(), a.First, a.P, a.Where, a.Slowest)
		require.Equal(t, "device_slowdown", a.First)
		if n > 1 {
			require.Equal(t, "10.42.0.10:8000", a.Where, "the one slow replica is named")
		}
		require.LessOrEqual(t, a.Queries, 90)
		require.Less(t, a.Bytes, int64(8<<20))
		if n > 16 {
			large = append(large, a)
		}
	}
	for _, a := range large {
		require.Equal(t, large[0].Queries, a.Queries, "the number of queries does not depend on the fleet's size")
		require.Less(t, a.Bytes, 2*large[0].Bytes, "nor do the bytes that come back")
	}
}

// startPrometheus serves a data directory and returns the URL and a function that tells the peak of its memory in MB.
func startPrometheus(t *testing.T, binary, data string) (url string, peak func() float64) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte("global: {}\n"), 0o600))
	address := programtest.FreeAddress(t)
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, "--config.file="+config, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+address, "--query.timeout=5m", "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	url = "http://" + address
	require.Eventually(t, func() bool { return programtest.Answers(t, url+"/-/ready") },
		5*time.Minute, 100*time.Millisecond, "prometheus did not get ready")
	return url, func() float64 { return peakMB(t, cmd.Process.Pid) }
}

// peakMB reads the highest resident size of a process from Linux.
func peakMB(t *testing.T, pid int) float64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if kilobytes, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			v, err := strconv.ParseFloat(strings.Fields(kilobytes)[0], 64)
			require.NoError(t, err)
			return v / 1000
		}
	}
	t.Fatal("the kernel does not tell the peak of memory")
	return 0
}

// askElsewhere asks in a process of its own, whose peak of memory is that of a triage and not of making the fleet.
func askElsewhere(t *testing.T, url string) answer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsk$", "-test.v")
	cmd.Env = append(os.Environ(), "FLEET_URL="+url)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	_, line, ok := strings.Cut(string(out), answerMark)
	require.True(t, ok, string(out))
	var a answer
	require.NoError(t, json.NewDecoder(strings.NewReader(line)).Decode(&a))
	return a
}

// answerMark stands before the answer in the output of the asking process.
const answerMark = "ANSWER "

// TestAsk is the process that asks; TestFleet starts it.
func TestAsk(t *testing.T) {
	url := os.Getenv("FLEET_URL")
	if url == "" {
		t.Skip("started by TestFleet")
	}
	recs, err := eval.LoadRecordings(filepath.Join(incidents, incident))
	require.NoError(t, err)
	cases := recs[0].Cases()
	c := cases[len(cases)-1]
	counter := &counting{next: http.DefaultTransport}
	client, err := promq.NewClient(promq.Config{URL: url, RoundTripper: counter, Timeout: 5 * time.Minute})
	require.NoError(t, err)
	began := time.Now()
	rep, err := triage.NewEngine(kb.Default(), client, triage.Options{Timeout: 20 * time.Minute}).Triage(t.Context(), c.Incident)
	require.NoError(t, err)
	a := answer{
		Queries: rep.Queries, Bytes: counter.bytes.Load(), Took: time.Since(began), PeakMB: peakMB(t, os.Getpid()),
		InQueries: time.Duration(rep.QueryMS) * time.Millisecond, Verdict: string(rep.Verdict),
		First: rep.Bottlenecks[0].ID, P: rep.Bottlenecks[0].Probability,
	}
	for _, p := range rep.Bottlenecks[0].Where {
		a.Where += p.Instance
	}
	slices.SortStableFunc(rep.QueryLog, func(a, b triage.QueryRecord) int { return cmp.Compare(b.DurationMS, a.DurationMS) })
	slowest := make([]string, 0, 5)
	for _, q := range rep.QueryLog[:5] {
		slowest = append(slowest, fmt.Sprintf("%s %.1f s", q.ID, float64(q.DurationMS)/1000))
	}
	a.Slowest = strings.Join(slowest, ", ")
	line, err := json.Marshal(a)
	require.NoError(t, err)
	fmt.Printf("%s%s\n", answerMark, line)
}

// counting counts the bytes of the answers.
type counting struct {
	next  http.RoundTripper
	bytes atomic.Int64
}

func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if err == nil {
		resp.Body = &countedBody{resp.Body, &c.bytes}
	}
	return resp, err
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
