package eval_test

import (
	stdcontext "context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

// stopwatch measures how long at least one request was under way: what is left of a triage is its own time.
type stopwatch struct {
	next triage.Querier

	mu    sync.Mutex
	open  int
	since time.Time
	busy  time.Duration
	asked int
}

func (s *stopwatch) start() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.open++; s.open == 1 {
		s.since = time.Now()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open--; s.open == 0 {
			s.busy += time.Since(s.since)
		}
	}
}

func (s *stopwatch) Query(ctx stdcontext.Context, expr string, at time.Time) (promq.Result, error) {
	stop := s.start()
	defer stop()
	return s.next.Query(ctx, expr, at)
}

func (s *stopwatch) QueryRange(ctx stdcontext.Context, expr string, start, end time.Time, step time.Duration) (promq.Result, error) {
	stop := s.start()
	defer stop()
	return s.next.QueryRange(ctx, expr, start, end, step)
}

func (s *stopwatch) LabelValues(
	ctx stdcontext.Context, label string, matchers []string, start, end time.Time,
) (values, warnings []string, err error) {
	stop := s.start()
	defer stop()
	return s.next.LabelValues(ctx, label, matchers, start, end)
}

// benchCase is an incident with every symptom: traffic, full KV cache, preemptions, queue, latency.
func benchCase(t testing.TB) eval.Case {
	t.Helper()
	for _, r := range recordings(t) {
		if r.ID == "kv-traffic-surge-a" {
			cs := r.Cases()
			return cs[len(cs)-1]
		}
	}
	t.Fatal("recording kv-traffic-surge-a is not there")
	return eval.Case{}
}

// BenchmarkTriage is one triage of a recorded incident from question to report, the PromQL engine in the same process.
// own-ms is what is left when no query is under way; allocations are those of both, BenchmarkOwn has the triage's alone.
func BenchmarkTriage(b *testing.B) {
	base, c := kb.Default(), benchCase(b)
	b.ReportAllocs()
	var busy time.Duration
	queries := 0
	for b.Loop() {
		var watch *stopwatch
		_, err := eval.Ask(b.Context(), base, c, eval.Options{Querier: func(_ int, next triage.Querier) triage.Querier {
			watch = &stopwatch{next: next}
			return watch
		}})
		if err != nil {
			b.Fatal(err)
		}
		busy += watch.busy
		queries += watch.asked
	}
	n := float64(b.N)
	b.ReportMetric(float64(queries)/n, "queries/op")
	b.ReportMetric(busy.Seconds()*1000/n, "query-ms/op")
	b.ReportMetric((b.Elapsed()-busy).Seconds()*1000/n, "own-ms/op")
}

// BenchmarkOwn is the same triage with every answer at hand: its own time and allocations.
func BenchmarkOwn(b *testing.B) {
	base, c := kb.Default(), benchCase(b)
	opts := remembering()
	_, err := eval.Ask(b.Context(), base, c, opts)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := eval.Ask(b.Context(), base, c, opts); err != nil {
			b.Fatal(err)
		}
	}
}

// remembering asks the data once and answers from memory after that.
func remembering() eval.Options {
	var memo *eval.Memo
	return eval.Options{Querier: func(_ int, next triage.Querier) triage.Querier {
		if memo == nil {
			memo = eval.NewMemo(next)
		}
		return memo
	}}
}

// The budget of one triage in queries. Its own time is measured by BenchmarkOwn, never asserted.
func TestBudget(t *testing.T) {
	t.Parallel()
	rep, err := eval.Ask(t.Context(), kb.Default(), benchCase(t), remembering())
	require.NoError(t, err)
	require.LessOrEqual(t, rep.Queries, 90)
}
