package triage

import (
	"math"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// deviating lists the replicas that a cause is about: those that show it at least half as strongly as the one that shows
// it most. It is empty when no replica stands out.
func (o *observations) deviating(c kb.Cause) []replica {
	switch c.Where {
	case "":
		return nil
	case "up":
		return o.downReplicas()
	}
	if c.ID == "engine_stalled" {
		return o.stalledReplicas()
	}
	type excess struct {
		r replica
		x float64
	}
	var all []excess
	worst := 0.0
	for _, r := range o.replicas {
		x := o.excess(r, c.Where, c.Place == "replicas")
		if math.IsNaN(x) {
			continue
		}
		all = append(all, excess{r, x})
		worst = max(worst, x)
	}
	var out []replica
	for _, e := range all {
		if worst >= math.Log(1.4) && e.x >= worst/2 {
			out = append(out, e.r)
		}
	}
	return out
}

// excess is how far a replica is above its own baseline, or, for causes about single replicas and where there is no
// baseline, above its peers: the logarithm of the factor, the signal's floor added on both sides.
func (o *observations) excess(r replica, signal string, peers bool) float64 {
	floor := 1.0
	if s, ok := o.all[signal]; ok {
		floor = s.sig.Floor
	}
	now := o.replicaLevel(r, signal, o.late)
	before := o.replicaLevel(r, signal, o.baseline)
	if peers || math.IsNaN(before) {
		var others []float64
		for _, x := range o.replicas {
			if x.key != r.key {
				others = append(others, o.replicaLevel(x, signal, o.late))
			}
		}
		before = promq.Median(others)
	}
	if math.IsNaN(now) {
		return math.NaN()
	}
	return math.Log((now + floor) / (orZero(before) + floor))
}

// stalledReplicas lists the replicas that hold requests and produce no token.
func (o *observations) stalledReplicas() []replica {
	var out []replica
	for _, r := range o.replicas {
		if r.idle() && o.replicaLevel(r, "load", o.late) > 0 {
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
		gone := math.IsNaN(at(up, len(up)-1)) && len(present(up)) > 0
		if lastKnown(up) == 0 || gone {
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

// idle says that a replica generated nothing when it was last seen.
func (r replica) idle() bool { return lastKnown(r.series("generation_tokens")) == 0 }

func lastKnown(v []float64) float64 {
	return at(v, lastIndex(v))
}
