package triage

import (
	"maps"
	"math"
	"slices"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// standsOut is how far a replica must be above its own past and above its peers to be judged by itself: the logarithm of
// the factor.
var standsOut = math.Log(1.8)

// focus judges a replica that stands out by its own series: one sick replica among many healthy ones hardly moves the
// figures of the whole, and what binds it shows in them as a faint version of anything. It returns nil when no replica
// stands out, or when the whole explains more.
func (e *Engine) focus(p *plan, o *observations, whole *weighed) (*observations, *weighed) {
	r, ok := o.outlier()
	if !ok {
		return nil, nil
	}
	own := e.observationsOf(p, o, r)
	w := e.weigh(p, own)
	if len(w.bottlenecks) == 0 || len(whole.bottlenecks) == 0 {
		return nil, nil
	}
	top, fleet := w.bottlenecks[0], whole.bottlenecks[0]
	switch {
	case top.cause.Kind == kb.Quiet || w.seen < likely:
		return nil, nil
	case fleet.cause.Place == "replicas" && whole.seen >= likely && !o.ownFault(fleet.cause):
		return nil, nil // Down, or drowned by its router: that is about replicas already.
	case fleet.cause.Kind != kb.Quiet && fleet.probability >= sure && fleet.score >= top.score:
		return nil, nil
	}
	return own, w
}

// ownFault says that the busiest replica is given no more requests than its peers: what fills it is its own.
func (o *observations) ownFault(c kb.Cause) bool {
	const even = 1.3
	return c.Where == "load" && o.feature("replica_arrival_skew", "level") < even
}

// outlier is the replica that is farthest above both its own baseline and its peers.
func (o *observations) outlier() (replica, bool) {
	if len(o.replicas) < 2 {
		return replica{}, false
	}
	best, most := replica{}, standsOut
	for _, r := range o.replicas {
		if r.serves() == nil {
			continue
		}
		if x := o.strangeness(r); x > most {
			best, most = r, x
		}
	}
	return best, best.key != ""
}

// strangeness is how much a replica stands out, by the signal in which it does so most.
func (o *observations) strangeness(r replica) float64 {
	most := 0.0
	for _, id := range []string{"load", "kv_usage", "itl", "ttft", "abandoned"} {
		past, peers := o.excess(r, id, false), o.excess(r, id, true)
		if x := min(past, peers); x > most { // NaN compares false: unknown does not stand out.
			most = x
		}
	}
	if o.silent(r) {
		most += 2
	}
	return most
}

// silent says that a replica holds requests and produces nothing while others do.
func (o *observations) silent(r replica) bool {
	return r.idle() && o.replicaLevel(r, "load", o.late) > 0 && o.anyProduces()
}

// anyProduces says that some replica made tokens when it was last seen.
func (o *observations) anyProduces() bool {
	return slices.ContainsFunc(o.replicas, func(x replica) bool { return lastKnown(x.series("generation_tokens")) > 0 })
}

// observationsOf is the view of one replica: its own series where there are any, nothing where a signal was only read for
// the whole, and what is about the fleet (targets, configuration, the comparison of replicas) as it is.
func (e *Engine) observationsOf(p *plan, o *observations, r replica) *observations {
	own := *o
	own.all = maps.Clone(o.all)
	own.onsets = map[string]int{}
	own.only = &r
	own.pool.tokens = o.pool.perReplica
	key := ""
	if len(p.replicaKeys) > 0 {
		key = p.replicaKeys[0]
	}
	for id, x := range o.all {
		if !x.sig.Queried() || x.sig.Scope == "target" || id == "serving" || x.state != Present {
			continue
		}
		y := *x
		y.values = r.series(id)
		if id == "kv_usage_max" {
			y.values = r.series("kv_usage")
		}
		if y.values == nil {
			y.state, y.why, y.whole = Absent, "not read replica by replica", true
		} else if expr, err := promq.AddMatchers(x.expr, promq.Equal(key, firstOf(r.place.Instance, r.place.Pod))); err == nil && key != "" {
			y.expr = expr
		}
		own.all[id] = &y
	}
	e.substitute(&own)
	e.ratios(&own)
	e.deriveSeries(p, &own)
	own.findWindows(p, o.firing)
	e.deriveScalars(p, &own)
	return &own
}
