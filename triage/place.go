package triage

import (
	"math"
	"slices"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// deviating lists the replicas that a cause is about, by the signals of the cause that have a per-replica view.
func (o *observations) deviating(p *plan, c kb.Cause) []replica {
	switch c.ID {
	case "replica_down", "replica_loss", "restart":
		return o.downReplicas()
	case "replica_imbalance", "routing_change":
		if r, f := o.worst("load", 1, o.late); f >= 1.5 {
			return []replica{r}
		}
		return nil
	}
	var out []replica
	for _, r := range o.replicas {
		if o.concerned(r, c) {
			out = append(out, r)
		}
	}
	return out
}

// downReplicas lists the replicas that do not answer at the end, or did not during the incident when all are back.
func (o *observations) downReplicas() []replica {
	var now, during []replica
	for _, r := range o.replicas {
		up := r.series("up")
		if up == nil {
			continue
		}
		last := lastKnown(up)
		gone := math.IsNaN(at(up, len(up)-1)) && len(present(up)) > 0
		if last == 0 || gone {
			now = append(now, r)
		} else if promq.Min(present(o.window.of(up))) == 0 {
			during = append(during, r)
		}
	}
	if len(now) > 0 {
		return now
	}
	return during
}

func lastKnown(v []float64) float64 {
	for _, x := range slices.Backward(v) {
		if !math.IsNaN(x) {
			return x
		}
	}
	return math.NaN()
}

// placeSignals are the per-replica signals by which a replica is seen to take part.
var placeSignals = []string{"waiting", "kv_usage", "itl", "running"}

// concerned says whether a replica shows the cause: of the per-replica signals that deviate for the scope as a whole, it
// deviates in at least one itself.
func (o *observations) concerned(r replica, c kb.Cause) bool {
	for _, id := range placeSignals {
		if !slices.Contains(c.Explains, id) && !evidenceOf(c, id) {
			continue
		}
		now, before := o.replicaLevel(r, id, o.late), o.replicaLevel(r, id, o.baseline)
		floor := o.get(id).sig.Floor
		if math.IsNaN(now) {
			continue
		}
		if math.IsNaN(before) {
			before = 0
		}
		if now-before > max(floor, 0.5*before) {
			return true
		}
	}
	return false
}

func evidenceOf(c kb.Cause, id string) bool {
	return slices.ContainsFunc(c.Evidence, func(p kb.Predicate) bool { return p.Signal == id })
}
