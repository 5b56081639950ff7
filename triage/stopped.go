package triage

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"
)

// stopped finds the signals whose series end while the same replicas go on exporting others: a scrape was reconfigured, or
// something on the way drops them. What was last read says nothing of now, and unlike a metric that never was there this
// one is missed: other metrics that tell the same are read, else it is stale. A feature that a restart turned off is not
// missed.
func (e *Engine) stopped(ctx context.Context, log *queryLog, p *plan, o *observations, ids ...string) {
	gauges, rates := o.latest(p)
	for _, id := range ids {
		x := o.get(id)
		if x.state != Present || x.values == nil || x.estimate || x.sig.Neighbour() {
			continue
		}
		end, now, allowed := lastIndex(x.values), gauges, 1
		if x.overTime() {
			now, allowed = rates, 1+o.points(p.rate) // A rate needs two samples.
		}
		if now-end <= allowed || x.sig.Optional && o.leftSince(end, now) {
			continue
		}
		if y := e.readFallback(ctx, log, p, x, end, func() bool { return e.room(log, p, o) }); y != nil {
			o.all[id] = y
			continue
		}
		x.endEarly()
		if x.sig.Optional && o.restartedSince(end-o.points(p.rate)) {
			x.state, x.why = Absent, "not exported any more since a restart"
		}
	}
}

// lookback is how long a query takes the last sample of a series for its value where nothing marks its end.
const lookback = 5 * time.Minute

// endEarly marks a signal whose series are not exported any more.
func (x *observation) endEarly() {
	x.state, x.values, x.why = Stale, nil, "its samples end, while the same replicas go on exporting others"
}

// latest is up to when the scope's gauges and rates have values at least. Where nothing marks the end of series, gauges
// outlive rates.
func (o *observations) latest(p *plan) (gauges, rates int) {
	gauges, rates = -1, -1
	for _, id := range coreSignals {
		if x := o.get(id); x.overTime() {
			rates = max(rates, lastIndex(o.series(id)))
		} else {
			gauges = max(gauges, lastIndex(o.series(id)))
		}
	}
	return max(gauges, rates-o.points(p.rate)), max(rates, gauges-o.points(lookback))
}

// overTime says that a signal is read over a window of time.
func (x *observation) overTime() bool { return strings.Contains(x.asked.Read, "[1w]") }

// leftSince says that fewer replicas serve metrics at one moment than at another before.
func (o *observations) leftSince(before, now int) bool {
	serving := o.series("serving")
	return at(serving, now) < at(serving, before) || math.IsNaN(at(serving, now))
}

// restartedSince says that a replica's process started anew after a moment.
func (o *observations) restartedSince(i int) bool {
	return slices.ContainsFunc(o.restarts, func(r int) bool { return r >= i })
}

// lastIndex is the last known point of a series, -1 without any.
func lastIndex(v []float64) int {
	return tailFrom(len(v), func(i int) bool { return math.IsNaN(v[i]) }) - 1
}
