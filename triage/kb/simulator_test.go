package kb_test

import (
	"math"
	"math/rand/v2"
	"slices"
)

// machine is one replica: what limits it and how long its steps take. Times are in seconds, sizes in tokens.
type machine struct {
	seqs   int  // max_num_seqs.
	budget int  // max_num_batched_tokens.
	pool   int  // KV cache.
	loras  int  // max_loras; 0: LoRA is off.
	queue  int  // max_num_queued_reqs; 0: no limit.
	nixl   bool // KV comes from a prefill server.
	// A step takes base + each·(running requests) + chunk·(prompt tokens in it) + context·(tokens held by its requests).
	base, each, chunk, context float64
}

// workload is what clients send and what happens to it. Its zero values mean "none of that".
type workload struct {
	rate              float64 // Requests a second to the whole scope.
	prompt, output    float64 // Mean tokens; single requests vary by a third.
	n                 int     // Sequences per request.
	hit               float64 // Share of a prompt that the prefix cache has.
	slow              float64 // Factor on the step time of the replica slowOne, or of all when that is 0; 0 is 1.
	slowOne           int     // Replica counted from 1.
	frontend          float64 // Seconds in the API process before the engine.
	cpu, scrape       float64 // Cores that the API process uses, seconds that it takes to answer a scrape.
	patience          float64 // Seconds after which a client leaves.
	adapters          int     // LoRA adapters asked for in turn.
	grammar, grammars float64 // Seconds to compile a grammar, share of requests that bring one.
	remote            float64 // Seconds that a request waits for remote KV.
	lose              float64 // Share of transfers that fail; those requests end in an error.
	errors            float64 // Share of requests that end in an error.
	images            float64 // Items per request, each computed for encode seconds before the engine.
	encode            float64
	drafts, accepted  float64 // Draft tokens per step and how many of them are accepted.
	weights           []float64
	hang              bool    // The engine makes no step.
	giant             int     // Tokens of one single prompt, sent once.
	park              float64 // Share of requests that the scheduler defers for ever, each taking a slot.
	burst             int     // So many requests come at once.
	asleep            bool    // Sleep mode: the engine is idle and requests fail.
	cancel            bool    // All clients leave at once.
	wedged            bool    // What ran is gone and nothing is admitted any more.
	stuck             bool    // What runs stays and makes no progress.
	strand            float64 // Seconds that the blocks of finished requests stay taken.
}

// request is one sequence in the engine.
type request struct {
	arrived, queued, scheduled, first, last float64
	ready                                   float64 // Deferred until then.
	prompt, cached, output                  int
	prefill                                 int // Tokens still to compute before it can decode.
	held                                    int // Tokens that it holds in the KV cache.
	made                                    int // Tokens generated.
	adapter                                 int
	child, failing, images, parked          bool
}

func (r *request) blocks(more int) int { return (r.held + more + 15) / 16 * 16 }

// engine is a replica at work: a scheduler like vLLM's (admission while a whole prompt fits, chunked prefill, preemption
// of the last that came, deferred requests skipped) with the counters that vLLM exports.
type engine struct {
	m       machine
	now     float64
	waiting []*request
	running []*request
	free    int
	loads   workload
	factor  float64
	c       counters
	credit  float64 // Accepted draft tokens not yet given out.
	kept    []stranded
}

// stranded are blocks that a finished request still holds.
type stranded struct {
	until  float64
	tokens int
}

// counters are the totals of one process since its start.
type counters struct {
	prompt, computed, cached, generated, queries, hits      float64
	preempted, finished, failed, http, http5xx, rejected    float64
	steps, iteration                                        float64
	outTokens, params, parents                              float64
	inTokens, fresh, inference, perToken, perTokens, remote float64
	drafts, accepted, items, external, externalHits, loaded float64
	loadTime, lost, expired, cpu                            float64
	ttft, itl, e2e, queue, prefillTime, decodeTime          histogram
}

// histogram keeps the sum, the count and a few buckets, each with what is above the one before.
type histogram struct {
	sum, count float64
	le         []float64
	in         []float64
}

// upTo is the cumulative count of a bucket, as it is exported.
func (h histogram) upTo(bucket int) float64 {
	n := 0.0
	for _, x := range h.in[:bucket+1] {
		n += x
	}
	return n
}

func newHistogram(le ...float64) histogram { return histogram{le: le, in: make([]float64, len(le))} }

func (h *histogram) observe(v float64) {
	h.sum += v
	h.count++
	for i, le := range h.le {
		if v <= le {
			h.in[i]++
			return
		}
	}
}

