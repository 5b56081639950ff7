package memstore

import (
	"context"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// Querier implements storage.Queryable over all samples.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{store: s, mint: mint, maxt: maxt}, nil
}

// AsOf returns what a server would have held at t: samples after t do not exist. The zero time sets no limit.
func (s *Store) AsOf(t time.Time) storage.Queryable {
	if t.IsZero() {
		return s
	}
	limit := t.UnixMilli()
	return storage.QueryableFunc(func(mint, maxt int64) (storage.Querier, error) {
		return s.Querier(mint, min(maxt, limit))
	})
}

type querier struct {
	store      *Store
	mint, maxt int64 // inclusive
}

// Close implements storage.Querier.
func (*querier) Close() error { return nil }

// Select implements storage.Querier. Like a TSDB block it omits series without a sample in the range.
func (q *querier) Select(
	ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	limit := math.MaxInt
	if hints != nil {
		if !hints.DisableTrimming {
			mint, maxt = max(mint, hints.Start), min(maxt, hints.End)
		}
		if hints.Limit > 0 {
			limit = hints.Limit
		}
	}
	set := &seriesSet{pos: -1}
	for _, i := range q.store.candidates(matchers) {
		if set.err = ctx.Err(); set.err != nil {
			return set
		}
		one := &q.store.series[i]
		if !matches(one.Labels, matchers) {
			continue
		}
		if cut := between(one.Samples, mint, maxt); len(cut) > 0 && len(set.series) < limit {
			set.series = append(set.series, view{lset: one.Labels, samples: cut})
		}
	}
	return set
}

// LabelValues implements storage.LabelQuerier.
func (q *querier) LabelValues(
	ctx context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return q.labels(ctx, hints, matchers, func(l labels.Labels, add func(string)) {
		if v := l.Get(name); v != "" {
			add(v)
		}
	})
}

// LabelNames implements storage.LabelQuerier.
func (q *querier) LabelNames(
	ctx context.Context, hints *storage.LabelHints, matchers ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return q.labels(ctx, hints, matchers, func(l labels.Labels, add func(string)) {
		l.Range(func(l labels.Label) { add(l.Name) })
	})
}

func (q *querier) labels(
	ctx context.Context, hints *storage.LabelHints, matchers []*labels.Matcher, visit func(labels.Labels, func(string)),
) ([]string, annotations.Annotations, error) {
	seen := map[string]struct{}{}
	for set := q.Select(ctx, false, nil, matchers...); ; {
		if !set.Next() {
			if err := set.Err(); err != nil {
				return nil, nil, err
			}
			break
		}
		visit(set.At().Labels(), func(s string) { seen[s] = struct{}{} })
	}
	out := make([]string, 0, len(seen))
	for s := range seen {
		out = append(out, s)
	}
	slices.Sort(out)
	if hints != nil && hints.Limit > 0 && len(out) > hints.Limit {
		out = out[:hints.Limit]
	}
	return out, nil, nil
}

// candidates returns the ascending positions of the series whose metric name can match.
func (s *Store) candidates(matchers []*labels.Matcher) []int {
	for _, m := range matchers {
		if m.Name != model.MetricNameLabel {
			continue
		}
		if m.Type == labels.MatchEqual {
			return s.byName[m.Value]
		}
		if names := m.SetMatches(); m.Type == labels.MatchRegexp && len(names) > 0 {
			var out []int
			for _, name := range names {
				out = append(out, s.byName[name]...)
			}
			slices.Sort(out)
			return slices.Compact(out)
		}
	}
	all := make([]int, len(s.series))
	for i := range all {
		all[i] = i
	}
	return all
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// between returns the samples in [mint, maxt].
func between(samples []Sample, mint, maxt int64) []Sample {
	lo := sort.Search(len(samples), func(i int) bool { return samples[i].At >= mint })
	hi := sort.Search(len(samples), func(i int) bool { return samples[i].At > maxt })
	if lo >= hi {
		return nil
	}
	return samples[lo:hi]
}

type seriesSet struct {
	series []view
	pos    int
	err    error
}

func (s *seriesSet) Next() bool {
	if s.err != nil {
		return false
	}
	s.pos++
	return s.pos < len(s.series)
}

func (s *seriesSet) At() storage.Series { return s.series[s.pos] }

func (s *seriesSet) Err() error { return s.err }

func (*seriesSet) Warnings() annotations.Annotations { return nil }

// view is a series cut to a time range.
type view struct {
	lset    labels.Labels
	samples samples
}

func (v view) Labels() labels.Labels { return v.lset }

func (v view) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return storage.NewListSeriesIterator(v.samples)
}
