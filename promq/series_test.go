package promq_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
)

var t0 = time.Unix(1000, 0).UTC()

func pair(seconds float64, v float64) model.SamplePair {
	return model.SamplePair{Timestamp: model.Time(seconds * 1000), Value: model.SampleValue(v)}
}

func TestFromMatrix(t *testing.T) {
	t.Parallel()
	matrix := model.Matrix{
		{
			Metric: model.Metric{"pod": "b"},
			Values: []model.SamplePair{pair(1030, 3), pair(1000, 1), pair(1015, math.Inf(1)), pair(1030, 4), pair(1060, 9), pair(985, 9)},
		},
		nil,
		{
			Metric:     model.Metric{"pod": "a"},
			Values:     []model.SamplePair{pair(1002, 1), pair(998, 2), pair(1008, 3), pair(1052, 7), pair(1e15, 9), pair(-1e15, 9)},
			Histograms: []model.SampleHistogramPair{{Timestamp: 1030_000, Histogram: &model.SampleHistogram{Count: 1}}},
		},
		{Metric: model.Metric{"pod": "c"}},
	}
	got, err := promq.FromMatrix(matrix, t0, t0.Add(50*time.Second), 15*time.Second)
	require.NoError(t, err)
	grid := func(vs ...float64) promq.Series { return promq.Series{Start: t0, Step: 15 * time.Second, Values: vs} }
	want := []promq.LabeledSeries{
		{Labels: model.Metric{"pod": "a"}, Series: grid(2, 3, nan, 7)}, // 1002 and 998 are equally near: the later given stays
		{Labels: model.Metric{"pod": "b"}, Series: grid(1, nan, 4, nan)},
		{Labels: model.Metric{"pod": "c"}, Series: grid(nan, nan, nan, nan)},
	}
	require.Empty(t, cmp.Diff(want, got, cmpopts.EquateNaNs()))
}

func TestFromMatrixErrors(t *testing.T) {
	t.Parallel()
	hour := t0.Add(time.Hour)
	for name, tt := range map[string]struct {
		value      model.Value
		start, end time.Time
		step       time.Duration
		want       string
	}{
		"vector":   {model.Vector{}, t0, hour, time.Minute, "it is a vector, not a matrix"},
		"nothing":  {nil, t0, hour, time.Minute, "missing value"},
		"no step":  {model.Matrix{}, t0, hour, 0, "at least a millisecond"},
		"reversed": {model.Matrix{}, hour, t0, time.Minute, "end is before start"},
		"too many": {model.Matrix{}, t0, hour, 100 * time.Millisecond, "36001 points are more than 11001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := promq.FromMatrix(tt.value, tt.start, tt.end, tt.step)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestSeriesSlice(t *testing.T) {
	t.Parallel()
	s := promq.Series{Start: t0, Step: 10 * time.Second, Values: []float64{0, 1, nan, 3}}
	at := func(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }
	for name, tt := range map[string]struct {
		from, to  int
		wantStart int
		want      []float64
	}{
		"all":            {-100, 100, 0, []float64{0, 1, nan, 3}},
		"both ends":      {10, 20, 10, []float64{1, nan}},
		"between points": {1, 29, 10, []float64{1, nan}},
		"one":            {30, 30, 30, []float64{3}},
		"no point":       {11, 19, 20, nil},
		"after":          {31, 99, 40, nil},
		"before":         {-9, -1, 0, nil},
		"reversed":       {30, 10, 30, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.Slice(at(tt.from), at(tt.to))
			want := promq.Series{Start: at(tt.wantStart), Step: s.Step, Values: tt.want}
			require.Empty(t, cmp.Diff(want, got, cmpopts.EquateNaNs()))
		})
	}
	require.Equal(t, 0, promq.Series{}.Slice(t0, t0).Len())
}

func TestSeriesBasics(t *testing.T) {
	t.Parallel()
	s := promq.Series{Start: t0, Step: time.Second, Values: []float64{nan, 1, 2, nan}}
	require.InDelta(t, .5, s.Coverage(), 0)
	require.Equal(t, []float64{1, 2}, s.Present())
	require.Equal(t, t0.Add(3*time.Second), s.End())
	v, at, ok := s.Last()
	require.True(t, ok)
	require.InDelta(t, 2, v, 0)
	require.Equal(t, t0.Add(2*time.Second), at)

	require.Zero(t, promq.Series{}.Coverage())
	_, _, ok = promq.Series{Values: []float64{nan}}.Last()
	require.False(t, ok)

	half, err := promq.Zip(s, s.Map(func(v float64) float64 { return v - 1 }), func(a, b float64) float64 { return a / b })
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]float64{nan, nan, 2, nan}, half.Values, cmpopts.EquateNaNs()), "1/0 is a hole")
	_, err = promq.Zip(s, promq.Series{}, math.Max)
	require.ErrorContains(t, err, "not lie on the same grid")
}