func newEngine(m machine, at float64) *engine {
	e := &engine{m: m, now: at, free: m.pool / 16 * 16}
	e.c.ttft = newHistogram(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 40, 160)
	e.c.itl = newHistogram(0.025, 0.05, 0.1, 0.2, 0.5, 1, 5)
	e.c.e2e = newHistogram(1, 2.5, 5, 10, 20, 40, 60, 120, 480)
	return e
}

// accept takes a request from the front end.
func (e *engine) accept(r *request) {
	if e.loads.asleep {
		e.c.http++
		e.c.http5xx++
		return
	}
	if e.m.queue > 0 && len(e.waiting) >= e.m.queue {
		e.c.rejected++
		e.c.http++
		e.c.http5xx++
		return
	}
	r.queued = r.arrived + e.loads.frontend
	if r.images {
		r.queued += e.loads.encode
		e.c.items++
	}
	e.waiting = append(e.waiting, r)
}

// step runs the engine once and returns false when there was nothing to do.
func (e *engine) step() bool {
	e.leave()
	e.release()
	switch {
	case e.loads.stuck:
		return false
	case e.loads.wedged:
		for _, r := range e.running {
			e.free += r.blocks(0)
		}
		e.running = nil
		return false
	}
	budget, prefill, decodes, context := e.m.budget, 0, 0, 0
	e.admit(&budget)
	for i := 0; i < len(e.running); i++ {
		r := e.running[i]
		need := 1
		if r.prefill > 0 {
			need = min(r.prefill, budget)
			if need == 0 {
				continue
			}
		}
		for e.free < r.blocks(need)-r.blocks(0) {
			victim := e.running[len(e.running)-1]
			e.preempt(victim)
			if victim == r {
				break
			}
		}
		if i >= len(e.running) {
			break
		}
		e.free -= r.blocks(need) - r.blocks(0)
		r.held += need
		budget -= need
		context += r.held
		if r.prefill > 0 {
			r.prefill -= need
			prefill += need
		} else {
			decodes++
		}
	}
	if len(e.running) == 0 {
		return false
	}
	factor := max(e.factor, 1)
	e.now += factor * (e.m.base + e.m.each*float64(len(e.running)) + e.m.chunk*float64(prefill) + e.m.context*float64(context))
	e.output()
	return true
}

// leave drops the requests whose clients gave up: vLLM counts a disconnect nowhere but in HTTP.
func (e *engine) leave() {
	if e.loads.patience == 0 {
		return
	}
	gone := func(r *request) bool {
		if e.now-r.arrived < e.loads.patience {
			return false
		}
		e.free += r.blocks(0)
		e.c.http++
		return true
	}
	e.waiting = slices.DeleteFunc(e.waiting, gone)
	e.running = slices.DeleteFunc(e.running, gone)
}

func (e *engine) admit(budget *int) {
	slots := e.m.seqs - e.parked()
	for i := 0; i < len(e.waiting); {
		r := e.waiting[i]
		switch {
		case len(e.running) >= slots || *budget <= 0:
			return
		case r.queued > e.now:
			i++
			continue
		case e.deferred(r):
			i++
			continue
		}
		cached := 0
		if r.scheduled == 0 {
			cached = r.cached
		}
		// The whole input has to fit; the shared prefix is held once and costs nothing here.
		if need := r.prompt - cached + r.made; (need+15)/16*16 > e.free {
			return
		}
		r.prefill = max(r.prompt-cached+r.made, 1)
		r.held = 0
		if r.scheduled == 0 {
			r.scheduled = e.now
			e.c.queries += float64(r.prompt)
			e.c.hits += float64(cached)
			e.fetched(r)
		}
		e.running = append(e.running, r)
		e.waiting = slices.Delete(e.waiting, i, i+1)
	}
}

// fetched books the KV that a request got from elsewhere, or did not get.
func (e *engine) fetched(r *request) {
	if !e.m.nixl {
		return
	}
	e.c.external += float64(r.prompt)
	e.c.externalHits += float64(r.prompt)
	if r.failing {
		e.c.lost++
		return
	}
	e.c.loaded++
	e.c.loadTime += max(e.loads.remote, 0.02) * 0.6
}

// parked counts the requests that hold a slot without running.
func (e *engine) parked() int {
	if e.loads.park == 0 {
		return 0
	}
	n := 0
	for _, r := range e.waiting {
		if r.parked && r.queued <= e.now {
			n++
		}
	}
	return n
}

// deferred says whether a request waits for something else than a slot or room.
func (e *engine) deferred(r *request) bool {
	if r.ready > e.now || r.parked {
		return true
	}
	if e.m.loras == 0 || r.adapter == 0 {
		return false
	}
	active := map[int]bool{}
	for _, x := range e.running {
		if x.adapter > 0 {
			active[x.adapter] = true
		}
	}
	return !active[r.adapter] && len(active) >= e.m.loras
}

