package triage

import "math"

// maxQueries is how many requests to Prometheus a triage makes at most, however many replicas there are (README, "How it
// decides").
const maxQueries = 90

// What follows after the signals were read, besides one request for each that is read replica by replica: two for each
// quantile and one each about configuration and adapters; those about absence, where the metrics ended; those that choose
// the replicas of a large fleet.
const (
	restOfQueries   = 8
	absenceQueries  = 4
	choosingQueries = 7
)

// room says whether a lost signal may still be asked for in another way: what every report needs comes first.
func (e *Engine) room(log *queryLog, p *plan, o *observations) bool {
	later := restOfQueries
	if math.IsNaN(lastOf(o.series("serving"))) {
		later += absenceQueries
	}
	if p.rows > e.opts.MaxReplicas {
		later += choosingQueries
	}
	for _, x := range o.all {
		if p.rows != 1 && x.sig.Replica && x.wasRead() {
			later++
		}
	}
	return log.count()+later < maxQueries
}
