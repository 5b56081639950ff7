package memstore_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vllm-triage/promq/memstore"
)

var stale = math.Float64frombits(value.StaleNaN)

// of builds a series of one value every 5 s from time zero on.
func of(name string, pairs []string, vs ...float64) memstore.Series {
	s := memstore.Series{Labels: labels.FromStrings(append([]string{"__name__", name}, pairs...)...)}
	for i, v := range vs {
		s.Samples = append(s.Samples, memstore.Sample{At: int64(i) * 5000, Value: v})
	}
	return s
}

// text writes a store as one line a series: seconds:value, with "stale" for the marker.
func text(series []memstore.Series) string {
	var b strings.Builder
	for _, s := range series {
		b.WriteString(s.Labels.String())
		for i := range s.Samples {
			one := &s.Samples[i]
			switch {
			case one.IsStale():
				fmt.Fprintf(&b, " %g:stale", float64(one.At)/1000)
			default:
				fmt.Fprintf(&b, " %g:%g", float64(one.At)/1000, one.Value)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func demo() *memstore.Store {
	return memstore.New([]memstore.Series{
		of("up", []string{"job", "v", "instance", "b"}, 1, 1, 1, 1),
		of("up", []string{"job", "v", "instance", "a"}, 1, 1, stale),
		of("x", []string{"job", "v", "instance", "a"}, 0, 10, 20, 30),
	})
}

func TestNewSortsAndMerges(t *testing.T) {
	t.Parallel()
	unordered := memstore.Series{Labels: labels.FromStrings("__name__", "a"), Samples: []memstore.Sample{
		{At: 2000, Value: 2}, {At: 1000, Value: 1}, {At: 2000, Value: 99},
	}}
	s := memstore.New([]memstore.Series{
		of("b", nil, 7),
		unordered,
		{Labels: labels.FromStrings("__name__", "none")},
		{Labels: labels.FromStrings("__name__", "a"), Samples: []memstore.Sample{{At: 500, Value: 5}, {At: 1000, Value: 98}}},
	})
	require.Equal(t, "{__name__=\"a\"} 0.5:5 1:1 2:2\n{__name__=\"b\"} 0:7\n", text(s.Series()))
	require.Equal(t, 2, s.Len())
	first, last := s.Bounds()
	require.Equal(t, int64(0), first.UnixMilli())
	require.Equal(t, int64(2000), last.UnixMilli())

	first, last = memstore.New(nil).Bounds()
	require.True(t, first.IsZero() && last.IsZero())
}

// selected returns what a querier sees, one line a series.
func selected(t *testing.T, q storage.Queryable, mint, maxt int64, hints *storage.SelectHints, ms ...*labels.Matcher) string {
	t.Helper()
	querier, err := q.Querier(mint, maxt)
	require.NoError(t, err)
	defer querier.Close()
	set := querier.Select(t.Context(), true, hints, ms...)
	var out []memstore.Series
	for set.Next() {
		one := memstore.Series{Labels: set.At().Labels()}
		it := set.At().Iterator(nil)
		for it.Next() != chunkenc.ValNone {
			at, v := it.At()
			one.Samples = append(one.Samples, memstore.Sample{At: at, Value: v})
		}
		require.NoError(t, it.Err())
		out = append(out, one)
	}
	require.NoError(t, set.Err())
	return text(out)
}

func matcher(typ labels.MatchType, name, v string) *labels.Matcher {
	return labels.MustNewMatcher(typ, name, v)
}

func TestSelect(t *testing.T) {
	t.Parallel()
	const (
		upA = `{__name__="up", instance="a", job="v"} 0:1 5:1 10:stale` + "\n"
		upB = `{__name__="up", instance="b", job="v"} 0:1 5:1 10:1 15:1` + "\n"
		x   = `{__name__="x", instance="a", job="v"} 0:0 5:10 10:20 15:30` + "\n"
	)
	name := func(typ labels.MatchType, v string) *labels.Matcher { return matcher(typ, "__name__", v) }
	for what, tt := range map[string]struct {
		mint, maxt int64
		hints      *storage.SelectHints
		ms         []*labels.Matcher
		want       string
	}{
		"name":           {0, 99_000, nil, []*labels.Matcher{name(labels.MatchEqual, "up")}, upA + upB},
		"unknown name":   {0, 99_000, nil, []*labels.Matcher{name(labels.MatchEqual, "nope")}, ""},
		"names":          {0, 99_000, nil, []*labels.Matcher{name(labels.MatchRegexp, "x|up|up")}, upA + upB + x},
		"name pattern":   {0, 99_000, nil, []*labels.Matcher{name(labels.MatchRegexp, "u.+")}, upA + upB},
		"not the name":   {0, 99_000, nil, []*labels.Matcher{name(labels.MatchNotEqual, "up")}, x},
		"not the names":  {0, 99_000, nil, []*labels.Matcher{name(labels.MatchNotRegexp, "up|y")}, x},
		"label":          {0, 99_000, nil, []*labels.Matcher{matcher(labels.MatchEqual, "instance", "a")}, upA + x},
		"missing label":  {0, 99_000, nil, []*labels.Matcher{matcher(labels.MatchEqual, "pod", "")}, upA + upB + x},
		"both":           {0, 99_000, nil, []*labels.Matcher{name(labels.MatchEqual, "up"), matcher(labels.MatchNotEqual, "instance", "a")}, upB},
		"all":            {0, 99_000, nil, nil, upA + upB + x},
		"window":         {5000, 5000, nil, []*labels.Matcher{name(labels.MatchEqual, "x")}, `{__name__="x", instance="a", job="v"} 5:10` + "\n"},
		"no sample left": {15_000, 20_000, nil, []*labels.Matcher{name(labels.MatchEqual, "up")}, `{__name__="up", instance="b", job="v"} 15:1` + "\n"},
		"hints cut": {
			0, 99_000, &storage.SelectHints{Start: 10_000, End: 12_000},
			[]*labels.Matcher{name(labels.MatchEqual, "x")},
			`{__name__="x", instance="a", job="v"} 10:20` + "\n",
		},
		"hints may not widen": {
			5000, 5000, &storage.SelectHints{Start: 0, End: 99_000},
			[]*labels.Matcher{name(labels.MatchEqual, "x")},
			`{__name__="x", instance="a", job="v"} 5:10` + "\n",
		},
		"hint not to trim": {
			5000, 5000, &storage.SelectHints{Start: 90_000, End: 99_000, DisableTrimming: true},
			[]*labels.Matcher{name(labels.MatchEqual, "x")},
			`{__name__="x", instance="a", job="v"} 5:10` + "\n",
		},
		"limit":    {0, 99_000, &storage.SelectHints{End: 99_000, Limit: 1}, nil, upA},
		"reversed": {10_000, 5000, nil, nil, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, selected(t, demo(), tt.mint, tt.maxt, tt.hints, tt.ms...))
		})
	}
}

func TestAsOf(t *testing.T) {
	t.Parallel()
	s := demo()
	require.Equal(t, `{__name__="x", instance="a", job="v"} 0:0 5:10`+"\n",
		selected(t, s.AsOf(time.UnixMilli(9999)), 0, 99_000, nil, matcher(labels.MatchEqual, "__name__", "x")))
	require.Equal(t, text(s.Series()), selected(t, s.AsOf(time.Time{}), 0, 99_000, nil))
}

func TestSelectHeedsTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q, err := demo().Querier(0, 99_000)
	require.NoError(t, err)
	set := q.Select(ctx, false, nil)
	require.False(t, set.Next())
	require.ErrorIs(t, set.Err(), context.Canceled)
	_, _, err = q.LabelNames(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestLabelQueries(t *testing.T) {
	t.Parallel()
	q, err := demo().Querier(15_000, 99_000)
	require.NoError(t, err)
	names, _, err := q.LabelNames(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"__name__", "instance", "job"}, names)
	values, _, err := q.LabelValues(t.Context(), "instance", nil, matcher(labels.MatchEqual, "__name__", "up"))
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, values, "only series with samples in the window")
	values, _, err = q.LabelValues(t.Context(), "instance", &storage.LabelHints{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, values)
}

func TestHistogramsAreCopied(t *testing.T) {
	t.Parallel()
	h := &histogram.FloatHistogram{Count: 1, Sum: 2}
	s := memstore.Sample{At: 5, Hist: h}
	require.Equal(t, chunkenc.ValFloatHistogram, s.Type())
	s.FH().Sum = 99
	s.Copy().FH().Sum = 99
	require.InDelta(t, 2, h.Sum, 0)
	require.False(t, s.IsStale())
	require.True(t, (&memstore.Sample{Hist: &histogram.FloatHistogram{Sum: stale}}).IsStale())
	require.False(t, (&memstore.Sample{Value: math.NaN()}).IsStale(), "a NaN that was measured is none")
}

func TestTransformations(t *testing.T) {
	t.Parallel()
	original := text(demo().Series())
	for name, tt := range map[string]struct {
		change func(*memstore.Store) *memstore.Store
		want   string
	}{
		"map": {
			func(s *memstore.Store) *memstore.Store {
				return s.Map(func(l labels.Labels) (labels.Labels, bool) {
					return labels.NewBuilder(l).Set("instance", "z").Del("job").Labels(), l.Get("__name__") == "x"
				})
			},
			`{__name__="x", instance="z"} 0:0 5:10 10:20 15:30` + "\n",
		},
		"map to one series": {
			func(s *memstore.Store) *memstore.Store {
				return s.Map(func(l labels.Labels) (labels.Labels, bool) {
					return labels.FromStrings("__name__", "up"), l.Get("__name__") == "up"
				})
			},
			`{__name__="up"} 0:1 5:1 10:stale 15:1` + "\n",
		},
		"rename": {
			func(s *memstore.Store) *memstore.Store { return s.Rename(map[string]string{"x": "y"}).Drop("up") },
			`{__name__="y", instance="a", job="v"} 0:0 5:10 10:20 15:30` + "\n",
		},
		"drop":           {func(s *memstore.Store) *memstore.Store { return s.Drop("up", "nope") }, `{__name__="x", instance="a", job="v"} 0:0 5:10 10:20 15:30` + "\n"},
		"drop by prefix": {func(s *memstore.Store) *memstore.Store { return s.Drop("u*", "x") }, ""},
		"shift": {
			func(s *memstore.Store) *memstore.Store { return s.Drop("up").Shift(-time.Minute) },
			`{__name__="x", instance="a", job="v"} -60:0 -55:10 -50:20 -45:30` + "\n",
		},
		"cut": {
			func(s *memstore.Store) *memstore.Store { return s.Cut(time.Unix(10, 0), time.Unix(14, 0)).Drop("up") },
			`{__name__="x", instance="a", job="v"} 10:20` + "\n",
		},
		"cut, open": {
			func(s *memstore.Store) *memstore.Store { return s.Cut(time.Unix(15, 0), time.Time{}).Drop("up") },
			`{__name__="x", instance="a", job="v"} 15:30` + "\n",
		},
		"end": {
			func(s *memstore.Store) *memstore.Store {
				return s.Drop("up").End(time.Unix(10, 0), func(l labels.Labels) bool { return l.Get("job") == "v" })
			},
			`{__name__="x", instance="a", job="v"} 0:0 5:10 10:stale` + "\n",
		},
		"end before the beginning": {
			func(s *memstore.Store) *memstore.Store {
				return s.Drop("up").End(time.Unix(0, 0), func(labels.Labels) bool { return true })
			},
			"",
		},
		"end others": {
			func(s *memstore.Store) *memstore.Store {
				return s.End(time.Unix(0, 0), func(l labels.Labels) bool { return l.Get("__name__") == "up" })
			},
			`{__name__="x", instance="a", job="v"} 0:0 5:10 10:20 15:30` + "\n",
		},
		"thin": {
			func(s *memstore.Store) *memstore.Store { return s.Thin(10 * time.Second) },
			`{__name__="up", instance="a", job="v"} 0:1 10:stale` + "\n" +
				`{__name__="up", instance="b", job="v"} 0:1 10:1` + "\n" + `{__name__="x", instance="a", job="v"} 0:0 10:20` + "\n",
		},
		"merge": {
			func(s *memstore.Store) *memstore.Store {
				return s.Drop("up").Merge(memstore.New([]memstore.Series{of("x", []string{"job", "v", "instance", "a"}, 9, 9, 9, 9, 40), of("z", nil, 1)}))
			},
			`{__name__="x", instance="a", job="v"} 0:0 5:10 10:20 15:30 20:40` + "\n" + `{__name__="z"} 0:1` + "\n",
		},
		"apply": {
			func(s *memstore.Store) *memstore.Store {
				return s.Drop("up").Apply(func(one memstore.Series) []memstore.Series {
					one.Samples = append(slices.Clip(one.Samples[:1]), memstore.Sample{At: 1, Value: 1})
					return []memstore.Series{one, of("y", nil, 1)}
				})
			},
			`{__name__="x", instance="a", job="v"} 0:0 0.001:1` + "\n" + `{__name__="y"} 0:1` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := demo()
			require.Equal(t, tt.want, text(tt.change(s).Series()))
			require.Equal(t, original, text(s.Series()), "the original stays as it was")
		})
	}
}

// A server that scrapes less often sees the same instant of all series of a target, about every so many seconds apart, although
// scrapes jitter and series come and go.
func TestThinKeepsScrapesTogether(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var times []int64
		at := rapid.Int64Range(0, 5000).Draw(t, "phase")
		for range 60 {
			times = append(times, at+rapid.Int64Range(-200, 200).Draw(t, "jitter"))
			at += 5000
		}
		series := func(name string, from int) memstore.Series {
			s := memstore.Series{Labels: labels.FromStrings("__name__", name, "instance", "a")}
			for _, at := range times[from:] {
				s.Samples = append(s.Samples, memstore.Sample{At: at, Value: 1})
			}
			return s
		}
		late := rapid.IntRange(0, 30).Draw(t, "late")
		every := rapid.SampledFrom([]int64{10, 15, 30, 60}).Draw(t, "every")
		got := memstore.New([]memstore.Series{series("a", 0), series("b", late)}).Thin(time.Duration(every) * time.Second).Series()
		kept := map[int64]bool{}
		for i, s := range got[0].Samples {
			kept[s.At] = true
			if i == 0 {
				continue
			}
			gap := s.At - got[0].Samples[i-1].At
			if gap < every*1000-401 || gap > every*1000+401 {
				t.Fatalf("gap of %d ms instead of %d s", gap, every)
			}
		}
		for _, s := range got[1].Samples {
			if !kept[s.At] {
				t.Fatalf("a scrape at %d that the other series lost", s.At)
			}
		}
	})
}
