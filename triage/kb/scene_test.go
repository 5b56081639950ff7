package kb_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// origin is the moment of the first value of every example: 2027-01-15 08:00:00 UTC.
const origin = 1_800_000_000

// scene is a whole picture: replicas, what clients send, and what changes when.
type scene struct {
	name string
	// about stands at the top of the file.
	about    string
	scrape   float64 // Seconds.
	minutes  float64
	replicas int
	machine  machine
	load     workload
	changes  []change
	outages  []outage
	// held says that clients keep the requests of an outage and send them all when the replica is back.
	held bool
	// serving says that an outage is one of the scrape only.
	serving bool
	labels  labelling
	names   string // "", "v0" or "ray".
	fine    bool   // Keep the noise of the gauges.
	// workers says that two processes answer the scrapes in turn, each with its own counters.
	workers bool
	seed    uint64

	loads []workload // load after none, one, two … of the changes; filled by loadAt.
}

// change edits the load from a minute on.
type change struct {
	minute float64
	load   func(*workload)
}

// outage is a time in which a replica is gone; it comes back with the machine as edited.
type outage struct {
	replica  int // Counted from 1.
	from, to float64
	after    func(*machine)
}

// labelling is how the targets of a scene are called.
type labelling struct {
	model     string
	instance  string // With one %d for the replica.
	rest      string // Further labels, each with a trailing comma.
	noEngine  bool
	perEngine bool // The replicas are data-parallel ranks of one instance.
}

// sample is what one scrape of one replica saw.
type sample struct {
	c                                     counters
	running, waiting, deferred, kv, start float64
	swapped, swapUse                      float64
	load                                  workload
	m                                     machine
	up                                    bool
}

// loadAt is the load after the changes up to a moment; of one between the same changes it is the same.
func (s *scene) loadAt(t float64) *workload {
	done := 0
	for done < len(s.changes) && t >= s.changes[done].minute*60 {
		done++
	}
	for len(s.loads) <= done {
		w := s.load
		for _, c := range s.changes[:len(s.loads)] {
			c.load(&w)
		}
		s.loads = append(s.loads, w)
	}
	return &s.loads[done]
}

// play runs the scene and returns the scrapes of each replica.
func (s *scene) play() [][]sample {
	arriving := s.arrivals()
	out := make([][]sample, s.replicas)
	for i := range out {
		out[i] = s.playReplica(i, arriving[i])
	}
	return out
}

// arrivals deals the requests out to the replicas, by weight, to those that are there.
func (s *scene) arrivals() [][]*request {
	out := make([][]*request, s.replicas)
	owed := make([]float64, s.replicas)
	c := newClient(s.seed + 1)
	for c.next < s.minutes*60 {
		w := *s.loadAt(c.next)
		for i := range owed {
			weight := 1.0
			if i < len(w.weights) {
				weight = w.weights[i]
			}
			if s.gone(i, c.next) && !s.held && !s.serving {
				weight = 0
			}
			owed[i] += weight
		}
		to := 0
		for i := range owed {
			if owed[i] > owed[to] {
				to = i
			}
		}
		total := 0.0
		for i := range owed {
			total += owed[i]
		}
		owed[to] -= total
		out[to] = append(out[to], c.make(w)...)
	}
	return out
}

func (s *scene) gone(replica int, t float64) bool {
	return slices.ContainsFunc(s.outages, func(o outage) bool {
		return o.replica == replica+1 && t >= o.from*60 && t < o.to*60
	})
}

