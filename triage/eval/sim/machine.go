package sim

import (
	"math"
	"slices"
)

// blockSize is the number of tokens in one KV block.
const blockSize = 16

// macroStep is how much virtual time, in seconds, steps of the same batch are taken in one go.
const macroStep = 0.05

// Machine is one replica: its limits, and how long its steps take. Times are in seconds, sizes in tokens unless said
// otherwise. A step takes Base + Each·(running) + Chunk·(prompt tokens in it) + Context·(tokens held by its requests).
type Machine struct {
	Base, Each, Chunk, Context float64
	Seqs                       int // max_num_seqs.
	Budget                     int // max_num_batched_tokens.
	Blocks                     int // num_gpu_blocks.
	Loras                      int // max_loras; 0 is off.
	Compilers                  int // Threads that compile grammars.
	// FrontRequest, FrontPrompt and FrontToken are what a request, a token of its prompt and an output token cost the API process.
	FrontRequest, FrontPrompt, FrontToken float64
}

// request is one sequence.
type request struct {
	arrived, queued, ready, scheduled, first, last, deadline float64
	compile                                                  float64 // Seconds that its grammar takes; 0 is none.
	prompt, cached, output                                   int
	left                                                     int // Prompt tokens still to compute.
	held                                                     int // Tokens of its own in the pool.
	made                                                     int // Tokens generated.
	want                                                     int // Tokens in the step being made.
	adapter, n                                               int
	child                                                    bool
}

func blocks(tokens int) int { return (tokens + blockSize - 1) / blockSize }

// server is a replica at work.
type server struct {
	m        Machine
	now      float64
	slow     float64 // Factor on the time of a step.
	stuck    bool
	slowFE   float64 // Factor on the cost of the API process.
	starved  bool    // That factor is CPU that it is denied, not work.
	waiting  []*request
	deferred []*request
	running  []*request
	free     int
	prefix   int // Blocks of the shared prefix that running requests refer to.
	adapters map[int]int
	compiler []float64 // When each compiler is free.
	frontend float64   // When the API process has done all that it was given.
	noise    float64
	rand     func() float64 // Standard normal.
	sweep    float64

	c     counters
	meter *Meter
	gauge gauges
	sets  map[string]float64 // Sets of adapters and when they were last seen.
}

// gauges are what the last step reported: vLLM writes them after a step only.
type gauges struct {
	running, waiting, deferred int
	kv                         float64
}

func newServer(m Machine, at float64, normal func() float64) *server {
	return &server{
		m: m, now: at, slow: 1, slowFE: 1, free: m.Blocks, rand: normal, frontend: at,
		adapters: map[int]int{}, compiler: make([]float64, max(m.Compilers, 1)), meter: &Meter{}, c: newCounters(),
	}
}

// front takes time of the API process and returns when it is done.
func (s *server) front(at, cost float64) float64 {
	s.frontend = max(s.frontend, at) + cost*s.slowFE
	if s.starved {
		s.c.cpu += cost
	} else {
		s.c.cpu += cost * s.slowFE
	}
	return s.frontend
}

// accept takes a request from a client.
func (s *server) accept(r *request) {
	if r.child {
		r.queued = s.frontend
	} else {
		r.queued = s.front(r.arrived, s.m.FrontRequest+s.m.FrontPrompt*float64(r.prompt))
	}
	r.ready = r.queued
	if r.compile > 0 {
		i := 0
		for j := range s.compiler {
			if s.compiler[j] < s.compiler[i] {
				i = j
			}
		}
		s.compiler[i] = max(s.compiler[i], r.queued) + r.compile
		r.ready = s.compiler[i]
	}
	s.waiting = append(s.waiting, r)
}

// run lets the server work until a moment.
func (s *server) run(until float64) {
	for s.now < until {
		if s.stuck {
			s.now = until
			return
		}
		if !s.step(until) {
			s.now = min(until, s.now+macroStep/2)
		}
	}
}

