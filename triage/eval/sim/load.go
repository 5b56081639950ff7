package sim

import (
	"math"
	"math/rand/v2"
)

// Load is what clients send. Zero values mean "none of that".
type Load struct {
	Rate            float64 // Requests a second to the whole fleet.
	Prompt, Output  float64 // Mean tokens.
	Spread          float64 // Coefficient of variation of both; 0 is 0.6.
	N               int     // Sequences per request.
	Hit             float64 // Share of the mean prompt that is a prefix which the cache has.
	Adapters        int     // LoRA adapters asked for, all alike.
	Compile         float64 // Mean seconds that a grammar takes.
	Grammars        float64 // Share of requests that bring one.
	Timeout         float64 // Seconds after which a client leaves.
	Wave            float64 // Amplitude of a slow wave in Rate, 0 to 1.
	Burst           int     // Requests that come together.
	Weights         []float64
	Random          bool // Requests go to replicas at random, not in turn.
	PromptMax       int  // Longest prompt; 0 is 16 times the mean.
	OutputMax       int  // max_tokens; 0 is 16 times the mean.
	Slow            float64
	SlowOne         int // Replica that Slow is about, from 1; 0 is all.
	FrontSlow       float64
	Starved, Frozen bool
}

// between mixes two loads: x of b and the rest of a.
func between(a, b Load, x float64) Load {
	if x <= 0 {
		return a
	}
	if x >= 1 {
		return b
	}
	mix := func(p, q float64) float64 { return p + x*(q-p) }
	out := b
	out.Rate, out.Prompt, out.Output = mix(a.Rate, b.Rate), mix(a.Prompt, b.Prompt), mix(a.Output, b.Output)
	out.Hit, out.Grammars, out.Compile = mix(a.Hit, b.Hit), mix(a.Grammars, b.Grammars), mix(a.Compile, b.Compile)
	out.Slow, out.FrontSlow = mix(max(a.Slow, 1), max(b.Slow, 1)), mix(max(a.FrontSlow, 1), max(b.FrontSlow, 1))
	out.Adapters = int(math.Round(mix(float64(a.Adapters), float64(b.Adapters))))
	return out
}

// clients make requests, the same for a seed.
type clients struct {
	rng   *rand.Rand
	next  float64
	phase float64
	owed  []float64
	sent  int
}

func newClients(seed uint64, replicas int) *clients {
	rng := rand.New(rand.NewPCG(seed, 0x5eed)) //nolint:gosec // Simulation, not secrets.
	return &clients{rng: rng, phase: rng.Float64() * 2 * math.Pi, owed: make([]float64, replicas)}
}

// length draws a log-normal length of at least one token.
func (c *clients) length(mean, spread float64, longest int) int {
	v := math.Log(1 + spread*spread)
	x := mean * math.Exp(math.Sqrt(v)*c.rng.NormFloat64()-v/2)
	return int(min(max(math.Round(x), 1), float64(longest)))
}

// make returns the sequences of the next request and moves on.
func (c *clients) make(w Load) []*request {
	spread := w.Spread
	if spread == 0 {
		spread = 0.6
	}
	longest := func(limit int, mean float64) int {
		if limit > 0 {
			return limit
		}
		return int(16 * mean)
	}
	prefix := int(w.Hit * w.Prompt)
	own := w.Prompt - float64(prefix)
	prompt := prefix + c.length(own, spread, longest(w.PromptMax, w.Prompt)-prefix)
	proto := request{arrived: c.next, prompt: prompt, cached: prefix / blockSize * blockSize, n: max(w.N, 1)}
	if proto.cached >= prompt {
		proto.cached = 0
	}
	if w.Timeout > 0 {
		proto.deadline = c.next + w.Timeout
	}
	if w.Adapters > 0 {
		proto.adapter = 1 + c.rng.IntN(w.Adapters)
	}
	if c.rng.Float64() < w.Grammars {
		proto.compile = w.Compile * c.rng.ExpFloat64()
	}
	out := make([]*request, proto.n)
	for i := range out {
		r := proto
		r.output = c.length(w.Output, spread, longest(w.OutputMax, w.Output))
		if r.child = i > 0; r.child {
			r.cached = prompt - 1
		}
		out[i] = &r
	}
	if c.sent++; w.Burst > 1 && c.sent%w.Burst != 0 {
		return out
	}
	rate := w.Rate * (1 + w.Wave*math.Sin(c.next/700+c.phase)) / float64(max(w.Burst, 1))
	c.next += c.rng.ExpFloat64() / max(rate, 1e-9)
	return out
}

// deal chooses the replica of a request by weight, among those that take requests.
func (c *clients) deal(w Load, up func(i int) bool) int {
	total, weights := 0.0, make([]float64, len(c.owed))
	for i := range weights {
		weights[i] = 1
		if i < len(w.Weights) {
			weights[i] = w.Weights[i]
		}
		if !up(i) {
			weights[i] = 0
		}
		total += weights[i]
	}
	if total == 0 {
		return -1
	}
	if w.Random {
		x := c.rng.Float64() * total
		for i, v := range weights {
			if x -= v; x < 0 {
				return i
			}
		}
	}
	to := -1
	for i, v := range weights {
		c.owed[i] += v / total
		if v > 0 && (to < 0 || c.owed[i] > c.owed[to]) {
			to = i
		}
	}
	c.owed[to]--
	return to
}
