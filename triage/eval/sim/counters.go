package sim

import "slices"

// counters are the totals of one process since its start.
type counters struct {
	prompt, cached, generated, queries, hits                                         float64
	preempted, finished, aborted, http, http5xx, cpu                                 float64
	ttft, itl, e2e, queue, prefill, decode, promptLen, outputLen, paramsN, iteration histogram
}

// histogram keeps what a Prometheus histogram exports; in holds the observations of each bucket alone.
type histogram struct {
	sum, count float64
	le, in     []float64
}

var (
	requestLatency = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	firstToken     = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	interToken     = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
)

func newCounters() counters {
	of := func(le []float64) histogram { return histogram{le: le, in: make([]float64, len(le))} }
	return counters{ttft: of(firstToken), itl: of(interToken), e2e: of(requestLatency)}
}

func (h *histogram) observe(v, times float64) {
	if times <= 0 {
		return
	}
	h.sum += v * times
	h.count += times
	if i, _ := slices.BinarySearch(h.le, v); i < len(h.le) {
		h.in[i] += times
	}
}
