// Package memstore holds series in memory and answers a PromQL engine from them.
//
// It is the common ground of recordings (read from TSDB blocks) and of series written by hand in tests. A store never
// changes once built; transformations return a new one.
package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Series is a label set with its samples.
type Series struct {
	Labels  labels.Labels
	Samples []Sample
}

// Store is an immutable set of series, sorted by labels. It is safe for use by several goroutines.
type Store struct {
	series []Series
	byName map[string][]int // positions in series, ascending
	mint   int64
	maxt   int64
}

// New returns a store of the given series, in any order. Samples of equal label sets are merged and sorted by time; of
// several at one time the first given stays, as in Prometheus. Series without samples are dropped. New takes the slices over.
func New(series []Series) *Store {
	slices.SortStableFunc(series, func(a, b Series) int { return labels.Compare(a.Labels, b.Labels) })
	s := &Store{byName: map[string][]int{}}
	for _, one := range series {
		if len(one.Samples) == 0 {
			continue
		}
		if n := len(s.series); n > 0 && labels.Equal(s.series[n-1].Labels, one.Labels) {
			s.series[n-1].Samples = append(slices.Clip(s.series[n-1].Samples), one.Samples...)
			continue
		}
		s.series = append(s.series, one)
	}
	for i := range s.series {
		one := &s.series[i]
		one.Samples = ordered(one.Samples)
		first, last := one.Samples[0].At, one.Samples[len(one.Samples)-1].At
		if i == 0 {
			s.mint, s.maxt = first, last
		}
		s.mint, s.maxt = min(s.mint, first), max(s.maxt, last)
		name := one.Labels.Get(model.MetricNameLabel)
		s.byName[name] = append(s.byName[name], i)
	}
	return s
}

func ordered(samples []Sample) []Sample {
	byTime := func(a, b Sample) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(samples, byTime) {
		slices.SortStableFunc(samples, byTime)
	}
	return slices.CompactFunc(samples, func(a, b Sample) bool { return a.At == b.At })
}

// Len returns the number of series.
func (s *Store) Len() int { return len(s.series) }

// Series returns all series sorted by labels. The caller must not change them.
func (s *Store) Series() []Series { return s.series }

// Bounds returns the times of the first and the last sample, both zero for an empty store.
func (s *Store) Bounds() (first, last time.Time) {
	if len(s.series) == 0 {
		return time.Time{}, time.Time{}
	}
	return time.UnixMilli(s.mint).UTC(), time.UnixMilli(s.maxt).UTC()
}
