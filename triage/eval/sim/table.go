package sim

import (
	"math"
	"slices"
)

// shape is a fleet in its calm state.
type shape struct {
	name           string
	m              Machine // Without limits.
	prompt, output float64
	running        float64 // Per replica.
	replicas       int
	scrape         float64 // Seconds.
	calm, ask      float64 // Minutes.
	ramp           float64
	wave           float64
	spread         float64
	random         bool
	budget         int
	room           float64 // Limits against what runs in calm; 0 is 1.4.
	push           float64 // How far a fault goes beyond the limit, as a factor; 0 is 1.9.
	hit            float64 // Share of prompts that is a common prefix.
	adapters       int     // LoRA adapters in use, of eight slots; 0 is no LoRA.
	grammars       float64 // Share of requests that bring a grammar which compiles quickly.
	samples        int     // Sequences per request.
	terse          float64 // Prompt tokens for each token of an answer where prefill is to bind; 0 is 40.
	slowed         float64 // How many times as long a slow device takes; 0 is 2.6.
	used           float64 // Share of the step time that prompts take in calm, where prefill is to bind; 0 is 0.35.
}

// Step times as published benchmarks of the sizes show them on one or a few data-centre GPUs.
var (
	small  = Machine{Base: 0.0075, Each: 0.00004, Chunk: 0.00003, Context: 1e-8, FrontRequest: 0.0008, FrontPrompt: 4e-7, FrontToken: 8e-6}
	middle = Machine{Base: 0.018, Each: 0.00009, Chunk: 0.00009, Context: 3e-8, FrontRequest: 0.0008, FrontPrompt: 4e-7, FrontToken: 8e-6}
	large  = Machine{Base: 0.042, Each: 0.00018, Chunk: 0.00020, Context: 6e-8, FrontRequest: 0.0008, FrontPrompt: 4e-7, FrontToken: 8e-6}
)

var shapes = []shape{
	{name: "chat", m: small, prompt: 400, output: 250, running: 30, replicas: 1, scrape: 15, calm: 30, ask: 8, wave: 0.1},
	{name: "classify", m: small, prompt: 60, output: 12, running: 14, replicas: 3, scrape: 5, calm: 15, ask: 4, random: true},
	{name: "rag", m: large, prompt: 6000, output: 250, running: 9, replicas: 3, scrape: 15, calm: 40, ask: 12, ramp: 4, wave: 0.1, spread: 0.4},
	{name: "agents", m: large, prompt: 24000, output: 500, running: 3, replicas: 1, scrape: 30, calm: 60, ask: 25, spread: 0.35, budget: 16384},
	{name: "reasoning", m: middle, prompt: 200, output: 3000, running: 45, replicas: 1, scrape: 30, calm: 60, ask: 30, wave: 0.05},
	{name: "fleet", m: middle, prompt: 800, output: 300, running: 16, replicas: 20, scrape: 15, calm: 20, ask: 6, random: true, wave: 0.1},
	{name: "quiet", m: large, prompt: 1500, output: 400, running: 6, replicas: 1, scrape: 15, calm: 45, ask: 20},
	{name: "batch", m: small, prompt: 300, output: 500, running: 220, replicas: 1, scrape: 5, calm: 15, ask: 5},
}

// balance is how many requests run on each replica at a load, and how long a step takes, in seconds: the fixed point of Little's law
// and of the step time. No fixed point below a thousand is +Inf.
func balance(m Machine, w Load, replicas int) (running, step float64) {
	rate := w.Rate / float64(replicas) * float64(max(w.N, 1))
	step = m.Base
	for range 400 {
		running = rate * w.Output * step
		if running > 5000 {
			return math.Inf(1), math.Inf(1)
		}
		computed := rate / float64(max(w.N, 1)) * w.Prompt * (1 - w.Hit) * step
		step += 0.2 * (m.Base + m.Each*running + m.Chunk*computed + m.Context*running*(w.Prompt+w.Output/2) - step)
	}
	return running, step
}

// calmLoad is the load at which the shape runs as many requests as it says.
func (s shape) calmLoad() Load {
	w := Load{
		Prompt: s.prompt, Output: s.output, Wave: s.wave, Spread: s.spread, Random: s.random, Hit: s.hit, Adapters: s.adapters, N: s.samples,
		Grammars: s.grammars, Compile: 0.05,
	}
	lo, hi := 0.0, 5000.0
	for range 60 {
		w.Rate = (lo + hi) / 2
		if n, _ := balance(s.m, w, s.replicas); n > s.running {
			hi = w.Rate
		} else {
			lo = w.Rate
		}
	}
	_, step := balance(s.m, w, s.replicas)
	w.Timeout = max(120, 30*s.output*step)
	return w
}

