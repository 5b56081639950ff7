package sim

import (
	"fmt"
	"math/rand/v2"

	"vllm-triage/promq/memstore"
)

// Scenario is one incident: a fleet, what clients send before and after, and what else happens. Times are in minutes.
type Scenario struct {
	Name string
	// Bottleneck and Trigger are what is meant to happen; Meter decides whether it did.
	Bottleneck, Trigger string
	// Also are answers that are as good, AlsoTriggers on the other axis.
	Also, AlsoTriggers []string
	Replicas           int
	Machine            Machine
	Scrape             float64 // Seconds between scrapes.
	Calm               float64 // Time before the fault.
	Ask                float64 // Time from the fault to the question.
	Ramp               float64 // Time that the change takes.
	Before, After      Load
	// Down is a replica, from 1, that crashes at the fault; it is back after Back, or never if that is 0.
	Down int
	Back float64
	// Restart says that all replicas restart at the fault, gone for Back, and come back as Changed.
	Restart bool
	Changed Machine
	Alert   string // Name of the alert that fires; empty asks without one.
	Where   int    // Replica, from 1, that the answer must name; 0 is none.
}

// Played is a scenario with what it left behind.
type Played struct {
	Scenario Scenario
	Store    *memstore.Store
	// Before and During are what the model counted in the calm before the fault and since it took hold; Worst is
	// During of the replica that waited most.
	Before, During, Worst Meter
	FaultAt, AskAt        float64
}

// warmup is how long the fleet runs before the first scrape, in seconds.
const warmup = 120

// Play runs a scenario.
func (sc Scenario) Play(seed uint64) Played {
	p := Played{Scenario: sc, FaultAt: warmup + sc.Calm*60, AskAt: warmup + sc.Calm*60 + sc.Ask*60}
	arriving := sc.arrivals(seed, p.FaultAt, p.AskAt)
	var series []memstore.Series
	worst := -1.0
	for i := range sc.Replicas {
		before, during, x := sc.playReplica(i, seed, arriving[i], p)
		p.Before.add(before)
		p.During.add(during)
		if w := ratio(during.Waiting, during.Time) + ratio(during.FirstTime, during.Firsts); w > worst {
			worst, p.Worst = w, during
		}
		series = append(series, x.series...)
	}
	p.Store = memstore.New(series)
	return p
}

// loadAt is what clients send at a moment.
func (sc Scenario) loadAt(t, fault float64) Load {
	if t < fault {
		return sc.Before
	}
	if sc.Ramp > 0 {
		return between(sc.Before, sc.After, (t-fault)/(sc.Ramp*60))
	}
	return sc.After
}

// down says whether a replica is gone at a moment.
func (sc Scenario) down(i int, t, fault float64) bool {
	if t < fault || !sc.Restart && sc.Down != i+1 {
		return false
	}
	return sc.Back == 0 || t < fault+sc.Back*60+float64(7*i%20)
}

func (sc Scenario) arrivals(seed uint64, fault, end float64) [][]*request {
	out := make([][]*request, sc.Replicas)
	c := newClients(seed, sc.Replicas)
	for c.next < end {
		t := c.next
		w := sc.loadAt(t, fault)
		i := c.deal(w, func(i int) bool { return !sc.down(i, t-2, fault) })
		made := c.make(w)
		if i >= 0 {
			out[i] = append(out[i], made...)
		}
	}
	return out
}

func (sc Scenario) playReplica(i int, seed uint64, arriving []*request, p Played) (before, during Meter, x *exporter) {
	rng := rand.New(rand.NewPCG(seed, uint64(i)+1)) //nolint:gosec // Simulation, not secrets.
	m, started := sc.Machine, float64(-200_000-977*i)
	s := newServer(m, 0, rng.NormFloat64)
	x = newExporter("Org/"+sc.Name, i)
	next := warmup + sc.Scrape*rng.Float64()
	from := sc.settled(p)
	gone := false
	mark := Meter{}
	begun, taken := false, false
	for t := 0.0; t < p.AskAt; {
		w := sc.loadAt(t, p.FaultAt)
		switch down := sc.down(i, t, p.FaultAt); {
		case down && !gone:
			gone = true
		case !down && gone:
			gone = false
			if sc.Restart && sc.Changed.Seqs > 0 {
				m = sc.Changed
			}
			meter := s.meter
			s, started = newServer(m, t, rng.NormFloat64), t-25
			s.meter = meter
		}
		s.slow, s.slowFE, s.starved, s.stuck = 1, max(w.FrontSlow, 1), w.Starved, w.Frozen && (w.SlowOne == 0 || w.SlowOne == i+1)
		if w.Slow > 0 && (w.SlowOne == 0 || w.SlowOne == i+1) {
			s.slow = w.Slow
		}
		until := min(t+macroStep, next)
		for len(arriving) > 0 && arriving[0].arrived <= until {
			if !gone {
				s.meter.Arrivals++
				s.accept(arriving[0])
			}
			arriving = arriving[1:]
		}
		if gone {
			s.now = until
		} else {
			s.run(until)
		}
		t = until
		if t >= next {
			if gone {
				x.scrape(t, nil, started)
			} else {
				x.scrape(t, s, started)
			}
			next += sc.Scrape
		}
		if !begun && t >= warmup {
			begun, mark = true, *s.meter
		}
		if before.Time == 0 && t >= p.FaultAt {
			before = s.meter.since(mark)
			before.Time = p.FaultAt - warmup
		}
		if !taken && t >= from {
			taken, mark = true, *s.meter
		}
	}
	during = s.meter.since(mark)
	during.Time = p.AskAt - from
	return before, during, x
}

// settled is when a fault is all there: what is true is counted from then on.
func (sc Scenario) settled(p Played) float64 {
	from := p.FaultAt + max(sc.Ramp*60, min((p.AskAt-p.FaultAt)/3, 240))
	if sc.Restart {
		from = max(from, p.FaultAt+sc.Back*60+30)
	}
	return from
}

// since is what was added to a meter after an earlier reading.
func (m Meter) since(o Meter) Meter {
	for _, f := range []*float64{
		&o.Time, &o.Stepping, &o.Slots, &o.Pool, &o.Budget, &o.Prefill, &o.Deferred, &o.Waiting, &o.Running, &o.GapTime, &o.Gaps,
		&o.FirstTime, &o.Firsts, &o.OutsideTime, &o.Arrivals, &o.Left,
	} {
		*f = -*f
	}
	m.add(o)
	return m
}

// String is one line of what limited the fleet.
func (p Played) String() string {
	d, b := p.During, p.Before
	return fmt.Sprintf("slots %.2f pool %.2f budget %.2f prefill %.2f deferred %.2f wait %.1f run %.1f (was %.1f) itl %.0f→%.0f ms ttft %.2f→%.2f s outside %.2f busy %.2f→%.2f",
		d.Share(d.Slots), d.Share(d.Pool), d.Share(d.Budget), d.Share(d.Prefill), d.Share(d.Deferred),
		ratio(d.Waiting, d.Time), ratio(d.Running, d.Time), ratio(b.Running, b.Time), b.ITL()*1000, d.ITL()*1000, b.TTFT(), d.TTFT(),
		ratio(d.OutsideTime, d.Firsts), ratio(b.Stepping, b.Time), ratio(d.Stepping, d.Time))
}