func (s *scene) playReplica(i int, arriving []*request) []sample {
	m := s.machine
	e := newEngine(m, 0)
	start := float64(origin - 86_400*3 - 137*i)
	var out []sample
	down := false
	cpu := 0.0
	for k := range int(s.minutes*60/s.scrape) + 1 {
		t := float64(k) * s.scrape
		switch gone := s.gone(i, t); {
		case gone:
			down = true
		case down:
			down = false
			for _, o := range s.outages {
				if o.replica == i+1 && o.after != nil && t >= o.to*60 {
					o.after(&m)
				}
			}
			start = origin + t - 40
			e, cpu = newEngine(m, t), 0
			if s.held {
				for len(arriving) > 0 && arriving[0].arrived < t {
					e.loads = *s.loadAt(t)
					e.accept(arriving[0])
					arriving = arriving[1:]
				}
			}
			for len(arriving) > 0 && arriving[0].arrived < t {
				arriving = arriving[1:]
			}
		}
		if down {
			out = append(out, sample{load: *s.loadAt(t), m: m, start: start})
			continue
		}
		arriving = s.run(e, i, arriving, t)
		w := *s.loadAt(t)
		cpu += s.scrape * (0.12 + w.cpu)
		shot := sample{c: e.c, load: w, m: e.m, start: start, up: true}
		shot.c.cpu = cpu
		shot.c.ttft.in, shot.c.itl.in, shot.c.e2e.in = slices.Clone(e.c.ttft.in), slices.Clone(e.c.itl.in), slices.Clone(e.c.e2e.in)
		shot.running = float64(len(e.running))
		remote := 0
		for _, r := range e.waiting {
			switch {
			case r.queued > t:
				continue
			case s.names == "v0" && r.made > 0: // V0 moves what it preempts to CPU memory, here 12,000 tokens of it.
				shot.swapped++
				shot.swapUse += float64(r.prompt+r.made) / 12_000
				continue
			case e.deferred(r):
				shot.deferred++
				if w.remote > 0 {
					remote += r.prompt
				}
			}
			shot.waiting++
		}
		shot.kv = min(float64(m.pool-e.free+remote)/float64(m.pool), 1)
		out = append(out, shot)
	}
	if s.loadAt(s.minutes * 60).hang {
		freeze(s, out)
	}
	return out
}

// freeze keeps the gauges at their last value before the engine hung: they are written after a step only.
func freeze(s *scene, out []sample) {
	last := -1
	for k := range out {
		if !s.loadAt(float64(k) * s.scrape).hang {
			last = k
			continue
		}
		if last >= 0 {
			out[k].running, out[k].waiting, out[k].deferred, out[k].kv = out[last].running, out[last].waiting, out[last].deferred, out[last].kv
		}
	}
}

// run lets the engine work up to a moment and returns the requests that arrive later.
func (s *scene) run(e *engine, replica int, arriving []*request, until float64) []*request {
	for e.now < until {
		e.loads = *s.loadAt(e.now)
		e.factor = 1
		if e.loads.slow > 0 && (e.loads.slowOne == 0 || e.loads.slowOne == replica+1) {
			e.factor = e.loads.slow
		}
		for len(arriving) > 0 && arriving[0].arrived <= e.now {
			e.accept(arriving[0])
			arriving = arriving[1:]
		}
		if e.loads.cancel {
			e.c.http += float64(len(e.running) + len(e.waiting))
			e.running, e.waiting, arriving = nil, nil, nil
		}
		if e.loads.hang {
			e.now = until
			return arriving
		}
		if !e.step() {
			// Nothing to run: on to the next request, at most a tenth of a second.
			next := e.now + 0.1
			if len(arriving) > 0 {
				next = min(next, max(arriving[0].arrived, e.now+0.001))
			}
			e.now = min(next, until)
		}
	}
	return arriving
}

// row is one series of a scene.
type row struct {
	name, labels string
	values       []float64
	counter      bool
	slack        float64 // Least slack of a gauge.
}

// text writes the scene in promqtest notation.
func (s *scene) text() string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(s.about), "\n") {
		fmt.Fprintln(&b, strings.TrimRight("# "+strings.TrimSpace(line), " "))
	}
	fmt.Fprintf(&b, "load %gs\n", s.scrape)
	for i, shots := range s.play() {
		if i > 0 {
			fmt.Fprintln(&b)
		}
		for _, r := range s.rows(i, shots) {
			fmt.Fprintf(&b, "%s{%s}  %s\n", r.name, strings.TrimSuffix(r.labels, ","), s.line(r))
		}
	}
	return b.String()
}