// roomy is the shape's machine with limits that do not bind.
func (s shape) roomy() Machine {
	m := s.m
	m.Seqs, m.Budget, m.Compilers = 1024, max(s.budget, 8192), 4
	if s.adapters > 0 {
		m.Loras = 8
	}
	m.Blocks = int(1024 * 2 * (s.prompt + s.output) / blockSize)
	return m
}

// or is the first, or the other where that is not set.
func or(v, other float64) float64 {
	if v == 0 {
		return other
	}
	return v
}

// prefillUse is the share of the step time that prompts take in calm.
func (s shape) prefillUse() float64 {
	w := s.calmLoad()
	return s.m.Chunk * w.Prompt * (1 - w.Hit) * w.Rate / float64(s.replicas) * (1 + s.wave)
}

// limit is how many requests have to fit so that calm has room, and over how many times the calm number a fault goes.
func (s shape) limit() (fit, times float64) {
	fit = s.running*or(s.room, 1.4)*(1+s.wave) + (2+2*s.spread)*math.Sqrt(s.running) + 1
	return fit, fit / s.running * or(s.push, 1.9)
}

// scenario starts a scenario of the shape in which nothing happens.
func (s shape) scenario(bottleneck, trigger, name string) Scenario {
	w := s.calmLoad()
	return Scenario{
		Name: s.name + "-" + name, Bottleneck: bottleneck, Trigger: trigger, Replicas: s.replicas, Machine: s.roomy(),
		Scrape: s.scrape, Calm: s.calm, Ask: s.ask, Ramp: s.ramp, Before: w, After: w,
	}
}

// drive are the changes of load that can fill something up: to k times the requests that run, whatever way.
var drives = []struct {
	trigger string
	change  func(w *Load, k float64)
}{
	{"traffic_surge", func(w *Load, k float64) { w.Rate *= k }},
	{"longer_outputs", func(w *Load, k float64) { w.Output *= k }},
	{"longer_prompts", func(w *Load, k float64) { w.Prompt *= k }},
	{"sampling_n", func(w *Load, k float64) { w.N = int(math.Ceil(k * float64(max(w.N, 1)))) }},
}

// Scenarios lists all.
func Scenarios() []Scenario {
	var out []Scenario
	for _, s := range shapes {
		out = append(out, s.slots()...)
		out = append(out, s.pool()...)
		out = append(out, s.prefill()...)
		out = append(out, s.decode()...)
		out = append(out, s.services()...)
		out = append(out, s.calmOnes()...)
	}
	return out
}

// slots are scenarios in which max_num_seqs binds.
func (s shape) slots() []Scenario {
	var out []Scenario
	for _, d := range drives {
		if d.trigger == "longer_prompts" {
			continue
		}
		sc := s.scenario("concurrency_cap", d.trigger, "cap-"+d.trigger)
		fit, k := s.limit()
		d.change(&sc.After, k)
		sc.Machine.Seqs = int(math.Ceil(fit))
		out = append(out, sc)
	}
	sc := s.scenario("concurrency_cap", "config_change", "cap-config_change")
	sc.AlsoTriggers = []string{"restart"}
	sc.Restart, sc.Back, sc.Ramp = true, 1.5, 0
	sc.Changed = sc.Machine
	sc.Changed.Seqs = max(int(s.running*0.55), 2)
	return append(out, sc)
}

// pool are scenarios in which KV blocks run out.
func (s shape) pool() []Scenario {
	held, prefix := s.prompt*(1-s.hit)+s.output/2, s.prompt*s.hit
	var out []Scenario
	for _, d := range drives {
		sc := s.scenario("kv_cache_exhaustion", d.trigger, "kv-"+d.trigger)
		fit, k := s.limit()
		if d.trigger == "longer_prompts" {
			k = 1 + (k-1)*held/(s.prompt*(1-s.hit))
		}
		d.change(&sc.After, k)
		sc.Machine.Blocks = int(((fit+1)*held + prefix) / blockSize)
		fits(&sc)
		out = append(out, sc)
	}
	sc := s.scenario("kv_cache_exhaustion", "config_change", "kv-config_change")
	sc.Restart, sc.Back, sc.Ramp = true, 1.5, 0
	sc.Changed = sc.Machine
	sc.Changed.Blocks = int((s.running*held*0.6 + prefix) / blockSize)
	fits(&sc)
	return append(out, sc)
}

