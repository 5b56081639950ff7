package triage

import (
	"math"
	"time"

	"github.com/prometheus/common/model"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// observation is what became of reading or computing one signal.
type observation struct {
	sig   kb.Signal
	asked kb.Signal // As it was read: with the names of its fallback when its own could not be.
	state State
	why   string // For people, unless Present.
	expr  string // PromQL that reads it.
	// values has one value a grid point; NaN is a hole. nil for scalars and unless Present.
	values []float64
	// scalar holds the features of a signal that is not a series, by feature name.
	scalar map[string]float64
	// estimate says that the level is right and single points are not (kb.Fallback).
	estimate bool
	// whole says that it was read for all replicas together only, so that nothing is missing of it for a single one.
	whole bool
	// instead lists the signals that it was computed from because it could not be read.
	instead []string
}

// wasRead says that the signal has values of its own, and was not computed from others.
func (x *observation) wasRead() bool { return x.state == Present && x.instead == nil }

// observations is everything that was seen, on one grid.
type observations struct {
	grid grid
	all  map[string]*observation

	onset    time.Time
	onsetIdx int
	onsets   map[string]int // Signal to grid index of its own onset; absent when it does not deviate.
	firing   []float64      // Alerts of the scope that fired, at each grid point.
	only     *replica       // Set when one replica is judged by itself.
	// uncertainty is how far onset may be off.
	uncertainty time.Duration

	window   promRange // Incident: from the onset to the end.
	late     promRange // Its settled part: what holds now.
	baseline promRange // Empty when there is none.
	noBase   string    // Why there is no baseline.

	replicas                   []replica
	replicaErrs                map[string]error // Why signals could not be read replica by replica, by signal.
	numbers                    map[string]Arg   // Figures of the incident that sentences and next steps use, by name.
	restarts                   []int            // Grid indexes at which a replica's process started anew.
	returned                   int              // Grid index at which the last replica came back after it was down; 0 when none did.
	configs                    configChange
	configAfter                model.Vector // Cache configurations at the end.
	configErr, configBeforeErr error
	pool                       kvPool
	lora, loraBefore           loraUse
	loraErr                    error
	loraStopped                bool // Adapters were in use before, and the gauge that lists them is not exported any more.
	absence                    absence
	due                        map[string]bool // Metric names that are not there although they should be; see Engine.due.
	noUp                       bool            // The up of the targets is not stored; see standInForUp.
}

// promRange is a range of grid indexes, the end excluded.
type promRange struct{ from, to int }

func (r promRange) len() int { return max(r.to-r.from, 0) }

func (r promRange) of(v []float64) []float64 {
	if r.len() == 0 || r.from >= len(v) {
		return nil
	}
	return v[max(r.from, 0):min(r.to, len(v))]
}

// get returns the observation of a signal; one that nobody asked for is absent.
func (o *observations) get(id string) *observation {
	if x, ok := o.all[id]; ok {
		return x
	}
	return &observation{sig: kb.Signal{ID: id}, state: Absent, why: "not asked for"}
}

// series returns a signal's values, or nil unless they are present.
func (o *observations) series(id string) []float64 {
	if x := o.get(id); x.state == Present {
		return x.values
	}
	return nil
}

// time returns the moment of a grid index.
func (o *observations) time(i int) time.Time { return o.grid.start.Add(time.Duration(i) * o.grid.step) }

// index returns the grid index at or before a moment, inside the grid.
func (o *observations) index(t time.Time) int {
	i := int(math.Floor(float64(t.Sub(o.grid.start)) / float64(o.grid.step)))
	return min(max(i, 0), o.grid.points()-1)
}

// points returns how many grid steps a duration spans, at least 1.
func (o *observations) points(d time.Duration) int { return max(int(d/o.grid.step), 1) }

// lasts is how much time a range covers.
func (o *observations) lasts(r promRange) time.Duration { return time.Duration(r.len()) * o.grid.step }

// span turns a range into moments.
func (o *observations) span(r promRange) Span {
	return Span{Start: o.time(r.from), End: o.time(max(r.to-1, r.from))}
}

func present(v []float64) []float64 {
	out := make([]float64, 0, len(v))
	for _, x := range v {
		if !math.IsNaN(x) {
			out = append(out, x)
		}
	}
	return out
}

func newSeries(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// mean of the present values; NaN when there are none.
func mean(v []float64) float64 { return promq.Mean(v) }
