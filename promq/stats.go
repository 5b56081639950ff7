package promq

import (
	"math"
	"slices"
)

// All statistics skip NaN and the infinities, and are NaN when nothing is left. None of them changes its argument.

// Consistency factors: they turn a measure of width into the standard deviation of a normal distribution with that width.
const (
	madToSigma = 1.4826 // 1 / Φ⁻¹(3/4)
	iqrToSigma = 1.349  // 2 Φ⁻¹(3/4)
	p80ToSigma = 2.563  // 2 Φ⁻¹(9/10)
)

// Median returns the middle value, the mean of the middle two for an even number.
func Median(xs []float64) float64 { return Quantile(xs, 0.5) }

// Quantile returns the q-quantile by linear interpolation between order statistics (type 7 of Hyndman and Fan, the default of
// R and NumPy). q is cut to 0–1.
func Quantile(xs []float64, q float64) float64 {
	return quantileSorted(sorted(xs), q)
}

// MAD returns the median absolute deviation from the median, without a consistency factor.
func MAD(xs []float64) float64 {
	xs = present(xs)
	m := Median(xs)
	for i, x := range xs {
		xs[i] = math.Abs(x - m)
	}
	return Median(xs)
}

// Mean returns the arithmetic mean.
func Mean(xs []float64) float64 {
	xs = present(xs)
	if len(xs) == 0 {
		return math.NaN()
	}
	n, sum, shares := float64(len(xs)), 0.0, 0.0
	for _, x := range xs {
		sum += x
		shares += x / n
	}
	if math.IsInf(sum, 0) {
		return shares // Less exact, but it cannot overflow.
	}
	return sum / n
}

// Max returns the largest value.
func Max(xs []float64) float64 { return Quantile(xs, 1) }

// Min returns the smallest value.
func Min(xs []float64) float64 { return Quantile(xs, 0) }

// Spread returns a robust standard deviation: the largest of those derived from the MAD, the quartiles and the deciles. The
// MAD alone is 0 for a signal that is constant more than half of the time, such as a counter of rare events.
func Spread(xs []float64) float64 {
	s := sorted(xs)
	mad := madToSigma * MAD(s)
	iqr := (quantileSorted(s, 0.75) - quantileSorted(s, 0.25)) / iqrToSigma
	p80 := (quantileSorted(s, 0.9) - quantileSorted(s, 0.1)) / p80ToSigma
	return max(mad, iqr, p80)
}

// theilSenPoints bounds the points whose pairs are compared; beyond it every k-th is taken.
const theilSenPoints = 500

// TheilSen returns the median of the slopes between all pairs of points, in units per second: a trend that a quarter of wild
// points cannot turn. It needs two points.
func TheilSen(s Series) float64 {
	type point struct{ t, v float64 }
	var points []point
	for i, v := range s.Values {
		if isNumber(v) {
			points = append(points, point{s.Step.Seconds() * float64(i), v})
		}
	}
	stride := (len(points) + theilSenPoints - 1) / theilSenPoints
	var slopes []float64
	for i := 0; i < len(points); i += stride {
		for j := i + stride; j < len(points); j += stride {
			slopes = append(slopes, (points[j].v-points[i].v)/(points[j].t-points[i].t))
		}
	}
	return Median(slopes)
}

// Wilson returns the Wilson score interval of a share: k of n were so, and z is the quantile of the normal distribution (1.96
// for 95 %). Without observations it is 0–1: anything is possible.
func Wilson(k, n, z float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	p := min(max(k/n, 0), 1)
	z2 := z * z
	middle := (p + z2/(2*n)) / (1 + z2/n)
	half := z / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

func sorted(xs []float64) []float64 {
	s := present(xs)
	slices.Sort(s)
	return s
}

// quantileSorted is Quantile of numbers in ascending order.
func quantileSorted(s []float64, q float64) float64 {
	if len(s) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	h := float64(len(s)-1) * min(max(q, 0), 1)
	lo := int(h)
	if lo+1 >= len(s) || s[lo] == s[lo+1] {
		return s[lo] // Exact, where interpolation between equals might not be.
	}
	w := h - float64(lo)
	return s[lo]*(1-w) + s[lo+1]*w // Unlike s[lo] + w·(difference), this cannot overflow.
}
