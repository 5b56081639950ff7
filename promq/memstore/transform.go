package memstore

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Apply returns a store of what f makes of each series: none, one or several. f must not change the samples it is given, but
// may return them or parts of them.
func (s *Store) Apply(f func(Series) []Series) *Store {
	out := make([]Series, 0, len(s.series))
	for _, one := range s.series {
		one.Samples = slices.Clip(one.Samples)
		out = append(out, f(one)...)
	}
	return New(out)
}

// Map changes label sets; series for which keep is false are left out. Series that become equal are merged.
func (s *Store) Map(f func(labels.Labels) (_ labels.Labels, keep bool)) *Store {
	return s.Apply(func(one Series) []Series {
		l, keep := f(one.Labels)
		if !keep {
			return nil
		}
		return []Series{{Labels: l, Samples: one.Samples}}
	})
}

// Rename gives metrics other names: new names by old ones.
func (s *Store) Rename(names map[string]string) *Store {
	return s.Map(func(l labels.Labels) (labels.Labels, bool) {
		name, ok := names[l.Get(model.MetricNameLabel)]
		if !ok {
			return l, true
		}
		return labels.NewBuilder(l).Set(model.MetricNameLabel, name).Labels(), true
	})
}

// Drop leaves out the metrics of the given names. A name that ends in * is a prefix.
func (s *Store) Drop(names ...string) *Store {
	return s.Map(func(l labels.Labels) (labels.Labels, bool) {
		name := l.Get(model.MetricNameLabel)
		for _, drop := range names {
			prefix, isPrefix := strings.CutSuffix(drop, "*")
			if name == drop || isPrefix && strings.HasPrefix(name, prefix) {
				return l, false
			}
		}
		return l, true
	})
}

// Shift moves all samples by d, rounded to milliseconds. Values that are times themselves, such as
// process_start_time_seconds, stay as they are.
func (s *Store) Shift(d time.Duration) *Store {
	return s.Apply(func(one Series) []Series {
		moved := slices.Clone(one.Samples)
		for i := range moved {
			moved[i].At += d.Milliseconds()
		}
		return []Series{{Labels: one.Labels, Samples: moved}}
	})
}

// Cut keeps the samples from first up to and including last. A zero time leaves that end open.
func (s *Store) Cut(first, last time.Time) *Store {
	lo, hi := s.mint, s.maxt
	if !first.IsZero() {
		lo = first.UnixMilli()
	}
	if !last.IsZero() {
		hi = last.UnixMilli()
	}
	return s.Apply(func(one Series) []Series {
		return []Series{{Labels: one.Labels, Samples: between(one.Samples, lo, hi)}}
	})
}

// End drops the samples of some series from a moment on and marks the end, as Prometheus does for what a target exports no
// more.
func (s *Store) End(at time.Time, which func(labels.Labels) bool) *Store {
	ms := at.UnixMilli()
	return s.Apply(func(one Series) []Series {
		if !which(one.Labels) {
			return []Series{one}
		}
		kept := between(one.Samples, math.MinInt64, ms-1)
		if len(kept) == 0 {
			return nil
		}
		return []Series{{Labels: one.Labels, Samples: append(slices.Clone(kept), StaleAt(ms))}}
	})
}

// Merge returns a store with the series of all. Of samples of one series at one time that of s, or of the earliest argument,
// stays.
func (s *Store) Merge(others ...*Store) *Store {
	out := slices.Clone(s.series)
	for _, other := range others {
		out = append(out, other.series...)
	}
	for i := range out {
		out[i].Samples = slices.Clip(out[i].Samples)
	}
	return New(out)
}

// Thin returns what a server scraping only every so often would hold. All series of one target lose the same scrapes, as a
// scrape is one instant for the whole target. Staleness markers stay, because that server would have written them as well.
func (s *Store) Thin(every time.Duration) *Store {
	kept := map[string]map[int64]bool{}
	for key, times := range s.scrapes() {
		kept[key] = thinTimes(times, every.Milliseconds())
	}
	return s.Apply(func(one Series) []Series {
		keep := kept[targetOf(one.Labels)]
		var out []Sample
		for _, sample := range one.Samples {
			if keep[sample.At] || sample.IsStale() {
				out = append(out, sample)
			}
		}
		return []Series{{Labels: one.Labels, Samples: out}}
	})
}

// scrapes returns the sorted times at which each target was scraped.
func (s *Store) scrapes() map[string][]int64 {
	all := map[string][]int64{}
	for _, one := range s.series {
		key := targetOf(one.Labels)
		for i := range one.Samples {
			if !one.Samples[i].IsStale() {
				all[key] = append(all[key], one.Samples[i].At)
			}
		}
	}
	for key, times := range all {
		slices.Sort(times)
		all[key] = slices.Compact(times)
	}
	return all
}

// targetOf names what writes a series at common times: a scraped target, or the rule that makes alerts about it.
func targetOf(l labels.Labels) string {
	return l.Get("job") + "\xff" + l.Get("instance") + "\xff" + l.Get("alertname")
}

// thinTimes keeps times at least every apart. Scrapes jitter, so half the usual gap is forgiven: 3 × 5 s counts as 15 s even
// if it was 14.998.
func thinTimes(times []int64, every int64) map[int64]bool {
	gaps := make([]int64, 0, len(times))
	for i := 1; i < len(times); i++ {
		gaps = append(gaps, times[i]-times[i-1])
	}
	slices.Sort(gaps)
	var slack int64
	if len(gaps) > 0 {
		slack = gaps[len(gaps)/2] / 2
	}
	keep := map[int64]bool{}
	for i, last := 0, int64(0); i < len(times); i++ {
		if i == 0 || times[i]-last >= every-slack {
			keep[times[i]] = true
			last = times[i]
		}
	}
	return keep
}