// fits bounds the lengths so that the longest request fits into the pool, as vLLM makes sure at its start.
func fits(sc *Scenario) {
	pool := sc.Machine.Blocks
	if sc.Changed.Blocks > 0 {
		pool = min(pool, sc.Changed.Blocks)
	}
	for _, w := range []*Load{&sc.Before, &sc.After} {
		w.PromptMax = int(min(16*w.Prompt, 0.6*float64(pool*blockSize)))
		w.OutputMax = int(min(16*w.Output, 0.35*float64(pool*blockSize)))
	}
}

// prefill are scenarios in which computing prompts fills the steps. Their answers are short.
func (s shape) prefill() []Scenario {
	s.output = math.Min(s.output, max(s.prompt/or(s.terse, 40), 4))
	use := func(w Load) float64 { return s.m.Chunk * w.Prompt * (1 - w.Hit) * w.Rate / float64(s.replicas) }
	s.hit = 0
	start := func(trigger string, hit float64) Scenario {
		sc := s.scenario("prefill_bound", trigger, "prefill-"+trigger)
		sc.Before.Hit = hit
		sc.Before.Rate *= or(s.used, 0.35) / use(sc.Before)
		sc.After = sc.Before
		sc.Before.Timeout, sc.After.Timeout = 120, 120
		sc.Machine.Blocks *= 4
		return sc
	}
	surge := start("traffic_surge", 0)
	surge.After.Rate *= s.over()
	longer := start("longer_prompts", 0)
	longer.After.Prompt *= s.over()
	longer.After.PromptMax = int(s.prompt * 8)
	lost := start("prefix_cache_collapse", 0.75)
	lost.After.Hit = 0
	if s.prompt < 100 {
		return []Scenario{surge, longer}
	}
	return []Scenario{surge, longer, lost}
}

// over is how many times as much prompt overloads the steps.
func (s shape) over() float64 { return (1 + (or(s.push, 1.9)-1)/4) / or(s.used, 0.35) }

// decode are scenarios in which the batch is what makes steps long.
func (s shape) decode() []Scenario {
	if s.prompt > 3*s.output {
		return nil
	}
	var out []Scenario
	for _, d := range drives[:2] {
		sc := s.scenario("decode_bound", d.trigger, "decode-"+d.trigger)
		sc.Machine.Seqs, sc.Machine.Blocks = 4096, sc.Machine.Blocks*8
		_, was := balance(s.m, sc.Before, s.replicas)
		for k := 1.1; k < 40; k += 0.1 {
			w := sc.Before
			d.change(&w, k)
			if n, step := balance(s.m, w, s.replicas); n > 2500 {
				break
			} else if step > 2.3*was {
				sc.After = w
				out = append(out, sc)
				break
			}
		}
	}
	return out
}

