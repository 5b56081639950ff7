package kb_test

import (
	"math"
	"strconv"
	"strings"
)

// notation writes values as a promqtest line's values: long flat or straight stretches as one term each, holes as _ and
// the first hole after a value as stale, which is what Prometheus stores when a target goes away. slack is how far a
// straight line may be off.
func notation(values []float64, slack func(i, j int) float64, rising bool) string {
	var terms []string
	for i := 0; i < len(values); {
		if math.IsNaN(values[i]) {
			j := i
			for j < len(values) && math.IsNaN(values[j]) {
				j++
			}
			n := j - i
			if i > 0 {
				terms = append(terms, "stale")
				n--
			}
			if n > 0 {
				terms = append(terms, repeat("_", n))
			}
			i = j
			continue
		}
		j := straight(values, i, slack, rising)
		terms = append(terms, term(values, i, j, rising))
		i = j + 1
	}
	return strings.Join(terms, " ")
}

// straight returns the last index that a straight line from i on reaches.
func straight(values []float64, i int, slack func(i, j int) float64, rising bool) int {
	flat := i
	for flat+1 < len(values) && values[flat+1] == values[i] {
		flat++
	}
	if flat-i >= 4 {
		return flat
	}
	best := flat
	for j := i + 1; j < len(values) && j < i+400; j++ {
		if math.IsNaN(values[j]) || rising && values[j] < values[j-1] {
			break
		}
		if fits(values, i, j, slack(i, j)) {
			best = j
		} else if j > best+12 {
			break
		}
	}
	return best
}

func fits(values []float64, i, j int, slack float64) bool {
	step := (values[j] - values[i]) / float64(j-i)
	for k := i + 1; k < j; k++ {
		if math.Abs(values[i]+step*float64(k-i)-values[k]) > slack {
			return false
		}
	}
	return true
}

// term writes the values from i to j. A counter's slope is cut, not rounded: it must not pass the value that follows.
func term(values []float64, i, j int, rising bool) string {
	first := short(values[i])
	n := j - i
	if n == 0 {
		return first
	}
	start, _ := strconv.ParseFloat(first, 64) // Formatted on the line above.
	step := (values[j] - start) / float64(n)
	if rising {
		step = max(step, 0)
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(step))))
	switch {
	case step == 0 || math.IsInf(scale, 0) || math.IsNaN(scale):
		return repeat(first, n+1)
	case rising:
		step = math.Floor(step*scale*10) / scale / 10
	default:
		step = math.Round(step*scale) / scale
	}
	text := short(step)
	if step > 0 {
		text = "+" + text
	}
	return first + text + "x" + strconv.Itoa(n)
}

// repeat writes n times the same value.
func repeat(value string, n int) string {
	if n == 1 {
		return value
	}
	if value == "_" {
		return "_x" + strconv.Itoa(n)
	}
	return value + "x" + strconv.Itoa(n-1)
}

func short(v float64) string {
	s := strconv.FormatFloat(v, 'f', 4, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" || s == "" {
		return "0"
	}
	return s
}
