package promq_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vllm-triage/promq"
)

var nan = math.NaN()

const tolerance = 1e-9

func same(t *testing.T, want, got float64, msg ...any) {
	t.Helper()
	if math.IsNaN(want) {
		require.True(t, math.IsNaN(got), msg...)
		return
	}
	require.InDelta(t, want, got, tolerance, msg...)
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		xs                                   []float64
		median, mad, mean, min, max, p90, sd float64
	}{
		"empty":     {xs: nil, median: nan, mad: nan, mean: nan, min: nan, max: nan, p90: nan, sd: nan},
		"holes":     {xs: []float64{nan, math.Inf(1)}, median: nan, mad: nan, mean: nan, min: nan, max: nan, p90: nan, sd: nan},
		"one":       {xs: []float64{7}, median: 7, mad: 0, mean: 7, min: 7, max: 7, p90: 7, sd: 0},
		"constant":  {xs: []float64{.1, .1, .1, .1, .1, .1, .1}, median: .1, mad: 0, mean: .1, min: .1, max: .1, p90: .1, sd: 0},
		"even, odd": {xs: []float64{9, 1, 3, 2}, median: 2.5, mad: 1, mean: 3.75, min: 1, max: 9, p90: 7.2, sd: 5.9 / 2.563},
		"skips holes": {
			xs: []float64{nan, 9, 1, math.Inf(-1), 3, 2, nan}, median: 2.5, mad: 1, mean: 3.75, min: 1, max: 9, p90: 7.2, sd: 5.9 / 2.563,
		},
		// 1 2 3 4 5: deviations 2 1 0 1 2, MAD 1; quartiles 2 and 4, deciles 1.4 and 4.6.
		"one to five": {xs: []float64{5, 4, 3, 2, 1}, median: 3, mad: 1, mean: 3, min: 1, max: 5, p90: 4.6, sd: 1.4826},
		// Two thirds constant: the MAD is 0 and the deciles save the spread. p10 0, p90 = 0.2·10/… = 4th of 0 0 0 0 9 9.
		"mostly zero": {xs: []float64{0, 9, 0, 0, 9, 0}, median: 0, mad: 0, mean: 3, min: 0, max: 9, p90: 9, sd: 6.75 / 1.349},
		"large":       {xs: []float64{1e308, 1e308}, median: 1e308, mad: 0, mean: 1e308, min: 1e308, max: 1e308, p90: 1e308, sd: 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := append([]float64(nil), tt.xs...)
			same(t, tt.median, promq.Median(tt.xs), "median")
			same(t, tt.mad, promq.MAD(tt.xs), "MAD")
			same(t, tt.mean, promq.Mean(tt.xs), "mean")
			same(t, tt.min, promq.Min(tt.xs), "min")
			same(t, tt.max, promq.Max(tt.xs), "max")
			same(t, tt.p90, promq.Quantile(tt.xs, .9), "p90")
			same(t, tt.sd, promq.Spread(tt.xs), "spread")
			for i := range before {
				require.Equal(t, math.Float64bits(before[i]), math.Float64bits(tt.xs[i]), "the argument is not changed")
			}
		})
	}
}

// The figures are those of R: quantile(c(1,2,3,9), type=7).
func TestQuantileType7(t *testing.T) {
	t.Parallel()
	xs := []float64{3, 9, 1, 2}
	for q, want := range map[float64]float64{-1: 1, 0: 1, .1: 1.3, .25: 1.75, .5: 2.5, .75: 4.5, 1: 9, 2: 9} {
		same(t, want, promq.Quantile(xs, q), q)
	}
	same(t, nan, promq.Quantile(xs, nan))
}

func TestTheilSen(t *testing.T) {
	t.Parallel()
	slope := func(step time.Duration, xs ...float64) float64 {
		return promq.TheilSen(promq.Series{Step: step, Values: xs})
	}
	same(t, nan, slope(time.Second))
	same(t, nan, slope(time.Second, 1, nan))
	same(t, 2, slope(time.Second, 1, 3, 5))
	same(t, .2, slope(10*time.Second, 1, 3, 5), "per second, whatever the step")
	same(t, 2, slope(time.Second, 1, nan, 5, 7), "holes keep their time")
	// Pairs of 0 1 2 30: slopes 1 1 10, 1 14.5, 28; sorted 1 1 1 10 14.5 28.
	same(t, 5.5, slope(time.Second, 0, 1, 2, 30))
	same(t, 1, slope(time.Second, 0, 1, 2, 3, 400, 5, 6), "one outlier")

	long := make([]float64, 11_000)
	for i := range long {
		long[i] = -3 * float64(i)
	}
	same(t, -3, slope(time.Second, long...))
}