// services are faults of the server itself.
func (s shape) services() []Scenario {
	slow := s.scenario("device_slowdown", "none", "slow")
	slow.After.Slow = or(s.slowed, 2.6)
	// Slow steps fill the slots: the cap is the consequence.
	full := s.scenario("device_slowdown", "none", "slow-full")
	full.After.Slow = or(s.slowed, 2.6) * 1.5
	fit, _ := s.limit()
	full.Machine.Seqs, full.Also = int(math.Ceil(fit)), []string{"concurrency_cap"}
	front := s.scenario("frontend_bound", "none", "front")
	cost := func(w Load, f Machine) float64 {
		rate := w.Rate / float64(s.replicas)
		return rate*(f.FrontRequest+f.FrontPrompt*w.Prompt) + rate*w.Output*f.FrontToken
	}
	front.After.FrontSlow = 0.97 / cost(front.Before, s.m)
	front.After.Starved = true
	front.Ramp = 0
	// A costly chat template: the API process is well used in calm, and more requests are too many for it.
	crowd := s.scenario("frontend_bound", "traffic_surge", "front-surge")
	for _, v := range []*float64{&crowd.Machine.FrontRequest, &crowd.Machine.FrontPrompt, &crowd.Machine.FrontToken} {
		*v *= 0.5 / cost(front.Before, s.m)
	}
	crowd.After.Rate *= 2 * (1 + (or(s.push, 1.9)-1)/10)
	crowd.Before.Timeout, crowd.After.Timeout = 120, 120
	stall := s.scenario("engine_stalled", "none", "stall")
	stall.After.Frozen, stall.Ramp = true, 0
	stall.Ask = math.Min(stall.Ask, 6)
	grammar := s.scenario("structured_output", "structured_output_mix", "grammar")
	grammar.After.Grammars = 0.6
	grammar.After.Compile = 1.15 * 4 / (0.6 * grammar.After.Rate / float64(s.replicas))
	grammar.Before.Timeout, grammar.After.Timeout = 90, 90
	out := []Scenario{slow, full, front, crowd, stall, grammar}
	if s.running >= 6 && s.adapters == 0 {
		lora := s.scenario("lora_slots", "adapter_mix", "lora")
		lora.Machine.Loras = 4
		lora.Before.Adapters, lora.After.Adapters = 3, 14
		lora.Before.Timeout, lora.After.Timeout = 90, 90
		out = append(out, lora)
	}
	if s.output >= 200 {
		leave := s.scenario("client_aborts", "longer_outputs", "aborts")
		_, step := balance(s.m, leave.Before, s.replicas)
		leave.Before.Timeout = 8 * s.output * step
		leave.After.Timeout = leave.Before.Timeout
		leave.After.Output *= 14
		leave.After.OutputMax = int(s.output * 40)
		leave.Machine.Seqs, leave.Machine.Blocks = 2048, leave.Machine.Blocks*16
		leave.Also, leave.AlsoTriggers = []string{"decode_bound"}, nil
		out = append(out, leave)
	}
	if s.replicas > 1 {
		one := s.scenario("device_slowdown", "none", "slow-one")
		one.After.Slow, one.After.SlowOne, one.Where = 3, 2, 2
		one.Also = []string{"replica_imbalance"}
		lost := s.scenario("replica_down", "replica_loss", "lost")
		lost.Down, lost.Where = 2, 2
		uneven := s.scenario("replica_imbalance", "routing_change", "uneven")
		uneven.Where = 1
		uneven.Machine.Seqs = int(math.Ceil(fit))
		uneven.After.Weights = append([]float64{0.4 + float64(s.replicas)*0.75}, slices.Repeat([]float64{0.4}, s.replicas-1)...)
		uneven.Also = []string{"concurrency_cap"}
		hung := s.scenario("engine_stalled", "none", "stall-one")
		hung.After.Frozen, hung.After.SlowOne, hung.Where, hung.Ramp = true, 2, 2, 0
		out = append(out, one, lost, uneven, hung)
	}
	return out
}

// calmOnes are scenarios in which nothing is wrong, some of which look busy.
func (s shape) calmOnes() []Scenario {
	plain := s.scenario("healthy", "none", "calm")
	if plain.Before.Rate < 0.5 {
		plain.Also = []string{"low_traffic"}
	}
	busy := plain
	busy.Name = s.name + "-calm-busy" // Seven tenths of the slots and of the pool, always.
	busy.Machine.Seqs = int(s.running/0.7 + 2*math.Sqrt(s.running) + 4)
	busy.Machine.Blocks = int((s.running/0.7 + 3*math.Sqrt(s.running) + 2) * (s.prompt + s.output) / blockSize)
	full := plain // A pool that is nearly used up, and just suffices.
	full.Name = s.name + "-calm-full"
	full.Machine.Blocks = int(((s.running*1.15+3.5*math.Sqrt(s.running)*(0.6+s.spread)+1)*(1+s.wave)*(s.prompt*(1-s.hit)+s.output/2) + s.prompt*(s.hit+1)) / blockSize)
	fits(&full)
	more := plain
	more.Name = s.name + "-calm-more"
	more.After.Rate *= 1.3
	more.AlsoTriggers = []string{"traffic_surge"}
	less := plain
	less.Name = s.name + "-calm-less"
	less.After.Rate *= 0.5
	less.AlsoTriggers = []string{"traffic_surge", "none"}
	bursts := plain
	bursts.Name = s.name + "-calm-bursts"
	bursts.Before.Burst, bursts.After.Burst = 4, 4
	out := []Scenario{plain, busy, full, more, less, bursts}
	morning := plain
	morning.Name = s.name + "-calm-morning"
	morning.Before.Rate *= 0.25
	morning.AlsoTriggers = []string{"traffic_surge"}
	out = append(out, morning)
	if s.replicas == 1 {
		few := s.scenario("low_traffic", "none", "few")
		few.Before.Rate, few.After.Rate = 0.03, 0.03
		few.Also = []string{"healthy"}
		few.AlsoTriggers = []string{"longer_prompts", "longer_outputs", "traffic_surge"}
		out = append(out, few)
	}
	return out
}