// step makes one step, or several equal ones, and returns false when there was nothing to do.
func (s *server) step(until float64) bool {
	s.leave()
	budget, prefill, context := s.m.Budget, 0, 0
	preempted := s.schedule(&budget, &prefill, &context)
	noRoom := false
	if !preempted {
		noRoom = s.admit(&budget, &prefill, &context)
	}
	s.report()
	n := len(s.running)
	if n == 0 {
		return false
	}
	s.noise += 0.1*(-s.noise) + 0.01*s.rand()
	dt := s.slow * (1 + s.noise) * (s.m.Base + s.m.Each*float64(n) + s.m.Chunk*float64(prefill) + s.m.Context*float64(context))
	times := 1
	if prefill == 0 && s.frozen() {
		times = s.equalSteps(dt, until)
	}
	s.meter.step(s, dt*float64(times), prefill, budget, preempted, noRoom)
	for _, r := range s.running {
		if times > 1 {
			s.free -= blocks(r.held+times-1) - blocks(r.held)
			r.held += times - 1
		}
	}
	s.now += dt * float64(times)
	s.output(dt, times)
	return true
}

// frozen says that no request can join before one leaves, or that none wants to.
func (s *server) frozen() bool {
	return len(s.waiting) == 0 && len(s.deferred) == 0 || len(s.running) >= s.m.Seqs
}

// equalSteps is how many steps of the same batch fit before something can change.
func (s *server) equalSteps(dt, until float64) int {
	k := int(min(macroStep, until-s.now) / dt)
	for _, r := range s.running {
		k = min(k, r.output-r.made)
	}
	if k < 2 || s.free < len(s.running)*(k/blockSize+1) {
		return 1
	}
	return k
}

// schedule gives the running requests their tokens, in order, and preempts the last when the pool is empty.
func (s *server) schedule(budget, prefill, context *int) (preempted bool) {
	for i := 0; i < len(s.running); i++ {
		r := s.running[i]
		r.want = 1
		if r.left > 0 {
			r.want = min(r.left, *budget)
		}
		if r.want = min(r.want, *budget); r.want == 0 {
			continue
		}
		self := false
		for s.free < blocks(r.held+r.want)-blocks(r.held) {
			victim := s.running[len(s.running)-1]
			s.preempt(victim)
			preempted = true
			if self = victim == r; self {
				break
			}
		}
		if self {
			break
		}
		s.take(r, budget, prefill, context)
	}
	return preempted
}

// take books a request's tokens of this step.
func (s *server) take(r *request, budget, prefill, context *int) {
	s.free -= blocks(r.held+r.want) - blocks(r.held)
	r.held += r.want
	*budget -= r.want
	*context += r.held + r.cached
	if r.left > 0 {
		r.left -= r.want
		*prefill += r.want
	}
}

// admit lets waiting requests in, first come first served, and says whether the first that could not had no room.
func (s *server) admit(budget, prefill, context *int) (noRoom bool) {
	if len(s.deferred) > 0 && len(s.running) < s.m.Seqs && *budget > 0 {
		s.waiting = append(s.deferred, s.waiting...)
		s.deferred = nil
	}
	for len(s.waiting) > 0 && len(s.running) < s.m.Seqs && *budget > 0 {
		r := s.waiting[0]
		if r.queued > s.now {
			break
		}
		if s.holdsBack(r) {
			s.deferred = append(s.deferred, r)
			s.waiting = s.waiting[1:]
			continue
		}
		if s.scheduledFirst(r) && r.cached > 0 && s.prefix == 0 {
			s.prefix = blocks(r.cached)
			s.free -= s.prefix
		}
		need := r.prompt - r.cached + r.made
		if blocks(need) > s.free {
			noRoom = true
			break
		}
		s.waiting = s.waiting[1:]
		r.left, r.held = need, 0
		if s.scheduledFirst(r) {
			r.scheduled = s.now
			s.c.queries += float64(r.prompt)
			s.c.hits += float64(r.cached)
		}
		if r.adapter > 0 {
			s.adapters[r.adapter]++
		}
		s.running = append(s.running, r)
		r.want = min(r.left, *budget)
		s.take(r, budget, prefill, context)
	}
	return noRoom
}

func (s *server) scheduledFirst(r *request) bool { return r.scheduled == 0 }

// holdsBack says whether a request waits for its grammar or for an adapter slot.
func (s *server) holdsBack(r *request) bool {
	if r.compile > 0 && r.ready > s.now {
		return true
	}
	return r.adapter > 0 && s.m.Loras > 0 && s.adapters[r.adapter] == 0 && len(s.adapters) >= s.m.Loras
}

