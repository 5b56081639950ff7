package triage

import (
	"math"

	"vllm-triage/promq"
)

// restarts counts process starts from shortly before the onset to the end. Where neither start times nor scrapes can be
// seen, that there were none is not known.
func restarts(p *plan, o *observations) map[string]float64 {
	if len(o.restarts) == 0 && len(present(o.series("start_time"))) == 0 && len(present(o.series("up"))) == 0 {
		return nil
	}
	n := 0.0
	for _, r := range o.restarts {
		if r >= o.onsetIdx-o.points(p.rate+minuteOf) {
			n++
		}
	}
	return map[string]float64{"level": n, "base": 0}
}

func configChanges(_ *plan, o *observations) map[string]float64 {
	if !o.configs.known {
		return nil
	}
	return map[string]float64{"level": float64(len(o.configs.changed)), "base": 0}
}

// replicasDown counts targets of the scope that do not answer their scrape now.
func replicasDown(_ *plan, o *observations) map[string]float64 {
	up, targets := o.series("up"), o.series("targets")
	last := len(up) - 1
	if last < 0 || o.upSilent() {
		return nil
	}
	now, all := at(up, last), at(targets, last)
	if math.IsNaN(now) || math.IsNaN(all) {
		// No target at all any more.
		now, all = 0, orZero(promq.Max(present(targets)))
	}
	return map[string]float64{"level": all - now, "base": 0}
}

// replicasLost counts how many fewer replicas answer than in the baseline: down now, or gone from service discovery.
func replicasLost(_ *plan, o *observations) map[string]float64 {
	up := o.series("up")
	if up == nil || o.baseline.len() == 0 || o.upSilent() {
		return nil
	}
	before := promq.Median(present(o.baseline.of(up)))
	now := promq.Min(present(o.window.of(up)))
	last := at(up, len(up)-1)
	if math.IsNaN(before) || math.IsNaN(now) {
		return nil
	}
	return map[string]float64{"level": before - orZero(last), "max": before - now, "base": 0}
}

// replicasGone counts replicas that do not answer now, and those that service discovery dropped while others lack them:
// a pod that is gone leaves no target behind.
func replicasGone(p *plan, o *observations) map[string]float64 {
	down := replicasDown(p, o)
	if down == nil {
		return nil
	}
	n := down["level"]
	if lost := replicasLost(p, o); lost != nil && lost["level"] > n {
		n = lost["level"]
	}
	return map[string]float64{"level": max(n, 0), "base": 0}
}
