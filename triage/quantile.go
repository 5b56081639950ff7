package triage

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"

	"vllm-triage/triage/kb"
)

// maxQuantileWindow caps how far back a quantile is taken: every bucket of every replica is read over it.
const maxQuantileWindow = 15 * time.Minute

// quantile95 is the quantile of signals with the fold p95.
const quantile95 = 0.95

// isQuantile says that a signal is a quantile of a histogram.
func isQuantile(s kb.Signal) bool { return s.Fold == "p95" }

// readQuantiles reads the quantiles that people know from their dashboards. They are no evidence, so two moments are
// enough, one for now and one for before: at every point of the grid they were the slowest queries of a large fleet by
// far (2,000 replicas: 8 s each).
func (e *Engine) readQuantiles(ctx context.Context, log *queryLog, p *plan, o *observations) map[string]*observation {
	out := map[string]*observation{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	watched := watchedBy(p.in.Alerts)
	for _, s := range e.kb.Signals {
		if !isQuantile(s) {
			continue
		}
		wg.Go(func() {
			draw := slices.ContainsFunc(watched, func(words map[string]bool) bool { return watches(words, s) })
			x := e.quantile(ctx, log, p, o, s, draw)
			mu.Lock()
			defer mu.Unlock()
			out[s.ID] = x
		})
	}
	wg.Wait()
	return out
}

// quantile reads one of them: at two moments, or, where it alerted and will be drawn, as a series.
func (e *Engine) quantile(ctx context.Context, log *queryLog, p *plan, o *observations, s kb.Signal, draw bool) *observation {
	x := &observation{sig: s, expr: e.expression(p, s, nil)}
	if x.expr == "" {
		x.state, x.why = Absent, "no such metric in this scope"
		return x
	}
	if draw {
		e.drawQuantile(ctx, log, p, x)
		return x
	}
	level, top, err := e.quantileIn(ctx, log, p, o, s, o.late)
	switch {
	case err != nil:
		x.state, x.why = Failed, failure(err)
		return x
	case math.IsNaN(level):
		x.state, x.why = Stale, "exported, but without a sample in the time looked at"
		return x
	}
	x.state, x.scalar = Present, map[string]float64{"level": level}
	if level >= top {
		x.scalar["high"] = top // It lies in the last bucket, which has no end.
	}
	if o.baseline.len() > 0 {
		if base, _, err := e.quantileIn(ctx, log, p, o, s, o.baseline); err == nil && !math.IsNaN(base) {
			x.scalar["base"] = base
		}
	}
	return x
}

// drawQuantile reads a quantile as a series, because it is what alerted and will be drawn, at a quarter of the points.
func (e *Engine) drawQuantile(ctx context.Context, log *queryLog, p *plan, x *observation) {
	const every = 4
	fine := p.grid
	coarse := *p
	coarse.grid.step = every * fine.step
	coarse.grid.start = fine.end.Add(-fine.end.Sub(fine.start) / coarse.grid.step * coarse.grid.step)
	if e.fetch(ctx, log, &coarse, x); x.state != Present {
		return
	}
	values := newSeries(fine.points())
	for i := range values {
		// Counted from the end, which both grids share; a value stands for the points up to it.
		values[len(values)-1-i] = at(x.values, len(x.values)-1-i/every)
	}
	x.values = values
}

// quantileIn is the quantile over a range of the grid, NaN when nothing was counted in it, and the upper bound of the last
// bucket that has one: a quantile there may be anything above.
func (e *Engine) quantileIn(
	ctx context.Context, log *queryLog, p *plan, o *observations, s kb.Signal, in promRange,
) (level, top float64, err error) {
	whole := *p
	whole.rate = min(max(o.lasts(in), p.rate), maxQuantileWindow)
	a := log.instant(ctx, s.ID, "sum by (le) ("+e.innermost(&whole, s)+")", o.time(max(in.to-1, in.from)))
	if a.err != nil {
		return math.NaN(), math.NaN(), a.err
	}
	v, ok := a.value.(model.Vector)
	if !ok || len(v) == 0 {
		return math.NaN(), math.NaN(), nil
	}
	buckets, top := make(promql.Buckets, 0, len(v)), math.Inf(-1)
	for _, b := range v {
		bound, err := strconv.ParseFloat(string(b.Metric["le"]), 64)
		if err != nil {
			continue
		}
		buckets = append(buckets, promql.Bucket{UpperBound: bound, Count: float64(b.Value)})
		if !math.IsInf(bound, 1) {
			top = max(top, bound)
		}
	}
	level, _, _, _, _, _ = promql.BucketQuantile(quantile95, buckets)
	if math.IsInf(level, 0) {
		level = math.NaN()
	}
	return level, top, nil
}