func (s *server) release(r *request) {
	s.free += blocks(r.held)
	if r.adapter > 0 {
		if s.adapters[r.adapter]--; s.adapters[r.adapter] <= 0 {
			delete(s.adapters, r.adapter)
		}
	}
}

func (s *server) preempt(r *request) {
	s.release(r)
	s.running = s.running[:len(s.running)-1]
	r.held, r.left = 0, 0
	s.waiting = slices.Insert(s.waiting, 0, r)
	s.c.preempted++
}

// leave drops the requests whose clients gave up; vLLM counts a disconnect nowhere but in HTTP.
func (s *server) leave() {
	if s.now < s.sweep {
		return
	}
	s.sweep = s.now + 0.5
	gone := func(r *request) bool { return r.deadline > 0 && r.deadline <= s.now }
	drop := func(list []*request, held bool) []*request {
		return slices.DeleteFunc(list, func(r *request) bool {
			if !gone(r) {
				return false
			}
			if held {
				s.release(r)
			}
			if r.made > 0 {
				s.meter.Left++
			}
			s.c.aborted++
			if !r.child {
				s.c.http++
			}
			return true
		})
	}
	s.waiting, s.deferred = drop(s.waiting, false), drop(s.deferred, false)
	s.running = drop(s.running, true)
	s.settlePrefix()
}

// settlePrefix frees the shared prefix when nobody refers to it.
func (s *server) settlePrefix() {
	if s.prefix > 0 && !slices.ContainsFunc(s.running, func(r *request) bool { return r.cached > 0 && !r.child }) {
		s.free += s.prefix
		s.prefix = 0
	}
}

// report writes the gauges.
func (s *server) report() {
	g := gauges{running: len(s.running), deferred: len(s.deferred), kv: 1 - float64(s.free)/float64(s.m.Blocks)}
	for _, r := range s.waiting {
		if r.queued > s.now {
			break
		}
		g.waiting++
	}
	s.gauge = g
}

// output gives tokens to all that decode, and books what the front end sees.
func (s *server) output(dt float64, times int) {
	tokens, outputs := 0, 0
	seen := s.now
	for _, r := range s.running {
		if r.left == 0 && r.want > 0 {
			outputs += times
		}
	}
	if outputs > 0 {
		seen = s.front(s.now, s.m.FrontToken*float64(outputs))
	}
	finished := false
	s.running = slices.DeleteFunc(s.running, func(r *request) bool {
		if r.left > 0 || r.want == 0 {
			return false
		}
		if r.made == 0 {
			r.first = s.now
			s.c.ttft.observe(seen-r.arrived, 1)
			s.meter.first(seen-r.arrived, r.queued-r.arrived+seen-s.now)
			s.c.prompt += float64(r.prompt)
			s.c.cached += float64(r.cached)
			tokens += r.prompt - r.cached
		} else {
			gap := s.now - r.last - dt*float64(times-1)
			s.c.itl.observe(gap, 1)
			s.c.itl.observe(dt, float64(times-1))
			s.meter.gap(gap+dt*float64(times-1), times)
		}
		r.made += times
		r.last = s.now
		tokens += times
		s.c.generated += float64(times)
		if r.made < r.output {
			return false
		}
		s.release(r)
		s.finish(r, seen)
		finished = true
		return true
	})
	if finished {
		s.settlePrefix()
	}
	if outputs > 0 {
		s.c.iteration.observe(float64(tokens)/float64(times), float64(times))
	}
}

func (s *server) finish(r *request, seen float64) {
	s.c.finished++
	if !r.child {
		s.c.http++
		s.c.paramsN.observe(float64(r.n), 1)
	}
	s.c.e2e.observe(seen-r.arrived, 1)
	s.c.queue.observe(r.scheduled-r.queued, 1)
	s.c.prefill.observe(r.first-r.scheduled, 1)
	s.c.decode.observe(r.last-r.first, 1)
	s.c.promptLen.observe(float64(r.prompt), 1)
	s.c.outputLen.observe(float64(r.made), 1)
}

// lag is how far the API process is behind.
func (s *server) lag() float64 { return math.Max(s.frontend-s.now, 0) }
