package triage

import "math"

// standInForUp lets a replica that serves metrics count as one that answers, where the `up` of its target is not stored:
// remote storages often keep the application's series only. A gap that ended was an outage; how the series end at last is
// left open, because then nobody knows whether the replica or its scrape is gone.
func (o *observations) standInForUp() {
	up, serving := o.get("up"), o.get("serving")
	if up.state == Present || up.state == Failed || serving.state != Present {
		return
	}
	x := *serving
	x.sig, x.asked, x.values = up.sig, up.asked, presence(serving.values, func(v float64) float64 { return v })
	o.all["up"] = &x
	o.noUp = true
}

// standInReplicas does the same for each replica.
func (o *observations) standInReplicas() {
	if !o.noUp {
		return
	}
	for _, r := range o.replicas {
		if serves := r.serves(); serves != nil {
			r.values["up"] = presence(serves, func(float64) float64 { return 1 })
		}
	}
}

// presence maps known values, fills the gaps between them with zeros and leaves both ends unknown.
func presence(v []float64, f func(float64) float64) []float64 {
	out := newSeries(len(v))
	last := -1
	for i, x := range v {
		if math.IsNaN(x) {
			continue
		}
		out[i] = f(x)
		for j := last + 1; last >= 0 && j < i; j++ {
			out[j] = 0
		}
		last = i
	}
	return out
}
