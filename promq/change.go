package promq

import (
	"math"
	"time"
)

// minSide is the number of points that a split leaves on each side: a side of one would be any outlier at the edge.
const minSide = 2

// onsetSigmas is how many spreads above the median of the baseline a point must lie to count as deviating.
const onsetSigmas = 4

// SplitPoint says where a signal is best cut into two levels.
type SplitPoint struct {
	// Index is the position of the first point of the second level.
	Index int
	// Gain is the share of the variance that the two levels explain, from 0 to 1.
	Gain float64
	// Left and Right are the means before and from Index on.
	Left, Right float64
}

// Split returns the best cut in the sense of least squares. Holes are skipped, and Index is the position of a value. A constant
// signal, and one of fewer than four values, has none.
func Split(xs []float64) (SplitPoint, bool) { return split(xs, false) }

// split finds the best cut; if rising, among those with the higher level on the right.
func split(xs []float64, rising bool) (SplitPoint, bool) {
	pos, vals := positions(xs)
	n := len(vals)
	if n < 2*minSide || Min(vals) == Max(vals) {
		return SplitPoint{}, false
	}
	// Sums around the mean and scaled to 1 keep their digits and cannot overflow.
	mean, scale := Mean(vals), 0.0
	for i := range vals {
		vals[i] -= mean
		scale = max(scale, math.Abs(vals[i]))
	}
	if !isNumber(scale) {
		return SplitPoint{}, false
	}
	var total, squares float64
	for i := range vals {
		vals[i] /= scale
		total += vals[i]
		squares += vals[i] * vals[i]
	}
	squares -= total * total / float64(n) // The mean is not exactly 0.
	var best SplitPoint
	found := false
	left := 0.0
	for i := 1; i <= n-minSide; i++ {
		left += vals[i-1]
		if i < minSide {
			continue
		}
		l, r := left/float64(i), (total-left)/float64(n-i)
		between := l*l*float64(i) + r*r*float64(n-i) - total*total/float64(n)
		gain := min(max(between/squares, 0), 1)
		if rising && r <= l {
			continue
		}
		if !found || gain > best.Gain {
			found = true
			best = SplitPoint{Index: pos[i], Gain: gain, Left: l*scale + mean, Right: r*scale + mean}
		}
	}
	return best, found
}

// Onset returns the position in xs at which it rose above its baseline for good. For falls negate both.
//
// The gate: two of three consecutive values lie above the baseline's median by more than four of its spreads (at least floor,
// in the unit of the signal, so that a constant baseline does not make anything a deviation), and this still holds at the end,
// in most of the last quarter of what follows. An excursion that ended is passed over. In simulation this gate raises no false
// alarms. The place: the best rising split, which is exact for steps; if the level before it was already above the gate, or the
// level after it is not, the first value above the gate.
func Onset(xs, base []float64, floor float64) (index int, ok bool) {
	level := Median(base)
	if math.IsNaN(level) {
		return 0, false
	}
	gate := level + onsetSigmas*max(Spread(base), floor)
	pos, vals := positions(xs)
	above := make([]bool, len(vals))
	for i, v := range vals {
		above[i] = v > gate
	}
	searchFrom := 0 // after the last excursion that ended
	for i := range above {
		if !above[i] || !deviates(above, i) {
			continue
		}
		if !holds(above[i:]) {
			searchFrom = i + 1
			continue
		}
		at := pos[i]
		from := 0
		if searchFrom > 0 {
			from = pos[searchFrom]
		}
		cut, found := split(xs[from:], true)
		if found && cut.Left <= gate && cut.Right > gate {
			at = from + cut.Index
		}
		return at, true
	}
	return 0, false
}

// Onset is Onset of the values, as a time.
func (s Series) Onset(base []float64, floor float64) (at time.Time, ok bool) {
	i, ok := Onset(s.Values, base, floor)
	if !ok {
		return time.Time{}, false
	}
	return s.At(i), true
}

// deviates reports whether, of the three values from i on, at least two are above the gate; the first one is.
func deviates(above []bool, i int) bool {
	return i+1 < len(above) && above[i+1] || i+2 < len(above) && above[i+2]
}

// holds reports whether a deviation that begins with above lasts to its end: in half of its last quarter (at least three
// values) and in a third of the whole.
func holds(above []bool) bool {
	quarter := min(len(above), max(3, (len(above)+3)/4))
	return 2*count(above[len(above)-quarter:]) >= quarter && 3*count(above) >= len(above)
}

func count(bs []bool) int {
	n := 0
	for _, b := range bs {
		if b {
			n++
		}
	}
	return n
}

// positions returns the values that are no holes and where they stand.
func positions(xs []float64) (pos []int, vals []float64) {
	for i, x := range xs {
		if isNumber(x) {
			pos = append(pos, i)
			vals = append(vals, x)
		}
	}
	return pos, vals
}
