package triage

import (
	"math"
	"slices"
)

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
	n := 0.0 // Of one replica there is no other that produces: that is a stall.
	for _, r := range o.replicas {
		if o.fellSilent(r) && slices.ContainsFunc(o.replicas, func(x replica) bool { return lastKnown(x.series("generation_tokens")) > 0 }) {
			n++
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
	start := len(tokens)
	for start > 0 && !(tokens[start-1] > 0) {
		start--
	}
	quiet := float64(len(tokens)-start) * o.grid.step.Seconds()
	return mean(o.baseline.of(began))*quiet >= silentAfter
}
