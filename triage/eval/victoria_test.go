package eval_test

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
	"vllm-triage/promq/memstore"
	"vllm-triage/promq/programtest"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

// TestVictoriaMetricsGivesTheSameAnswer imports recordings into a real VictoriaMetrics and asks both.
func TestVictoriaMetricsGivesTheSameAnswer(t *testing.T) {
	t.Parallel()
	bin, err := exec.LookPath("victoria-metrics")
	if err != nil {
		t.Skip("victoria-metrics is not installed")
	}
	base := kb.Default()
	for _, id := range []string{"kv-longer-outputs-a", "prefill-prefix-collapse-a", "replica-imbalance-a", "cap-config-change-a"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			cases, err := eval.Load("../testdata/incidents/" + id)
			require.NoError(t, err)
			c := cases[len(cases)-1]
			store := c.Data.Store().Cut(time.Time{}, c.Incident.Now)

			own, err := promq.NewClient(promq.Config{
				URL: "http://recording", HTTP: promq.DefaultHTTP(), RoundTripper: c.Data.RoundTripper(c.Incident.Now),
			})
			require.NoError(t, err)
			want, err := triage.NewEngine(base, own, triage.Options{}).Triage(t.Context(), c.Incident)
			require.NoError(t, err)

			url := startVictoria(t, bin)
			importInto(t, url, store)
			other, err := promq.NewClient(promq.Config{
				URL: url, HTTP: promq.DefaultHTTP(),
				// Without these it hides the last 30 seconds and answers from its cache.
				Params: map[string][]string{"latency_offset": {"1ms"}, "nocache": {"1"}},
			})
			require.NoError(t, err)
			got, err := triage.NewEngine(base, other, triage.Options{}).Triage(t.Context(), c.Incident)
			require.NoError(t, err)
			for _, q := range got.QueryLog {
				require.NotEqual(t, "error", q.Outcome, "%s: %s: %s", q.ID, q.Query, q.Error)
			}
			require.Equal(t, want.Verdict, got.Verdict)
			require.Equal(t, want.Bottlenecks[0].ID, got.Bottlenecks[0].ID)
			require.Equal(t, want.Triggers[0].ID, got.Triggers[0].ID)
			require.InDelta(t, want.Bottlenecks[0].Probability, got.Bottlenecks[0].Probability, 0.15)
		})
	}
}

func startVictoria(t *testing.T, bin string) string {
	t.Helper()
	address := programtest.FreeAddress(t)
	cmd := exec.CommandContext(t.Context(), bin, "-storageDataPath="+t.TempDir(), "-httpListenAddr="+address,
		"-retentionPeriod=100y", "-loggerLevel=ERROR",
		// vllm:cache_config_info has more labels than the 30 that it keeps by default; without num_gpu_blocks the size of the
		// KV cache is unknown.
		"-maxLabelsPerTimeseries=60")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool { return programtest.Answers(t, "http://"+address+"/health") },
		20*time.Second, 50*time.Millisecond)
	return "http://" + address
}

// importInto sends series in VictoriaMetrics' JSON line format and waits until they can be read.
func importInto(t *testing.T, url string, store *memstore.Store) {
	t.Helper()
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	for _, s := range store.Series() {
		line := struct {
			Metric     map[string]string `json:"metric"`
			Values     []*float64        `json:"values"`
			Timestamps []int64           `json:"timestamps"`
		}{Metric: map[string]string{}}
		s.Labels.Range(func(l labels.Label) { line.Metric[l.Name] = l.Value })
		for _, x := range s.Samples {
			if value.IsStaleNaN(x.Value) || math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
				continue // The format has no staleness markers.
			}
			line.Values = append(line.Values, &x.Value)
			line.Timestamps = append(line.Timestamps, x.At)
		}
		if len(line.Values) > 0 {
			require.NoError(t, enc.Encode(line))
		}
	}
	post := func(path string, data []byte) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, bytes.NewReader(data))
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Less(t, res.StatusCode, 300, path)
	}
	post("/api/v1/import", body.Bytes())
	post("/internal/force_flush", nil)
}
