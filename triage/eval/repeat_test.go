package eval_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq/recording"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

// sample takes one case of every few recordings, others with each offset.
func sample(t testing.TB, every, offset int) []eval.Case {
	t.Helper()
	var out []eval.Case
	for i, r := range recordings(t) {
		if i%every == offset {
			cs := r.Cases()
			out = append(out, cs[len(cs)-1])
		}
	}
	return out
}

// bytesOf is a report without what it measured about itself.
func bytesOf(t testing.TB, rep triage.Report) string {
	t.Helper()
	rep.DurationMS, rep.QueryMS = 0, 0
	for i := range rep.QueryLog {
		rep.QueryLog[i].DurationMS = 0
	}
	data, err := json.MarshalIndent(rep, "", " ")
	require.NoError(t, err)
	return string(data)
}

// The same question to the same data gives the same bytes: in every run, on any number of CPUs, and in whatever order the
// server lists its series. Not parallel: it changes GOMAXPROCS.
func TestSameInputSameBytes(t *testing.T) {
	base := kb.Default()
	procs := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	for _, c := range sample(t, 4, 1) {
		want := ""
		for i := range 5 {
			runtime.GOMAXPROCS(1 + i%4)
			rep, err := eval.Ask(t.Context(), base, c, eval.Options{Transport: shuffled(uint64(i))})
			require.NoError(t, err)
			got := bytesOf(t, rep)
			if want == "" {
				want = got
			}
			require.Equal(t, want, got, "%s, run %d", c.Name(), i)
		}
	}
}

// shuffled changes the order in which answers list their series, and how long each takes; seed 0 changes nothing.
func shuffled(seed uint64) func(eval.Case, http.RoundTripper) http.RoundTripper {
	return func(_ eval.Case, next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err != nil || seed == 0 {
				return resp, err
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return nil, err
			}
			body = shuffle(body, seed)
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return resp, nil
		})
	}
}

func shuffle(body []byte, seed uint64) []byte {
	var doc map[string]any
	if json.Unmarshal(body, &doc) != nil {
		return body
	}
	list, ok := doc["data"].([]any)
	if data, isMap := doc["data"].(map[string]any); isMap {
		list, ok = data["result"].([]any)
	}
	if !ok {
		return body
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	out, err := json.Marshal(doc)
	if err != nil {
		return body
	}
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Nothing after the moment of the question is asked for, and a recording that ends there gives the same report.
func TestNothingLaterIsRead(t *testing.T) {
	t.Parallel()
	base := kb.Default()
	for _, c := range sample(t, 3, 2) {
		now := c.Incident.Now
		watch := func(_ eval.Case, next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if err := req.ParseForm(); err != nil {
					return nil, err
				}
				for _, name := range []string{"time", "start", "end"} {
					for _, v := range req.Form[name] {
						if at, ok := moment(v); !ok || at.After(now.Add(time.Millisecond)) {
							t.Errorf("%s: %s=%s is after the question at %s", c.Name(), name, v, now)
						}
					}
				}
				req.Body = http.NoBody
				req.Method, req.URL.RawQuery = http.MethodGet, req.Form.Encode()
				return next.RoundTrip(req)
			})
		}
		whole, err := eval.Ask(t.Context(), base, c, eval.Options{Transport: watch})
		require.NoError(t, err)
		cut := c
		cut.Data = recording.FromStore(c.Data.Store().Cut(time.Time{}, now))
		ended, err := eval.Ask(t.Context(), base, cut, eval.Options{})
		require.NoError(t, err)
		require.Equal(t, bytesOf(t, ended), bytesOf(t, whole), c.Name())
	}
}

// moment reads a time as the Prometheus API takes it.
func moment(v string) (time.Time, bool) {
	if f, err := strconv.ParseFloat(v, 64); err == nil {
		return time.UnixMilli(int64(f * 1000)), true
	}
	at, err := time.Parse(time.RFC3339Nano, v)
	return at, err == nil
}

// Weighing with remembered answers gives what asking anew gives.
func TestMemoChangesNothing(t *testing.T) {
	t.Parallel()
	base := kb.Default()
	for _, c := range sample(t, 8, 3) {
		var memo *eval.Memo
		opts := eval.Options{Querier: func(_ int, next triage.Querier) triage.Querier {
			if memo == nil {
				memo = eval.NewMemo(next)
			}
			return memo
		}}
		want, err := eval.Ask(t.Context(), base, c, eval.Options{})
		require.NoError(t, err)
		for range 2 {
			got, err := eval.Ask(t.Context(), base, c, opts)
			require.NoError(t, err)
			require.Equal(t, bytesOf(t, want), bytesOf(t, got), c.Name())
		}
	}
}
