package sim

// Meter counts what held requests back. All figures are totals in seconds, tokens or requests over a span of time.
type Meter struct {
	Time              float64 // Length of the span, replicas added up.
	Stepping          float64 // Time in steps.
	Slots             float64 // Time in steps with all slots taken and a request waiting for one.
	Pool              float64 // Time in steps in which a request was preempted or the head of the queue did not fit.
	Budget            float64 // Time in steps whose token budget was used up by prompts.
	Prefill           float64 // Time in steps that prompt tokens took.
	Deferred          float64 // Time in steps with deferred requests.
	Waiting           float64 // Requests that waited for capacity, by time.
	Running           float64 // Requests that ran, by time.
	GapTime, Gaps     float64 // Inter-token latency: sum and count.
	FirstTime, Firsts float64 // Time to first token: sum and count.
	OutsideTime       float64 // Part of FirstTime that was spent in the API process.
	Arrivals          float64 // Sequences that came.
	Left              float64 // Sequences whose clients left after the first token.
}

func (m *Meter) step(s *server, dt float64, prefill, left int, preempted, noRoom bool) {
	m.Stepping += dt
	capacity := s.gauge.waiting > 0
	if capacity && len(s.running) >= s.m.Seqs {
		m.Slots += dt
	}
	if preempted || noRoom && len(s.running) < s.m.Seqs {
		m.Pool += dt
	}
	if left <= 0 && prefill > 0 {
		m.Budget += dt
	}
	if s.gauge.deferred > 0 {
		m.Deferred += dt
	}
	m.Prefill += s.slow * s.m.Chunk * float64(prefill)
	m.Waiting += dt * float64(s.gauge.waiting)
	m.Running += dt * float64(len(s.running))
}

func (m *Meter) gap(seconds float64, times int) {
	m.GapTime += seconds
	m.Gaps += float64(times)
}

func (m *Meter) first(total, outside float64) {
	m.FirstTime += total
	m.OutsideTime += outside
	m.Firsts++
}

// add adds another span.
func (m *Meter) add(o Meter) {
	m.Time += o.Time
	m.Stepping += o.Stepping
	m.Slots += o.Slots
	m.Pool += o.Pool
	m.Budget += o.Budget
	m.Prefill += o.Prefill
	m.Deferred += o.Deferred
	m.Waiting += o.Waiting
	m.Running += o.Running
	m.GapTime += o.GapTime
	m.Gaps += o.Gaps
	m.FirstTime += o.FirstTime
	m.Firsts += o.Firsts
	m.OutsideTime += o.OutsideTime
	m.Arrivals += o.Arrivals
	m.Left += o.Left
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// ITL is the mean inter-token latency in seconds.
func (m Meter) ITL() float64 { return ratio(m.GapTime, m.Gaps) }

// TTFT is the mean time to first token in seconds.
func (m Meter) TTFT() float64 { return ratio(m.FirstTime, m.Firsts) }

// Share is a part of the time in steps, 0 to 1.
func (m Meter) Share(part float64) float64 { return ratio(part, m.Stepping) }