func (s *scene) line(r row) string {
	if s.fine && !r.counter {
		return notation(r.values, func(int, int) float64 { return 1e-9 }, false)
	}
	return notation(r.values, func(i, j int) float64 {
		if r.counter {
			return max(0.6, 0.5*(r.values[j]-r.values[i])/float64(j-i))
		}
		return max(r.slack, 0.1*max(math.Abs(r.values[i]), math.Abs(r.values[j])))
	}, r.counter)
}

// rows lists the series of one replica.
func (s *scene) rows(i int, shots []sample) []row {
	instance, engine := i+1, 0
	if s.labels.perEngine {
		instance, engine = 1, i
	}
	target := fmt.Sprintf("instance=%q,", fmt.Sprintf(s.labels.instance, instance)) + s.labels.rest
	model := fmt.Sprintf(`model_name=%q,`, s.labels.model) + target
	if !s.labels.noEngine {
		model = fmt.Sprintf(`engine="%d",`, engine) + model
	}
	var out []row
	add := func(name, labels string, counter bool, slack float64, f func(sample) float64) {
		r := row{name: s.spelled(name, counter), labels: labels, counter: counter, slack: slack}
		for k, x := range shots {
			v := math.NaN()
			if x.up || name == "up" {
				v = f(x)
			}
			if counter && s.workers && k%2 == 1 {
				v = math.Floor(v * 0.45) // The other process answers.
			}
			r.values = append(r.values, v)
		}
		out = append(out, r)
	}
	gauge := func(name string, slack float64, f func(sample) float64) { add(name, model, false, slack, f) }
	count := func(name, extra string, f func(sample) float64) { add(name, extra+model, true, 0, f) }
	hist := func(name string, buckets bool, f func(counters) histogram) {
		if buckets {
			for k, le := range f(shots[0].c).le {
				count(name+"_bucket", fmt.Sprintf(`le="%g",`, le), func(x sample) float64 { return f(x.c).upTo(k) })
			}
			count(name+"_bucket", `le="+Inf",`, func(x sample) float64 { return f(x.c).count })
		}
		count(name+"_sum", "", func(x sample) float64 { return f(x.c).sum })
		count(name+"_count", "", func(x sample) float64 { return f(x.c).count })
	}
	v0 := s.names == "v0"
	gauge("vllm:num_requests_running", 1.6, func(x sample) float64 { return x.running })
	gauge("vllm:num_requests_waiting", 1.6, func(x sample) float64 { return x.waiting })
	kv, itl := "vllm:kv_cache_usage_perc", "vllm:inter_token_latency_seconds"
	if v0 {
		kv, itl = "vllm:gpu_cache_usage_perc", "vllm:time_per_output_token_seconds"
		gauge("vllm:num_requests_swapped", 1.6, func(x sample) float64 { return x.swapped })
		gauge("vllm:cpu_cache_usage_perc", 0.02, func(x sample) float64 { return math.Round(x.swapUse*1000) / 1000 })
	} else {
		add("vllm:num_requests_waiting_by_reason", `reason="capacity",`+model, false, 1.6, func(x sample) float64 { return x.waiting - x.deferred })
		add("vllm:num_requests_waiting_by_reason", `reason="deferred",`+model, false, 1.6, func(x sample) float64 { return x.deferred })
	}
	gauge(kv, 0.03, func(x sample) float64 { return math.Round(x.kv*1000) / 1000 })
	count("vllm:num_preemptions_total", "", func(x sample) float64 { return x.c.preempted })
	count("vllm:prompt_tokens_total", "", func(x sample) float64 { return x.c.prompt })
	if !v0 {
		count("vllm:prompt_tokens_by_source_total", `source="local_compute",`, func(x sample) float64 { return x.c.computed })
		count("vllm:prompt_tokens_by_source_total", `source="local_cache_hit",`, func(x sample) float64 { return x.c.cached })
		count("vllm:prompt_tokens_by_source_total", `source="external_kv_transfer",`, func(x sample) float64 { return x.c.remote })
	}
	count("vllm:generation_tokens_total", "", func(x sample) float64 { return x.c.generated })
	count("vllm:request_success_total", `finished_reason="stop",`, func(x sample) float64 { return x.c.finished })
	if !v0 {
		count("vllm:request_success_total", `finished_reason="error",`, func(x sample) float64 { return x.c.failed })
		count("vllm:prefix_cache_queries_total", "", func(x sample) float64 { return x.c.queries })
		count("vllm:prefix_cache_hits_total", "", func(x sample) float64 { return x.c.hits })
		count("vllm:external_prefix_cache_queries_total", "", func(x sample) float64 { return x.c.external })
		count("vllm:external_prefix_cache_hits_total", "", func(x sample) float64 { return x.c.externalHits })
		count("vllm:mm_cache_queries_total", "", func(x sample) float64 { return x.c.items })
		count("vllm:mm_cache_hits_total", "", func(sample) float64 { return 0 })
		add("vllm:engine_sleep_state", `sleep_state="awake",`+model, false, 0.5, func(x sample) float64 { return bit(!x.load.asleep) })
		add("vllm:engine_sleep_state", `sleep_state="weights_offloaded",`+model, false, 0.5, func(x sample) float64 { return bit(x.load.asleep) })
		add("vllm:admission_rejections_total", fmt.Sprintf(`reason="max_num_queued_reqs",model_name=%q,`, s.labels.model)+target,
			true, 0, func(x sample) float64 { return x.c.rejected })
	}
	if s.machine.nixl {
		count("vllm:nixl_xfer_time_seconds_sum", "", func(x sample) float64 { return x.c.loadTime })
		count("vllm:nixl_xfer_time_seconds_count", "", func(x sample) float64 { return x.c.loaded })
		count("vllm:nixl_num_failed_transfers_total", "", func(x sample) float64 { return x.c.lost })
		count("vllm:nixl_num_kv_expired_reqs_total", "", func(x sample) float64 { return x.c.expired })
	}
	if s.load.drafts > 0 {
		count("vllm:spec_decode_num_draft_tokens_total", "", func(x sample) float64 { return x.c.drafts })
		count("vllm:spec_decode_num_accepted_tokens_total", "", func(x sample) float64 { return x.c.accepted })
	}
	hist("vllm:time_to_first_token_seconds", !s.labels.perEngine && s.replicas == 1, func(c counters) histogram { return c.ttft })
	hist(itl, !s.labels.perEngine && s.replicas == 1, func(c counters) histogram { return c.itl })
	hist("vllm:e2e_request_latency_seconds", !s.labels.perEngine && s.replicas == 1, func(c counters) histogram { return c.e2e })
	hist("vllm:request_queue_time_seconds", false, func(c counters) histogram { return c.queue })
	hist("vllm:request_prefill_time_seconds", false, func(c counters) histogram { return c.prefillTime })
	hist("vllm:request_decode_time_seconds", false, func(c counters) histogram { return c.decodeTime })
	count("vllm:request_generation_tokens_sum", "", func(x sample) float64 { return x.c.outTokens })
	count("vllm:request_generation_tokens_count", "", func(x sample) float64 { return x.c.e2e.count })
	count("vllm:request_prompt_tokens_sum", "", func(x sample) float64 { return x.c.inTokens })
	count("vllm:request_prompt_tokens_count", "", func(x sample) float64 { return x.c.e2e.count })
	count("vllm:request_inference_time_seconds_sum", "", func(x sample) float64 { return x.c.inference })
	count("vllm:request_inference_time_seconds_count", "", func(x sample) float64 { return x.c.e2e.count })
	if !v0 {
		count("vllm:request_time_per_output_token_seconds_sum", "", func(x sample) float64 { return x.c.perToken })
		count("vllm:request_time_per_output_token_seconds_count", "", func(x sample) float64 { return x.c.perTokens })
		count("vllm:request_prefill_kv_computed_tokens_sum", "", func(x sample) float64 { return x.c.fresh })
		count("vllm:request_prefill_kv_computed_tokens_count", "", func(x sample) float64 { return x.c.e2e.count })
		count("vllm:request_num_preemptions_count", "", func(x sample) float64 { return x.c.e2e.count })
		count("vllm:prompt_tokens_cached_total", "", func(x sample) float64 { return x.c.cached })
		count("vllm:prompt_tokens_cached_by_source_total", `source="device",`, func(x sample) float64 { return x.c.hits })
		count("vllm:estimated_flops_per_gpu_total", "", func(sample) float64 { return 0 })
	}
	count("vllm:request_params_n_sum", "", func(x sample) float64 { return x.c.params })
	count("vllm:request_params_n_count", "", func(x sample) float64 { return x.c.parents })
	count("vllm:iteration_tokens_total_sum", "", func(x sample) float64 { return x.c.iteration })
	count("vllm:iteration_tokens_total_count", "", func(x sample) float64 { return x.c.steps })
	if s.machine.loras > 0 {
		out = append(out, s.adapters(target, shots)...)
	}
	if engine == 0 {
		add("vllm:cache_config_info", s.config(target, shots[0].m), false, 0, s.configured(shots[0].m))
		if last := shots[len(shots)-1].m; last != shots[0].m {
			add("vllm:cache_config_info", s.config(target, last), false, 0, s.configured(last))
		}
		add("http_requests_total", `handler="/v1/chat/completions",method="POST",status="2xx",`+target, true, 0,
			func(x sample) float64 { return x.c.http - x.c.http5xx })
		add("http_requests_total", `handler="/v1/chat/completions",method="POST",status="5xx",`+target, true, 0,
			func(x sample) float64 { return x.c.http5xx })
		add("up", target, false, 0, func(x sample) float64 { return bit(x.up) })
		add("scrape_duration_seconds", target, false, 0.002, func(x sample) float64 { return 0.011 + x.load.scrape })
		if !v0 && !s.workers {
			add("process_start_time_seconds", target, false, 0, func(x sample) float64 { return x.start })
			add("process_cpu_seconds_total", target, true, 0, func(x sample) float64 { return x.c.cpu })
		}
	}
	return out
}

