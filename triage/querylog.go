package triage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"vllm-triage/promq"
)

// queryLog asks on behalf of one triage, bounded, and keeps a record of every request, so that a report can show its work.
type queryLog struct {
	q     Querier
	slots chan struct{}

	mu       sync.Mutex
	records  []QueryRecord
	warnings []string
	inFlight int
	since    time.Time     // When inFlight left 0.
	busy     time.Duration // How long at least one request was in flight.
}

// answer is one result with what became of it.
type answer struct {
	value   model.Value
	partial bool
	err     error
}

func (a answer) empty() bool {
	switch v := a.value.(type) {
	case model.Vector:
		return len(v) == 0
	case model.Matrix:
		return len(v) == 0
	case *model.Scalar:
		return v == nil
	default:
		return true
	}
}

func (l *queryLog) instant(ctx context.Context, id, expr string, at time.Time) answer {
	return l.do(ctx, id, expr, func() (promq.Result, error) { return l.q.Query(ctx, expr, at) })
}

func (l *queryLog) ranged(ctx context.Context, id, expr string, g grid) answer {
	return l.do(ctx, id, expr, func() (promq.Result, error) { return l.q.QueryRange(ctx, expr, g.start, g.end, g.step) })
}

// names lists the metric names that matching series have had between start and end.
func (l *queryLog) names(ctx context.Context, id string, matchers []string, start, end time.Time) ([]string, error) {
	var out []string
	a := l.do(ctx, id, "label values of __name__ for "+strings.Join(matchers, " or "), func() (promq.Result, error) {
		values, warnings, err := l.q.LabelValues(ctx, "__name__", matchers, start, end)
		out = values
		v := model.Vector{}
		for range values {
			v = append(v, nil)
		}
		return promq.Result{Value: v, Warnings: warnings}, err
	})
	return out, a.err
}

func (l *queryLog) do(ctx context.Context, id, expr string, ask func() (promq.Result, error)) answer {
	rec := QueryRecord{ID: id, Query: expr, Outcome: "value"}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		rec.Outcome, rec.Error = "error", ctx.Err().Error()
		l.add(rec, promq.Result{})
		return answer{err: ctx.Err()}
	}
	traced := traceQuery(ctx, id, expr)
	defer func() { traced(rec) }()
	began := l.enter()
	res, err := ask()
	took := l.leave(began)
	a := answer{value: res.Value, partial: len(res.Warnings) > 0, err: err}
	rec.DurationMS = took.Milliseconds()
	switch {
	case err != nil:
		rec.Outcome, rec.Error, a.value = "error", err.Error(), nil // A value beside an error may be half filled.
	case a.partial:
		rec.Outcome = "partial"
	case a.empty():
		rec.Outcome = "empty"
	}
	l.add(rec, res)
	return a
}

func (l *queryLog) enter() time.Time {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight == 0 {
		l.since = now
	}
	l.inFlight++
	return now
}

func (l *queryLog) leave(began time.Time) time.Duration {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight--; l.inFlight == 0 {
		l.busy += now.Sub(l.since)
	}
	return now.Sub(began)
}

func (l *queryLog) add(rec QueryRecord, res promq.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, rec)
	for _, w := range res.Warnings {
		if !slices.Contains(l.warnings, w) && len(l.warnings) < 10 {
			l.warnings = append(l.warnings, w)
		}
	}
}

// count is how many requests were made.
func (l *queryLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// fill copies the record into a report, in an order that does not depend on which answer came first.
func (l *queryLog) fill(r *Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.records, func(a, b QueryRecord) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Query, b.Query))
	})
	r.QueryLog = l.records
	r.Queries = len(l.records)
	r.QueryMS = l.busy.Milliseconds()
}

// tally tells the plan how the requests went.
func (l *queryLog) tally(p *plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.asked = len(l.records)
	for _, r := range l.records {
		switch r.Outcome {
		case "error":
			p.failed++
		case "partial":
			p.partial++
		}
	}
	p.warnings = slices.Clone(l.warnings)
	slices.Sort(p.warnings)
}
