package promq

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// maxGrid bounds the points of a grid: what Prometheus allows in a range query, and the first point.
const maxGrid = 11_001

// Series is a signal on a regular grid: Values[i] belongs to Start + i·Step. NaN is a hole: no sample, or one that is no
// number. A hole is never zero.
type Series struct {
	Start  time.Time
	Step   time.Duration
	Values []float64
}

// LabeledSeries is a series of a query result with its labels.
type LabeledSeries struct {
	Labels model.Metric
	Series
}

// FromMatrix puts the answer of a range query on the grid start, start+step, … up to end, and sorts it by labels. A sample
// goes to the nearest point of the grid, because some servers align the grid themselves; of several for one point the nearest
// one wins, then the one given last. Infinities become holes; native histograms are ignored. Every returned series has the
// same length.
func FromMatrix(v model.Value, start, end time.Time, step time.Duration) ([]LabeledSeries, error) {
	matrix, ok := v.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("put result on a grid: it is a %s, not a matrix", valueType(v))
	}
	n, err := gridLength(start, end, step)
	if err != nil {
		return nil, fmt.Errorf("put result on a grid: %w", err)
	}
	out := make([]LabeledSeries, 0, len(matrix))
	for _, stream := range matrix {
		if stream == nil {
			continue
		}
		s := Series{Start: start, Step: step, Values: onGrid(stream.Values, start.UnixMilli(), step.Milliseconds(), n)}
		out = append(out, LabeledSeries{Labels: stream.Metric, Series: s})
	}
	slices.SortStableFunc(out, func(a, b LabeledSeries) int { return strings.Compare(a.Labels.String(), b.Labels.String()) })
	return out, nil
}

func valueType(v model.Value) string {
	if v == nil {
		return "missing value"
	}
	return v.Type().String()
}

func gridLength(start, end time.Time, step time.Duration) (int, error) {
	switch {
	case step < time.Millisecond:
		return 0, errors.New("step must be at least a millisecond")
	case end.Before(start):
		return 0, errors.New("end is before start")
	}
	n := end.Sub(start)/step + 1
	if n > maxGrid {
		return 0, fmt.Errorf("%d points are more than %d; use a longer step", n, maxGrid)
	}
	return int(n), nil
}

// onGrid places samples; start and step are in milliseconds.
func onGrid(samples []model.SamplePair, start, step int64, n int) []float64 {
	values := make([]float64, n)
	distance := make([]int64, n)
	for i := range values {
		values[i], distance[i] = math.NaN(), math.MaxInt64
	}
	for _, s := range samples {
		t, v := int64(s.Timestamp), float64(s.Value)
		if t < start-step || t > start+int64(n)*step || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		i := (t - start + step/2 + step) / step // One step more, as division rounds towards zero.
		i--
		if i < 0 || i >= int64(n) {
			continue
		}
		if d := max(t-start-i*step, start+i*step-t); d <= distance[i] {
			values[i], distance[i] = v, d
		}
	}
	return values
}

// Len returns the number of points, holes included.
func (s Series) Len() int { return len(s.Values) }

// At returns the time of point i.
func (s Series) At(i int) time.Time { return s.Start.Add(time.Duration(i) * s.Step) }

// End returns the time of the last point, and Start for an empty series.
func (s Series) End() time.Time { return s.At(max(len(s.Values)-1, 0)) }

// Slice returns the points from start up to and including end. It shares the values.
func (s Series) Slice(start, end time.Time) Series {
	if s.Step <= 0 || len(s.Values) == 0 {
		return Series{Start: s.Start, Step: s.Step}
	}
	lo := s.firstAt(start)
	hi := s.firstAt(end)
	if hi < len(s.Values) && s.At(hi).Equal(end) {
		hi++
	}
	if lo >= hi {
		return Series{Start: s.At(lo), Step: s.Step}
	}
	return Series{Start: s.At(lo), Step: s.Step, Values: s.Values[lo:hi:hi]}
}

// firstAt returns the position of the first point at or after t, at most the length.
func (s Series) firstAt(t time.Time) int {
	if !t.After(s.Start) {
		return 0
	}
	if t.After(s.End()) {
		return len(s.Values)
	}
	return int((t.Sub(s.Start) + s.Step - 1) / s.Step)
}

// Coverage returns the share of points that are not holes, from 0 to 1; 0 for an empty series.
func (s Series) Coverage() float64 {
	if len(s.Values) == 0 {
		return 0
	}
	return float64(len(s.Present())) / float64(len(s.Values))
}

// Present returns the values that are not holes, in order.
func (s Series) Present() []float64 { return present(s.Values) }

// Last returns the latest value that is no hole and its time.
func (s Series) Last() (value float64, at time.Time, ok bool) {
	for i, v := range slices.Backward(s.Values) {
		if isNumber(v) {
			return v, s.At(i), true
		}
	}
	return math.NaN(), time.Time{}, false
}

// Map returns the series with f applied to every value; f is also given holes, as NaN. What f makes no number is a hole.
func (s Series) Map(f func(float64) float64) Series {
	out := Series{Start: s.Start, Step: s.Step, Values: make([]float64, len(s.Values))}
	for i, v := range s.Values {
		out.Values[i] = numberOrHole(f(v))
	}
	return out
}

// Zip combines two series point by point. They must lie on one grid: same start, step and length.
func Zip(a, b Series, f func(a, b float64) float64) (Series, error) {
	if !a.Start.Equal(b.Start) || a.Step != b.Step || len(a.Values) != len(b.Values) {
		return Series{}, errors.New("combine series: they do not lie on the same grid")
	}
	out := Series{Start: a.Start, Step: a.Step, Values: make([]float64, len(a.Values))}
	for i := range a.Values {
		out.Values[i] = numberOrHole(f(a.Values[i], b.Values[i]))
	}
	return out, nil
}

func numberOrHole(v float64) float64 {
	if !isNumber(v) {
		return math.NaN()
	}
	return v
}

func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func present(xs []float64) []float64 {
	out := make([]float64, 0, len(xs))
	for _, x := range xs {
		if isNumber(x) {
			out = append(out, x)
		}
	}
	return out
}