func bit(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func (s *scene) config(target string, m machine) string {
	labels := fmt.Sprintf(`block_size="16",cache_dtype="auto",enable_prefix_caching="True",gpu_memory_utilization="0.9",num_gpu_blocks="%d",`,
		m.pool/16)
	if !s.labels.noEngine {
		labels = `engine="0",` + labels
	}
	return labels + target
}

// configured is 1 while the replica runs with that machine's KV cache.
func (s *scene) configured(m machine) func(sample) float64 {
	return func(x sample) float64 {
		if x.m.pool != m.pool {
			return math.NaN()
		}
		return 1
	}
}

// adapters lists vllm:lora_requests_info: one series for each set of adapters, its value the time of the last update, kept
// for ever.
func (s *scene) adapters(target string, shots []sample) []row {
	var sets []string
	at := map[string][]float64{}
	for k, x := range shots {
		names := make([]string, 0, x.load.adapters)
		for a := range x.load.adapters {
			names = append(names, fmt.Sprintf("tenant-%d", a+1))
		}
		set := strings.Join(names, ",")
		if _, ok := at[set]; !ok {
			sets = append(sets, set)
			at[set] = slices.Repeat([]float64{math.NaN()}, k)
		}
		for _, other := range sets {
			v := at[other]
			if other == set {
				at[other] = append(v, origin+float64(k)*s.scrape-1)
			} else {
				at[other] = append(v, v[len(v)-1])
			}
		}
	}
	out := make([]row, 0, len(sets))
	for _, set := range sets {
		out = append(out, row{
			name:   "vllm:lora_requests_info",
			labels: fmt.Sprintf(`max_lora="%d",running_lora_adapters=%q,waiting_lora_adapters=%q,`, s.machine.loras, set, set) + target,
			values: at[set], slack: 0.5,
		})
	}
	return out
}

// spelled is how a name is exported: Ray replaces the colon, puts its own prefix in front and loses _total.
func (s *scene) spelled(name string, counter bool) string {
	rest, ok := strings.CutPrefix(name, "vllm:")
	if s.names != "ray" || !ok {
		return name
	}
	if counter {
		rest = strings.TrimSuffix(rest, "_total")
	}
	return "ray_vllm_" + rest
}