func TestWilson(t *testing.T) {
	t.Parallel()
	// Figures of R's prop.test(correct=FALSE) and of the table in ranking: 34 of 40 gives .71–.93.
	tests := []struct{ k, n, low, high float64 }{
		{0, 0, 0, 1},
		{34, 40, .7093, .9294},
		{5, 10, .2366, .7634},
		{0, 40, 0, .0876},
		{40, 40, .9124, 1},
	}
	for _, tt := range tests {
		low, high := promq.Wilson(tt.k, tt.n, 1.96)
		require.InDelta(t, tt.low, low, 1e-4)
		require.InDelta(t, tt.high, high, 1e-4)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		xs   []float64
		want promq.SplitPoint
		ok   bool
	}{
		"empty":             {},
		"too short":         {xs: []float64{0, 0, 1}},
		"constant":          {xs: []float64{.1, .1, .1, .1, .1, .1}},
		"step":              {xs: []float64{0, 0, 0, 10, 10}, want: promq.SplitPoint{Index: 3, Gain: 1, Left: 0, Right: 10}, ok: true},
		"step down":         {xs: []float64{8, 8, 2, 2, 2}, want: promq.SplitPoint{Index: 2, Gain: 1, Left: 8, Right: 2}, ok: true},
		"holes":             {xs: []float64{nan, 0, 0, nan, 10, nan, 10}, want: promq.SplitPoint{Index: 4, Gain: 1, Left: 0, Right: 10}, ok: true},
		"outlier at an end": {xs: []float64{0, 0, 0, 0, 9}, want: promq.SplitPoint{Index: 3, Gain: .375, Left: 0, Right: 4.5}, ok: true},
		// 0 2 4 6: mean 3, total 20; two and two explain 2·2²·2 = 16.
		"ramp": {xs: []float64{0, 2, 4, 6}, want: promq.SplitPoint{Index: 2, Gain: .8, Left: 1, Right: 5}, ok: true},
		"huge": {xs: []float64{0, 0, 1e308, 1e308}, want: promq.SplitPoint{Index: 2, Gain: 1, Left: 0, Right: 1e308}, ok: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := promq.Split(tt.xs)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want.Index, got.Index)
			same(t, tt.want.Gain, got.Gain)
			same(t, tt.want.Left, got.Left)
			require.InEpsilon(t, tt.want.Right+1, got.Right+1, tolerance)
		})
	}
}

func repeat(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func join(parts ...[]float64) []float64 {
	var out []float64
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func TestOnset(t *testing.T) {
	t.Parallel()
	// Median 2, MAD 1, quartiles 1 and 3: spread 1.4826 and the gate at 2 + 4·1.4826 = 7.93.
	noisy := []float64{1, 3, 2, 1, 3}
	tests := map[string]struct {
		xs, base []float64
		floor    float64
		want     int
		ok       bool
	}{
		"no baseline":                {xs: repeat(9, 9), base: []float64{nan}},
		"calm":                       {xs: join(noisy, noisy), base: noisy},
		"step":                       {xs: join(noisy, noisy, repeat(20, 5)), base: noisy, want: 10, ok: true},
		"step on a constant base":    {xs: join(repeat(0, 20), repeat(1, 5)), base: repeat(0, 10), floor: .2, want: 20, ok: true},
		"below the floor":            {xs: join(repeat(0, 20), repeat(1, 5)), base: repeat(0, 10), floor: .3},
		"one point":                  {xs: join(repeat(0, 9), repeat(9, 1), repeat(0, 9)), base: repeat(0, 9), floor: 1},
		"two of three":               {xs: join(repeat(0, 9), []float64{9, 0, 9, 9}), base: repeat(0, 9), floor: 1, want: 9, ok: true},
		"over by itself":             {xs: join(repeat(0, 9), repeat(9, 5), repeat(0, 20)), base: repeat(0, 9), floor: 1},
		"second of two":              {xs: join(repeat(0, 9), repeat(9, 5), repeat(0, 20), repeat(9, 8)), base: repeat(0, 9), floor: 1, want: 34, ok: true},
		"just begun":                 {xs: join(repeat(0, 100), repeat(9, 2)), base: repeat(0, 9), floor: 1, want: 100, ok: true},
		"from the start":             {xs: []float64{20, 21, 22, 25, 26, 27}, base: noisy, want: 0, ok: true},
		"holes":                      {xs: join([]float64{0, nan, 0, 0, nan, 0, nan}, []float64{9, nan, 9, nan, 9}), base: repeat(0, 9), floor: 1, want: 7, ok: true},
		"fall, negated by no caller": {xs: join(repeat(9, 9), repeat(0, 9)), base: repeat(9, 9), floor: 1},
		// Right of 13 lie 4 … 9 9, sum 48: 6²/13 + 48²/7 = 331.9 is more than that of 14 (329.8) and of 12 (325.9).
		"ramp": {xs: join(repeat(0, 10), []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 9}), base: repeat(0, 9), floor: 1, want: 13, ok: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := promq.Onset(tt.xs, tt.base, tt.floor)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, got)

			s := promq.Series{Start: time.Unix(1000, 0), Step: 15 * time.Second, Values: tt.xs}
			at, ok := s.Onset(tt.base, tt.floor)
			require.Equal(t, tt.ok, ok)
			if ok {
				require.Equal(t, s.At(tt.want), at)
			}
		})
	}
}

func TestStatisticsProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 60).Draw(t, "xs")
		shift := rapid.Float64Range(-1e3, 1e3).Draw(t, "shift")
		moved := make([]float64, len(xs))
		for i, x := range xs {
			moved[len(xs)-1-i] = x + shift // Shifted and in another order.
		}
		lo, hi := promq.Min(xs), promq.Max(xs)
		for _, v := range []float64{promq.Median(xs), promq.Mean(xs), promq.Quantile(xs, .3)} {
			if v < lo-tolerance || v > hi+tolerance {
				t.Fatalf("%v outside %v–%v", v, lo, hi)
			}
		}
		const slack = 1e-6
		if d := promq.Median(moved) - promq.Median(xs) - shift; math.Abs(d) > slack {
			t.Fatalf("median does not move with the data: %v", d)
		}
		if d := promq.Spread(moved) - promq.Spread(xs); math.Abs(d) > slack {
			t.Fatalf("spread changes when the data move: %v", d)
		}
		if s, ok := promq.Split(xs); ok {
			if s.Gain < 0 || s.Gain > 1 || s.Index < 2 || s.Index > len(xs)-2 {
				t.Fatalf("split %+v", s)
			}
			same := promq.Mean(xs[:s.Index])
			if math.Abs(same-s.Left) > slack {
				t.Fatalf("left level %v, mean of the left %v", s.Left, same)
			}
		}
	})
}
