package eval

import (
	"context"
	"fmt"
	"sync"
	"time"

	"vllm-triage/promq"
	"vllm-triage/triage"
)

// Memo remembers the answers of a querier, so that a case can be weighed many times while its data is read once. It is
// safe for use by several goroutines. Answers are shared: who uses one must not change it.
type Memo struct {
	next triage.Querier

	mu    sync.Mutex
	known map[string]*remembered
}

type remembered struct {
	once   sync.Once
	result promq.Result
	values []string
	err    error
}

// NewMemo returns an empty memory in front of next.
func NewMemo(next triage.Querier) *Memo { return &Memo{next: next, known: map[string]*remembered{}} }

func (m *Memo) at(format string, args ...any) *remembered {
	key := fmt.Sprintf(format, args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.known[key]
	if !ok {
		r = &remembered{}
		m.known[key] = r
	}
	return r
}

// Query implements triage.Querier.
func (m *Memo) Query(ctx context.Context, expr string, at time.Time) (promq.Result, error) {
	r := m.at("instant %d %s", at.UnixNano(), expr)
	r.once.Do(func() { r.result, r.err = m.next.Query(ctx, expr, at) })
	return r.result, r.err
}

// QueryRange implements triage.Querier.
func (m *Memo) QueryRange(ctx context.Context, expr string, start, end time.Time, step time.Duration) (promq.Result, error) {
	r := m.at("range %d %d %d %s", start.UnixNano(), end.UnixNano(), step, expr)
	r.once.Do(func() { r.result, r.err = m.next.QueryRange(ctx, expr, start, end, step) })
	return r.result, r.err
}

// LabelValues implements triage.Querier.
func (m *Memo) LabelValues(
	ctx context.Context, label string, matchers []string, start, end time.Time,
) (values, warnings []string, err error) {
	r := m.at("values %d %d %s %q", start.UnixNano(), end.UnixNano(), label, matchers)
	r.once.Do(func() {
		r.values, r.result.Warnings, r.err = m.next.LabelValues(ctx, label, matchers, start, end)
	})
	return r.values, r.result.Warnings, r.err
}

// remember gives each case a memory of its own that lasts over several runs.
func remember(opts Options, cases int) Options {
	memos := make([]*Memo, cases)
	inner := opts.Querier
	opts.Querier = func(i int, next triage.Querier) triage.Querier {
		// A case is run by one goroutine at a time.
		if memos[i] == nil {
			if inner != nil {
				next = inner(i, next)
			}
			memos[i] = NewMemo(next)
		}
		return memos[i]
	}
	return opts
}
