package triage

import (
	"math"

	"vllm-triage/promq"
)

// arrivals is how many requests arrive each second, at every grid point. There are two lower bounds: flow balance (what
// finished plus what piled up over the k points before), which misses clients that leave, and first tokens plus the growth
// of the queue, which misses prompts in prefill. Flow balance is within some percent of the truth; the other is taken when
// the last quarter of the data shows far more first tokens than balance allows: clients leave. n>1 counts sequences.
func arrivals(running, waiting, first, finished []float64, k int, step float64) []float64 {
	n := max(len(running), len(waiting))
	balance, queue := newSeries(n), newSeries(n)
	span := float64(k) * step
	for i := k; i < n; i++ {
		pile := at(running, i) + at(waiting, i) - at(running, i-k) - at(waiting, i-k)
		balance[i] = max(at(finished, i)+pile/span, 0)
		queue[i] = max(at(first, i)+(at(waiting, i)-at(waiting, i-k))/span, 0)
	}
	recent := promRange{n - max(n/4, min(n, 2)), n}
	b, q := promq.Mean(recent.of(balance)), promq.Mean(recent.of(queue))
	if math.IsNaN(b) || q > 1.3*b {
		return queue
	}
	return balance
}
