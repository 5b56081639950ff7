package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Random draws a fleet and something that happens to it, and asks 3 to 30 minutes later. The fault's kind is one of those
// in Scenarios; what Truth does not confirm is to be dropped.
func Random(seed uint64) Scenario { return draw(seed, false) }

// Soon is Random with faults that are there at once, asked 50 seconds to 3 minutes later, as the first alert does.
func Soon(seed uint64) Scenario { return draw(seed, true) }

func draw(seed uint64, soon bool) Scenario {
	rng := rand.New(rand.NewPCG(seed, 0xd1ce)) //nolint:gosec // Simulation, not secrets.
	between := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, rng.Float64()) }
	f := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	s := shape{name: fmt.Sprintf("r%d", seed)}
	speed := between(0.8, 6)
	s.m = Machine{
		Base: 0.0075 * speed, Each: 0.00004 * speed * between(0.5, 2), Chunk: 0.00003 * speed * between(0.5, 2),
		Context: 1e-8 * speed, FrontRequest: 0.0008, FrontPrompt: 4e-7, FrontToken: 8e-6,
	}
	s.prompt, s.output = between(50, 12000), between(20, 1500)
	s.running = between(3, 150)
	s.replicas = int(f(1, 1, 1, 2, 3, 4, 8))
	s.scrape = f(5, 10, 15, 15, 30)
	s.calm, s.ask = f(10, 20, 40, 60), between(3, 30)
	s.ramp = min(f(0, 0, 0, 2, 8, 20), s.ask*0.7)
	if soon {
		s.scrape, s.calm, s.ask, s.ramp = f(5, 5, 10, 15), f(4, 10, 20), between(0.8, 3), 0
	}
	s.wave, s.spread, s.random = f(0, 0.1, 0.2), f(0.2, 0.6, 1), rng.IntN(2) == 0
	s.budget = int(f(2048, 4096, 8192, 16384))
	// What may be in use without being at fault.
	if s.prompt > 200 && rng.IntN(3) == 0 {
		s.hit = 0.3 + 0.6*rng.Float64()
	}
	if rng.IntN(6) == 0 {
		s.adapters = 2 + rng.IntN(4)
	}
	if rng.IntN(6) == 0 {
		s.grammars = 0.3
	}
	if rng.IntN(8) == 0 {
		s.samples = 3
	}
	for s.running > 2 && s.prefillUse() > 0.4 {
		s.running *= 0.8 // Prompts would fill the steps in calm already.
	}
	s.room, s.push, s.used = between(1.1, 2.2), between(1.2, 3), f(0.25, 0.4, 0.55)
	s.terse, s.slowed = between(15, 60), between(1.8, 5)
	groups := [][]Scenario{s.slots(), s.pool(), s.prefill(), s.decode(), s.services(), s.calmOnes()}
	for {
		if g := groups[rng.IntN(len(groups))]; len(g) > 0 {
			sc := g[rng.IntN(len(g))]
			if rng.IntN(2) == 0 {
				sc.Alert = alertFor(sc.Bottleneck, rng)
			}
			return sc
		}
	}
}

// alertFor is an alert that such a fault makes fire.
func alertFor(bottleneck string, rng *rand.Rand) string {
	late := strings.Fields("VLLMHighTTFT VLLMQueueGrowing VLLMHighE2ELatency")
	slow := strings.Fields("VLLMHighITL VLLMHighE2ELatency")
	switch bottleneck {
	case "decode_bound", "device_slowdown":
		late = slow
	case "frontend_bound", "prefill_bound":
		late = late[:1]
	case "kv_cache_exhaustion":
		late = append(late, "VLLMKVCacheHigh", "VLLMPreempting")
	case "engine_stalled":
		late = []string{"VLLMNoThroughput"}
	case "replica_down":
		late = []string{"VLLMInstanceDown"}
	}
	return late[rng.IntN(len(late))]
}