func (e *engine) preempt(victim *request) {
	i := slices.Index(e.running, victim)
	e.running = slices.Delete(e.running, i, i+1)
	e.free += victim.blocks(0)
	victim.held = 0
	e.waiting = slices.Insert(e.waiting, 0, victim)
	e.c.preempted++
}

// output gives every request that decodes its token and books what vLLM books.
func (e *engine) output() {
	tokens := 0.0
	extra := 0
	if e.loads.drafts > 0 {
		e.credit += e.loads.accepted
		extra = int(e.credit)
		e.credit -= float64(extra)
	}
	e.running = slices.DeleteFunc(e.running, func(r *request) bool {
		if r.prefill > 0 {
			return false
		}
		if r.made == 0 {
			r.first = e.now
			e.c.ttft.observe(e.now - r.arrived)
			e.c.prompt += float64(r.prompt)
			e.c.cached += float64(r.cached)
			if e.m.nixl && !r.failing {
				e.c.remote += float64(r.prompt - r.cached)
			} else {
				e.c.computed += float64(r.prompt - r.cached)
			}
			tokens += float64(r.prompt - r.cached)
		} else {
			e.c.itl.observe(e.now - r.last)
		}
		got := 1
		if e.loads.drafts > 0 && r.made > 0 {
			got = min(1+extra, r.output-r.made)
			e.c.drafts += e.loads.drafts
			e.c.accepted += float64(got - 1)
		}
		r.made += got
		r.last = e.now
		tokens += float64(got)
		e.c.generated += float64(got)
		if r.made < r.output && !r.failing {
			return false
		}
		e.finish(r)
		return true
	})
	if tokens > 0 {
		e.c.steps++
		e.c.iteration += tokens
	}
}

// release frees the blocks that nobody fetched in time.
func (e *engine) release() {
	for len(e.kept) > 0 && e.kept[0].until <= e.now {
		e.free += e.kept[0].tokens
		e.kept = e.kept[1:]
		e.c.expired++
	}
}

func (e *engine) finish(r *request) {
	if e.loads.strand > 0 {
		e.kept = append(e.kept, stranded{e.now + e.loads.strand, r.blocks(0)})
	} else {
		e.free += r.blocks(0)
	}
	if r.failing {
		e.c.failed++
		e.c.http5xx++
	} else {
		e.c.finished++
	}
	if !r.child {
		e.c.http++
		e.c.parents++
		e.c.params += float64(max(e.loads.n, 1))
	}
	e.c.outTokens += float64(r.made)
	e.c.inTokens += float64(r.prompt)
	e.c.fresh += float64(r.prompt - r.cached)
	e.c.inference += e.now - r.scheduled
	if r.made > 1 {
		e.c.perToken += (e.now - r.first) / float64(r.made-1)
		e.c.perTokens++
	}
	e.c.e2e.observe(e.now - r.arrived)
	e.c.queue.observe(r.scheduled - r.queued)
	e.c.prefillTime.observe(r.first - r.scheduled)
	e.c.decodeTime.observe(e.now - r.first)
}

// client makes requests: evenly spaced with some jitter, lengths a third around their means, always the same for a seed.
type client struct {
	rng   *rand.Rand
	next  float64
	sent  int
	giant bool // It was sent.
}

func newClient(seed uint64) *client { return &client{rng: rand.New(rand.NewPCG(seed, seed))} }

func (c *client) around(mean float64) int {
	return max(int(math.Round(mean*(0.67+0.66*c.rng.Float64()))), 1)
}

// make returns the sequences of the next request, all of one replica, and moves on.
func (c *client) make(w workload) []*request {
	var out []*request
	prompt := c.around(w.prompt)
	adapter := 0
	if w.adapters > 0 {
		adapter = 1 + c.sent%w.adapters
	}
	grammar := c.rng.Float64() < w.grammars
	failing := c.rng.Float64() < w.errors+w.lose
	parked := c.rng.Float64() < w.park
	if w.giant > 0 && !c.giant {
		prompt, c.giant = w.giant, true
	}
	for i := range max(w.n, 1) {
		r := &request{
			arrived: c.next, prompt: prompt, cached: int(w.hit * float64(prompt)), output: c.around(w.output), adapter: adapter,
			child: i > 0, failing: failing, images: w.images > 0, parked: parked,
		}
		if i > 0 {
			r.cached = prompt - 1
		}
		r.ready = c.next + w.frontend + w.remote
		if grammar {
			r.ready = c.next + w.grammar
		}
		out = append(out, r)
	}
	c.sent++
	if w.burst > 1 && c.sent%w.burst != 0 {
		return out
	}
	c.next += (0.6 + 0.8*c.rng.Float64()) * float64(max(w.burst, 1)) / max(w.rate, 1e-9)
	return out
}
