package triage

import (
	"math"

	"vllm-triage/promq"
)

// slotPlateau looks for the signature of max_num_seqs, which no metric gives: running flat at its ceiling while requests
// wait (reference: vllm-metrics §6.35). level is the plateau, spread how flat it is.
func slotPlateau(_ *plan, o *observations) map[string]float64 {
	running, waiting := o.window.of(o.series("running")), o.window.of(o.series("waiting"))
	var flat []float64
	for i := range running {
		if at(waiting, i) >= 1 && !math.IsNaN(running[i]) {
			flat = append(flat, running[i])
		}
	}
	if n := o.late.len(); len(flat) > 2*n {
		flat = flat[len(flat)-n:] // What holds now, where there is enough of it.
	}
	switch {
	case o.get("running").estimate && len(flat) > 0:
		return map[string]float64{"level": promq.Median(flat)} // How flat the gauge would be is not known.
	case len(flat) == 0 || promq.Median(flat) == 0:
		return map[string]float64{"level": 0, "spread": 1}
	case len(flat) < 3:
		return map[string]float64{"level": promq.Median(flat)} // Two points are flat by chance.
	}
	level := promq.Median(flat)
	return map[string]float64{
		"level":  level,
		"spread": max(promq.Quantile(flat, 0.9)-promq.Quantile(flat, 0.1)-1, 0) / level,
	}
}

// limitLowered compares the most that ran before with the ceiling that binds now.
func limitLowered(_ *plan, o *observations) map[string]float64 {
	plateau := slotPlateau(nil, o)
	before := promq.Max(o.baseline.of(o.series("running")))
	if o.get("running").estimate {
		before = promq.Median(o.baseline.of(o.series("running"))) // Its single points are not what ran.
	}
	if plateau["level"] == 0 || math.IsNaN(before) {
		return map[string]float64{"level": 0}
	}
	return map[string]float64{"level": before / plateau["level"], "base": 1}
}
