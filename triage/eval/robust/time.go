package robust

import (
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
)

const year = 365 * 24 * time.Hour

// retimed changes when things happened and when they are asked about.
func retimed() []Variant {
	return []Variant{
		{
			Group: groupTime, Name: "a year later",
			Data: func(r *eval.Recording) *memstore.Store { return shift(r.Data.Store(), year) },
			Case: func(c eval.Case) (eval.Case, bool) { return askLater(c, year, year), true },
		},
		{Group: groupTime, Name: "30 min of calm before", Data: func(r *eval.Recording) *memstore.Store {
			return withHistory(r, 30*time.Minute)
		}},
		calmBefore("3 min of calm before", 3*time.Minute, false),
		calmBefore("90 s of calm before", 90*time.Second, false),
		calmBefore("45 s of calm before", 45*time.Second, true),
		calmBefore("no data before the fault", 0, true),
		{Group: groupTime, Name: "the same incident 20 min earlier", Data: func(r *eval.Recording) *memstore.Store {
			return withEarlierIncident(r, 20*time.Minute)
		}},
		{Group: groupTime, Name: "the same incident 6 min earlier", Data: func(r *eval.Recording) *memstore.Store {
			return withEarlierIncident(r, 6*time.Minute)
		}},
		late("alert fires 10 min late, 2 min of calm before", 10*time.Minute, 0),
		late("alert fires 10 min late, 30 min of calm before", 10*time.Minute, 30*time.Minute),
		late("alert fires 30 min late, 30 min of calm before", 30*time.Minute, 30*time.Minute),
		{
			Group: groupTime, Name: "resolved alert, asked an hour later",
			Data: func(r *eval.Recording) *memstore.Store { return recovered(r, time.Hour) },
			Case: func(c eval.Case) (eval.Case, bool) {
				if c.Payload == nil {
					return c, false
				}
				end := c.Incident.Now
				c.Incident.Now = end.Add(time.Hour)
				return withPayload(c, func(p *triage.Payload) {
					p.Status = triage.StatusResolved
					for i := range p.Alerts {
						p.Alerts[i].Status, p.Alerts[i].EndsAt = triage.StatusResolved, end
					}
				}), true
			},
		},
	}
}

// shift moves all samples, and the values that are moments.
func shift(s *memstore.Store, by time.Duration) *memstore.Store {
	return mapValues(s.Shift(by), func(l labels.Labels, v float64) float64 {
		if isTime(nameOf(l)) && v > 0 {
			return v + by.Seconds()
		}
		return v
	})
}

// askLater asks at another time about alerts that started at another time.
func askLater(c eval.Case, now, start time.Duration) eval.Case {
	c.Incident.Now = c.Incident.Now.Add(now)
	if c.Payload == nil {
		return c
	}
	return withPayload(c, func(p *triage.Payload) {
		for i := range p.Alerts {
			p.Alerts[i].StartsAt = p.Alerts[i].StartsAt.Add(start)
		}
	})
}

// calmBefore leaves that much data before the fault.
func calmBefore(name string, d time.Duration, gone bool) Variant {
	return Variant{Group: groupTime, Name: name, Gone: gone, Data: func(r *eval.Recording) *memstore.Store {
		return withHistory(r, 10*time.Minute).Cut(r.FaultStart.Add(-d), time.Time{})
	}}
}

// late is an alert that fires that much later than it did, on an incident that goes on; its rule looks far back, so the
// condition became true late too.
func late(name string, by, calm time.Duration) Variant {
	return Variant{
		Group: groupTime, Name: name,
		Data: func(r *eval.Recording) *memstore.Store { return longFault(r, by, calm) },
		Case: func(c eval.Case) (eval.Case, bool) { return askLater(c, by, by), c.Payload != nil },
	}
}
