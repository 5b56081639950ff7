package triage

import "math"

// silentAfter is how many requests a replica must have failed to start before its silence is no accident: at ten expected,
// none at all happens once in 20,000 times.
const silentAfter = 10

// replicasSilent counts replicas that answer their scrapes and produce nothing, although they did their share before and
// others still produce. An engine that hangs while it is idle shows nothing else: its gauges freeze at zero, and what is
// sent to it is not counted (reference: vllm-metrics §6, gauges that freeze). One that gets no requests looks the same.
func replicasSilent(_ *plan, o *observations) map[string]float64 {
	if o.baseline.len() == 0 {
		return nil
	}
	n := 0.0
	if o.anyProduces() { // Else it is a stall of all.
		for _, r := range o.replicas {
			if o.fellSilent(r) {
				n++
			}
		}
	}
	return map[string]float64{"level": n, "base": 0}
}

// fellSilent says that a replica has long produced nothing for what it did before.
func (o *observations) fellSilent(r replica) bool {
	tokens, began := r.series("generation_tokens"), r.series("first_tokens")
	if len(tokens) == 0 || math.IsNaN(tokens[len(tokens)-1]) {
		return false
	}
	quiet := promRange{tailFrom(len(tokens), func(i int) bool { return !(tokens[i] > 0) }), len(tokens)}
	return mean(o.baseline.of(began))*o.lasts(quiet).Seconds() >= silentAfter
}

// replicasIdle counts replicas that generate nothing at the end. It is unknown when something is generated somewhere and not
// all of them were read one by one.
func replicasIdle(p *plan, o *observations) map[string]float64 {
	if m := lastKnown(o.series("generation_tokens")); m == 0 {
		return map[string]float64{"level": float64(max(len(o.replicas), 1))}
	} else if math.IsNaN(m) || p.rows == 0 || len(o.replicas) < p.rows {
		return nil
	}
	n := 0.0
	for _, r := range o.replicas {
		if r.series("generation_tokens") == nil {
			return nil
		}
		if r.idle() {
			n++
		}
	}
	return map[string]float64{"level": n}
}
