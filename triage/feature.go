package triage

import (
	"math"
	"time"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// feature computes one feature of a signal (kb.Features lists them). It is NaN when the signal is not present or the
// windows hold too little of it: unknown, which is neither zero nor false.
func (o *observations) feature(id, name string) float64 {
	x := o.get(id)
	if x.state != Present {
		return math.NaN()
	}
	if x.values == nil {
		v, ok := x.scalar[name]
		if !ok {
			return math.NaN()
		}
		return v
	}
	if x.estimate && pointwise(name) {
		return math.NaN()
	}
	floor := x.sig.Floor
	switch name {
	case "level":
		return o.pooled(x, o.late)
	case "mean":
		return o.pooled(x, o.window)
	case "high":
		return promq.Quantile(o.late.of(x.values), 0.9)
	case "max":
		return promq.Max(o.window.of(x.values))
	case "min":
		return promq.Min(o.window.of(x.values))
	case "base":
		return o.base(x)
	case "ratio":
		return (o.pooled(x, o.late) + floor) / (o.base(x) + floor)
	case "delta":
		return o.pooled(x, o.late) - o.base(x)
	case "z":
		base := present(o.baseline.of(x.values))
		if len(base) < minBasePoints {
			return math.NaN()
		}
		return (o.pooled(x, o.late) - o.base(x)) / max(promq.Spread(base), floor)
	case "peak":
		return (promq.Max(o.window.of(x.values)) + floor) / (o.base(x) + floor)
	case "slope":
		return o.slope(x)
	case "spread":
		have := present(o.late.of(x.values))
		if len(have) < 3 || promq.Max(have) <= 0 {
			return math.NaN()
		}
		return (promq.Max(have) - promq.Min(have)) / promq.Max(have)
	case "zeros":
		return shareOf(o.window.of(x.values), func(v float64) bool { return v == 0 })
	case "onset":
		i, ok := o.onsets[id]
		if !ok {
			return math.NaN()
		}
		return o.time(i).Sub(o.onset).Seconds()
	case "skew":
		return o.skew(id)
	case "events":
		have := present(o.window.of(x.values))
		if len(have) == 0 {
			return math.NaN()
		}
		return promq.Mean(have) * float64(o.window.len()) * o.grid.step.Seconds()
	}
	return math.NaN()
}

// pointwise says that a feature is about single points of a series and not about its level.
func pointwise(feature string) bool {
	return feature == "zeros" || feature == "spread" || feature == "min"
}

// minSightings is how many requests scrapes must have met in a window before a gauge tells how long they take: when all of
// them were between two scrapes it says that they take no time.
const minSightings = 1

// pooled is the value of a signal in a range: the median of a gauge, the mean of a rate, and for ratios the sum of the
// numerators over the sum of the denominators, so that busy moments count more than idle ones.
func (o *observations) pooled(x *observation, r promRange) float64 {
	if x.values == nil {
		return math.NaN()
	}
	if q := x.sig.Ratio; q != nil {
		num, den := o.series(q.Num), o.series(q.Den)
		if num == nil || den == nil {
			return math.NaN()
		}
		enough := func(r promRange) bool {
			return promq.Mean(r.of(den))*float64(r.len())*o.grid.step.Seconds() >= q.MinEvents
		}
		if r == o.late && !enough(r) {
			r = o.window // Too few events in the settled part: all of the incident.
		}
		a, b := promq.Mean(r.of(num)), promq.Mean(r.of(den))
		if events := b * float64(r.len()) * o.grid.step.Seconds(); !(events >= q.MinEvents) || b <= 0 {
			return math.NaN()
		}
		if o.get(q.Num).sig.Class == kb.StateClass && o.get(q.Den).sig.Class != kb.StateClass && a*float64(len(present(r.of(num)))) < minSightings {
			return math.NaN()
		}
		v := a / b
		if v < 0 { // Uptime-sized samples make sums fall: such a mean is no measurement (reference: vllm-metrics §4).
			return math.NaN()
		}
		return v
	}
	have := present(r.of(x.values))
	if len(have) == 0 {
		return math.NaN()
	}
	if isRate(x) {
		return promq.Mean(have)
	}
	return promq.Median(have)
}

// base is the signal's level in the baseline; NaN without a baseline.
func (o *observations) base(x *observation) float64 {
	if o.baseline.len() == 0 {
		return math.NaN()
	}
	if len(present(o.baseline.of(x.values))) < minBasePoints {
		return math.NaN()
	}
	return o.pooled(x, o.baseline)
}

func isRate(x *observation) bool {
	switch x.sig.Unit {
	case RequestsPerSec, TokensPerSec, PerSecond, Times, Cores:
		return true
	default:
		return false
	}
}

// slope is the change per minute over the incident window, as a share of the level (of the floor, for small levels).
func (o *observations) slope(x *observation) float64 {
	v := o.window.of(x.values)
	if len(present(v)) < 4 {
		return math.NaN()
	}
	s := promq.TheilSen(promq.Series{Start: o.onset, Step: o.grid.step, Values: v})
	level := math.Abs(o.pooled(x, o.late))
	return s * time.Minute.Seconds() / max(level, x.sig.Floor, 1e-9)
}

func shareOf(v []float64, is func(float64) bool) float64 {
	have := present(v)
	if len(have) == 0 {
		return math.NaN()
	}
	n := 0
	for _, x := range have {
		if is(x) {
			n++
		}
	}
	return float64(n) / float64(len(have))
}
