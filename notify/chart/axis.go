package chart

import (
	"math"
	"time"

	"vllm-triage/triage"
)

// yAxis is the range of a panel and where its lines are.
type yAxis struct {
	low, high float64
	ticks     []float64
}

// newYAxis begins at 0, so that small wobbles look small, and ends at a round number above the largest value.
func newYAxis(values []*float64, unit triage.Unit) yAxis {
	low, high := 0.0, 0.0
	first := true
	for _, v := range values {
		if !drawn(v) {
			continue
		}
		if first {
			low, high, first = math.Min(*v, 0), math.Max(*v, 0), false
		}
		low, high = math.Min(low, *v), math.Max(high, *v)
	}
	if unit == triage.Timestamp {
		low = high // Years since 1970 say nothing; the change does.
		for _, v := range values {
			if drawn(v) {
				low = math.Min(low, *v)
			}
		}
	}
	if unit == triage.Ratio && low >= 0 && high > 0.5 && high <= 1 {
		return yAxis{low: 0, high: 1, ticks: []float64{0, 0.5, 1}}
	}
	if high <= low {
		high = low + 1
	}
	step := niceStep((high - low) / 2)
	if math.IsInf(step, 0) || step <= 0 || math.IsInf(high-low, 0) {
		return yAxis{low: low, high: high, ticks: []float64{low, high}}
	}
	a := yAxis{low: math.Floor(low/step+1e-9) * step, high: math.Ceil(high/step-1e-9) * step}
	for i := range 6 {
		t := a.low + float64(i)*step
		if t > a.high+step/2 {
			break
		}
		a.ticks = append(a.ticks, t)
	}
	return a
}

// niceStep rounds up to 1, 2, 2.5 or 5 times a power of ten.
func niceStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if x <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// share is where a value lies between the ends, 0 at the bottom. Halves keep the differences from overflowing.
func (a yAxis) share(v float64) float64 {
	return (v/2 - a.low/2) / (a.high/2 - a.low/2)
}

// timeTicks are round times of day in a zone, at most most of them.
func timeTicks(start, end time.Time, zone *time.Location, most int) []time.Time {
	steps := []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
		2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
	width := end.Sub(start)
	d := steps[len(steps)-1]
	for _, s := range steps {
		if width/s <= time.Duration(most) {
			d = s
			break
		}
	}
	for width/d > time.Duration(most) {
		d *= 2
	}
	_, offset := start.In(zone).Zone()
	shift := time.Duration(offset) * time.Second
	var out []time.Time
	for t := start.Add(shift).Truncate(d).Add(-shift); !t.After(end); t = t.Add(d) {
		if !t.Before(start) {
			out = append(out, t)
		}
	}
	return out
}
