package kb_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the pictures under examples/ anew")

// TestPictures keeps the series that the examples of causes build on equal to what the simulated servers below give.
// Change a scene, run with -update, and look at the difference.
func TestPictures(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("each simulation is one goroutine's arithmetic: nothing to race, and a minute of work for the detector")
	}
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("examples", s.name+".promql")
			got := s.text()
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

// The servers of the scenes. Step times are those of one accelerator of the named kind and a model of about the named size.
var (
	h100of32b = machine{seqs: 256, budget: 8192, pool: 24_576, base: 0.017, each: 0.0002, chunk: 0.00003, context: 2e-8}
	h100of70b = machine{seqs: 128, budget: 8192, pool: 180_000, base: 0.024, each: 0.00015, chunk: 0.00006, context: 1e-8}
	l4of8b    = machine{seqs: 64, budget: 4096, pool: 76_640, base: 0.032, each: 0.0004, chunk: 0.00025, context: 6e-8}
	a100of8b  = machine{seqs: 512, budget: 8192, pool: 420_000, base: 0.009, each: 0.00012, chunk: 0.00003, context: 2e-8}
)

func gpu(model string) labelling {
	return labelling{model: model, instance: "gpu-%d:8000", rest: `job="vllm",`}
}

func k8s(model, namespace string) labelling {
	return labelling{
		model: model, instance: "10.16.3.2%d:8080",
		rest: `job="serving/vllm",namespace="` + namespace + `",pod="` + namespace + `-vllm-0",`,
	}
}

func scenes() []scene {
	chat := workload{rate: 2, prompt: 500, output: 150}
	v1 := scene{
		name: "v1", scrape: 15, minutes: 46, replicas: 1, machine: h100of32b, load: chat, labels: gpu("qwen3-32b"),
		about: `A healthy server: 32 billion parameters on one H100, 2 requests a second, 20 ms between tokens.
			The shared background of the examples: vLLM 0.32 names, a scrape every 15 s, 46 minutes.`,
	}
	// with makes another scene of v1's kind.
	with := func(name, about string, edit func(*scene)) scene {
		s := v1
		s.name, s.about = name, about
		edit(&s)
		return s
	}
	at := func(minute float64, load func(*workload)) []change { return []change{{minute, load}} }
	return []scene{
		v1,
		with("v1_bursty", `A healthy server whose load is uneven: the noise of the gauges is kept.`, func(s *scene) {
			s.machine, s.load = h100of70b, workload{rate: 3, prompt: 900, output: 220, hit: 0.4}
			s.fine, s.seed = true, 7
			for m := 1.0; m < 46; m += 3 {
				s.changes = append(s.changes,
					change{m, func(w *workload) { w.rate = 5 }}, change{m + 1, func(w *workload) { w.rate = 2 }})
			}
		}),
		with("v1x4", `Four healthy replicas behind one model name, 12 requests a second, a scrape every 30 s.`, func(s *scene) {
			s.replicas, s.scrape, s.machine = 4, 30, h100of70b
			s.load = workload{rate: 12, prompt: 700, output: 200, hit: 0.3}
			s.labels = gpu("llama-3.3-70b")
		}),
		with("v0", `A healthy server of vLLM 0.8 with the V0 engine: old names, no engine label.`, func(s *scene) {
			s.names, s.machine = "v0", l4of8b
			s.load = workload{rate: 1.5, prompt: 400, output: 160}
			s.labels = gpu("llama-3.1-8b")
			s.labels.noEngine = true
		}),
		with("ray", `A healthy server exported by Ray: ray_ in front, underscores, counters without _total.`, func(s *scene) {
			s.names = "ray"
			s.labels = labelling{model: "qwen3-32b", instance: "10.8.0.%d:44217", rest: `job="ray",ReplicaId="r1",`}
		}),
		with("kv_longer_outputs", `A client dropped its limit of output tokens at minute 30: answers grow from 150 to 1,100 tokens.`,
			func(s *scene) { s.changes = at(30, func(w *workload) { w.output = 1100 }) }),
		with("kv_longer_prompts", `Prompts grow from 1,200 to 16,000 tokens on an L4 with a pool of 76,640 tokens: with a few of them
			running, the next does not fit into the rest of the pool (field case FC-19).`, func(s *scene) {
			s.machine, s.load = l4of8b, workload{rate: 0.6, prompt: 1200, output: 120}
			s.machine.chunk = 0.00004
			s.labels = k8s("mistral-small", "rag")
			s.changes = at(31, func(w *workload) { w.prompt = 16_000 })
		}),
		with("kv_surge", `Three times as many requests from minute 33 on, 2,000 tokens each: the pool of 76,640 tokens is full.`,
			func(s *scene) {
				s.scrape, s.machine, s.load = 30, l4of8b, workload{rate: 0.9, prompt: 2000, output: 320}
				s.machine.chunk, s.machine.each = 0.00004, 0.0001
				s.labels = gpu("llama-3.1-8b")
				s.changes = at(33, func(w *workload) { w.rate = 3 })
			}),
		with("kv_sampling_n", `A client asks for n = 6 sequences per request from minute 34 on.`, func(s *scene) {
			s.load.output = 300
			s.changes = at(34, func(w *workload) { w.n = 6 })
		}),
		with("kv_config_change", `Restarted at minute 32 with --gpu-memory-utilization 0.78 instead of 0.9: the pool shrank from 24,576 to 4,800
			tokens.`, func(s *scene) {
			s.load.rate = 3
			s.outages = []outage{{1, 32, 33.5, func(m *machine) { m.pool = 4800 }}}
		}),
		with("kv_full_steady", `The pool is three quarters full of long conversations and nothing suffers: steady tokens, hardly a preemption, hardly a wait.`,
			func(s *scene) {
				s.machine = h100of70b
				s.machine.seqs = 40
				s.load = workload{rate: 0.75, prompt: 3600, output: 900, hit: 0}
				s.machine.pool = 122_000
			}),
		with("cap_surge", `Four times as many requests from minute 33 on, max_num_seqs is 32: running stands at 32, the pool has room.`,
			func(s *scene) {
				s.machine = h100of70b
				s.machine.seqs = 32
				s.load = workload{rate: 2, prompt: 600, output: 180}
				s.labels = gpu("llama-3.3-70b")
				s.changes = at(33, func(w *workload) { w.rate = 8 })
			}),
		with("cap_longer_outputs", `Answers grow from 180 to 900 tokens at minute 32, max_num_seqs is 48.`, func(s *scene) {
			s.machine = a100of8b
			s.machine.seqs = 48
			s.load = workload{rate: 8, prompt: 400, output: 180}
			s.labels = k8s("qwen2.5-7b", "chat")
			s.changes = at(32, func(w *workload) { w.output = 900 })
		}),
		with("cap_config_change", `Restarted at minute 31 with --max-num-seqs 8 instead of 128; nothing else changed.`, func(s *scene) {
			s.machine = h100of70b
			s.load = workload{rate: 4, prompt: 600, output: 180}
			s.labels = gpu("llama-3.3-70b")
			s.outages = []outage{{1, 31, 33, func(m *machine) { m.seqs = 8 }}}
		}),
		with("restart_burst", `Restarted at minute 33 after two minutes; clients held their requests and send all of them at once.`, func(s *scene) {
			s.machine = h100of70b
			s.machine.seqs = 48
			s.load = workload{rate: 6, prompt: 600, output: 180}
			s.labels = k8s("llama-3.3-70b", "chat")
			s.held = true
			s.outages = []outage{{1, 34, 38, nil}}
		}),
		with("prefill_longer_prompts", `Prompts grow from 700 to 9,000 tokens at minute 32; the pool is large, computing them is not.`,
			func(s *scene) {
				s.machine = h100of70b
				s.machine.pool = 1_400_000
				s.load = workload{rate: 2, prompt: 700, output: 150}
				s.labels = k8s("llama-3.3-70b", "search")
				s.changes = at(32, func(w *workload) { w.prompt = 9000 })
			}),
		with("prefill_prefix_collapse", `The prefix cache had 85 % of each prompt of 6,000 tokens; from minute 33 on templates begin with the time.`,
			func(s *scene) {
				s.machine = h100of70b
				s.machine.pool = 900_000
				s.load = workload{rate: 3, prompt: 6000, output: 120, hit: 0.85}
				s.labels = gpu("llama-3.3-70b")
				s.changes = at(33, func(w *workload) { w.hit = 0.02 })
			}),
		with("prefill_surge", `Five times as many requests of 2,500 tokens each from minute 34 on, short answers.`, func(s *scene) {
			s.scrape, s.machine = 30, h100of70b
			s.machine.pool, s.machine.seqs = 900_000, 256
			s.load = workload{rate: 1.5, prompt: 2500, output: 60}
			s.labels = gpu("llama-3.3-70b")
			s.changes = at(34, func(w *workload) { w.rate = 8 })
		}),
		with("decode_surge", `Six times as many requests from minute 32 on: short prompts, long answers, hundreds of sequences in a step.`,
			func(s *scene) {
				s.machine = a100of8b
				s.machine.each, s.machine.pool = 0.0003, 900_000
				s.load = workload{rate: 3, prompt: 120, output: 500}
				s.labels = gpu("qwen2.5-7b")
				s.changes = at(32, func(w *workload) { w.rate = 11 })
			}),
		with("decode_longer_outputs", `Answers grow from 200 to 1,500 tokens at minute 31; slots and pool have room.`, func(s *scene) {
			s.machine = a100of8b
			s.machine.each, s.machine.pool = 0.0002, 1_200_000
			s.load = workload{rate: 4, prompt: 150, output: 200}
			s.labels = gpu("qwen2.5-7b")
			s.changes = at(31, func(w *workload) { w.output = 1500 })
		}),
		with("device_slow", `The GPU throttles at minute 34: every step takes four times as long, the requests are the same.`, func(s *scene) {
			s.machine = h100of70b
			s.load = workload{rate: 2.5, prompt: 600, output: 180}
			s.labels = gpu("llama-3.3-70b")
			s.changes = at(34, func(w *workload) { w.slow = 4 })
		}),
		with("device_slow_one_of_four", `One of four GPUs throttles at minute 34; the router still deals evenly.`, func(s *scene) {
			s.replicas, s.scrape, s.machine = 4, 30, h100of70b
			s.load = workload{rate: 12, prompt: 700, output: 200, hit: 0.3}
			s.labels = gpu("llama-3.3-70b")
			s.changes = at(34, func(w *workload) { w.slow, w.slowOne = 5, 3 })
		}),
		with("engine_hung", `The engine hangs at minute 37 with requests running: gauges freeze, no token, /health still answers.`, func(s *scene) {
			s.changes = at(37, func(w *workload) { w.hang = true })
		}),
		with("frontend_busy", `From minute 33 on large request bodies keep the API process busy: 3 s before the engine sees a request.`,
			func(s *scene) {
				s.changes = at(33, func(w *workload) { w.frontend, w.cpu, w.scrape = 3, 0.85, 0.9 })
			}),
		with("lora_slots", `Requests spread over 12 adapters from minute 33 on instead of 2; --max-loras is 4.`, func(s *scene) {
			s.machine.loras = 4
			s.load.adapters = 2
			s.changes = at(33, func(w *workload) { w.adapters = 12 })
		}),
		with("grammar", `From minute 34 on half of the requests bring a JSON schema of their own that takes 9 s to compile.`, func(s *scene) {
			s.changes = at(34, func(w *workload) { w.grammar, w.grammars, w.slow = 9, 0.5, 1.3 })
		}),
		with("replica_down", `One of four replicas crashed at minute 36 and is not back; three cannot carry 26 requests a second.`, func(s *scene) {
			s.replicas, s.scrape, s.machine = 4, 30, h100of70b
			s.machine.seqs = 32
			s.load = workload{rate: 20, prompt: 700, output: 150, hit: 0.3}
			s.labels = gpu("llama-3.3-70b")
			s.outages = []outage{{2, 36, 60, nil}}
		}),
		with("routing_skew", `From minute 33 on the router sends most requests to the first of four replicas.`, func(s *scene) {
			s.replicas, s.machine = 4, h100of70b
			s.machine.seqs = 48
			s.load = workload{rate: 12, prompt: 700, output: 200, hit: 0.3}
			s.labels = gpu("llama-3.3-70b")
			s.changes = at(33, func(w *workload) { w.weights = []float64{8, 1, 1, 1} })
		}),
		with("dp_rank_skew", `Data parallel, four ranks behind one endpoint: rank 2 gets nearly all requests from minute 34 on (field cases FC-33, FC-34).`,
			func(s *scene) {
				s.replicas, s.machine = 4, h100of70b
				s.machine.seqs = 51
				s.load = workload{rate: 8, prompt: 700, output: 200}
				s.labels = gpu("deepseek-v3")
				s.labels.perEngine = true
				s.changes = at(34, func(w *workload) { w.weights = []float64{1, 1, 20, 1} })
			}),
		with("clients_leave", `Answers grow to 2,500 tokens at minute 31; clients give up after 20 s. The server itself is not full.`,
			func(s *scene) {
				s.machine = a100of8b
				s.load = workload{rate: 2, prompt: 300, output: 200}
				s.labels = gpu("qwen2.5-7b")
				s.changes = at(31, func(w *workload) { w.output, w.patience = 4000, 20 })
			}),
		with("few_requests", `A request every 40 s; from minute 34 on single prompts of 6,000 tokens.`, func(s *scene) {
			s.machine = l4of8b
			s.load = workload{rate: 0.025, prompt: 500, output: 100}
			s.changes = at(34, func(w *workload) { w.prompt = 6000 })
		}),
		with("remote_kv", `Decode server of a disaggregated pair: from minute 34 on KV transfers take 8 s instead of 40 ms and one in five fails.`,
			func(s *scene) {
				s.machine = h100of70b
				s.machine.nixl = true
				s.load = workload{rate: 3, prompt: 2500, output: 200, hit: 0.98}
				s.labels = k8s("llama-3.3-70b-decode", "pd")
				s.changes = at(34, func(w *workload) { w.remote, w.lose = 8, 0.2 })
			}),
		with("images", `From minute 33 on clients send images: decoding and resizing takes the API process 2.5 s per request.`, func(s *scene) {
			s.machine = h100of70b
			s.load = workload{rate: 2, prompt: 700, output: 150}
			s.labels = gpu("qwen2.5-vl-72b")
			s.changes = at(33, func(w *workload) { w.images, w.encode, w.prompt, w.cpu, w.scrape = 1, 2.5, 1800, 0.8, 0.4 })
		}),
		with("drafts_rejected", `Speculative decoding: 2.6 of 4 draft tokens were accepted; from minute 34 on, another kind of text, 0.3.`, func(s *scene) {
			s.machine = h100of70b
			s.load = workload{rate: 4, prompt: 500, output: 400, drafts: 4, accepted: 2.6}
			s.labels = gpu("llama-3.3-70b")
			s.changes = at(34, func(w *workload) { w.accepted, w.slow = 0.3, 1.5 })
		}),
		with("giant_prompt", `A prompt of 100,000 tokens arrives at minute 36; the pool holds 76,640. It can never start, and nothing behind it
			does; running drains to 0 (field case FC-06).`, func(s *scene) {
			s.machine = l4of8b
			s.machine.chunk = 0.00006
			s.load = workload{rate: 0.1, prompt: 5000, output: 1200}
			s.labels = gpu("gemma-3-12b")
			s.changes = at(36, func(w *workload) { w.giant = 100_000 })
		}),
		with("parked", `From minute 33 on the scheduler defers requests and never promotes them; each keeps a slot of max_num_seqs 64.`, func(s *scene) {
			s.machine = h100of70b
			s.machine.seqs = 64
			s.load = workload{rate: 2, prompt: 800, output: 200}
			s.labels = gpu("llama-3.3-70b")
			s.changes = at(33, func(w *workload) { w.park = 0.4 })
		}),
		with("errors", `From minute 35 on two requests in five end in an error.`, func(s *scene) {
			s.changes = at(35, func(w *workload) { w.errors = 0.4 })
		}),
		with("queue_limit", `--max-num-queued-reqs is 2; from minute 34 on a batch client sends its requests in sixes and some find the queue taken.`,
			func(s *scene) {
				s.machine.queue = 2
				s.changes = at(34, func(w *workload) { w.rate, w.burst = 2.4, 6 })
			}),
		with("v0_swapping", `vLLM 0.8 with the V0 engine: answers grow from 160 to 1,400 tokens at minute 31 and requests are swapped to CPU memory.`,
			func(s *scene) {
				s.names, s.machine = "v0", l4of8b
				s.machine.pool = 30_000
				s.load = workload{rate: 1, prompt: 400, output: 160}
				s.labels = gpu("llama-3.1-8b")
				s.labels.noEngine = true
				s.changes = at(31, func(w *workload) { w.output = 1400 })
			}),
		with("v0_lora", `vLLM 0.8, V0 engine, one adapter slot (the default of --max-loras): from minute 33 on two adapters take turns.`, func(s *scene) {
			s.names, s.machine = "v0", l4of8b
			s.machine.loras = 1
			s.load = workload{rate: 0.25, prompt: 600, output: 200, adapters: 1}
			s.labels = gpu("llama-3.1-8b")
			s.labels.noEngine = true
			s.changes = at(33, func(w *workload) { w.adapters = 2 })
		}),
		with("asleep", `POST /sleep at minute 35: the engine answers nothing until /wake_up (field case FC-76).`, func(s *scene) {
			s.changes = at(35, func(w *workload) { w.asleep = true })
		}),
		with("fc01", `Field case FC-01, https://github.com/vllm-project/vllm/issues/53130, minute 0 is 10:00. Idle at 10:08, at 10:45
			some 30 run and 90 are deferred, at 10:57 a few run and 230 are deferred, 1 token a second, the cache at 20 %. GPU 100 %
			busy, /health 200.`, func(s *scene) {
			s.scrape, s.minutes = 30, 62
			s.machine = h100of70b
			s.machine.seqs, s.machine.pool = 256, 60_000
			s.load = workload{rate: 0.004, prompt: 1500, output: 300}
			s.labels = gpu("glm-4.5-air")
			s.changes = []change{
				{12, func(w *workload) { w.rate, w.prompt, w.output, w.slow = 0.19, 1500, 900, 5 }},
				{34, func(w *workload) { w.park = 0.6 }},
				{42, func(w *workload) { w.park, w.slow = 1, 90 }},
			}
		}),
		with("fc02", `Field case FC-02, https://github.com/vllm-project/vllm-metal/issues/479: after a stall the engine never admits again.
			A pool of 118 blocks, 90,000 tokens; each new message joins the queue.`, func(s *scene) {
			s.machine = machine{seqs: 256, budget: 4096, pool: 90_000, base: 0.03, each: 0.002, chunk: 0.001, context: 1e-7}
			s.load = workload{rate: 0.02, prompt: 400, output: 250}
			s.labels = gpu("qwen3-30b-a3b")
			s.changes = at(37, func(w *workload) { w.wedged = true })
		}),
		with("fc03", `Field case FC-03, https://github.com/vllm-project/vllm/issues/42371 (0.20.2): offloaded KV strands the queue. Nothing
			runs, 50 wait, the cache is empty, no token; HTTP answers 200.`, func(s *scene) {
			s.machine = h100of70b
			s.load = workload{rate: 0.2, prompt: 3000, output: 200, hit: 0.5}
			s.machine.nixl = true
			s.labels = gpu("minimax-m2")
			s.changes = at(37, func(w *workload) { w.wedged = true })
		}),
		with("fc04", `Field case FC-04, https://github.com/vllm-project/vllm/issues/53868: native CPU offload, max_num_seqs 6. Nothing runs, one
			waits for room and two are deferred; the external cache hit 85 % right before.`, func(s *scene) {
			s.machine = l4of8b
			s.machine.seqs, s.machine.nixl = 6, true
			s.load = workload{rate: 0.075, prompt: 2500, output: 300, hit: 0.85}
			s.labels = gpu("devstral-small")
			s.changes = []change{
				{36, func(w *workload) { w.wedged, w.rate, w.park = true, 0.04, 1 }},
				{37.6, func(w *workload) { w.rate, w.park = 0.005, 0 }},
			}
		}),
		with("fc05", `Field case FC-05, https://github.com/vllm-project/vllm/issues/45388: the scheduler deadlocks with 61 % of the pool taken by
			two requests and 799 of 2,048 blocks free. Seen without any connector too.`, func(s *scene) {
			s.machine = h100of70b
			s.machine.pool = 32_768
			s.load = workload{rate: 0.15, prompt: 6000, output: 250}
			s.labels = gpu("qwen2.5-32b")
			s.changes = at(37, func(w *workload) { w.stuck = true })
		}),
		with("fc07", `Field case FC-07: a dispatcher buried one of three nodes: 24 run and 72 wait there, the two others idle.`, func(s *scene) {
			s.replicas, s.machine = 3, h100of70b
			s.machine.seqs = 24
			s.load = workload{rate: 6, prompt: 300, output: 250, hit: 0.2}
			s.labels = gpu("gpt-oss-120b")
			s.changes = at(38, func(w *workload) { w.weights = []float64{0, 1, 0} })
		}),
		with("fc10", `Field case FC-10, https://github.com/vllm-project/vllm/issues/13508 (0.6.3): 4×4090, 72B AWQ, 64 slots, 4,096 tokens a
			step. The cache is nearly empty, few run, many are pending: the prompts eat the steps.`, func(s *scene) {
			s.names = "v0"
			s.machine = machine{seqs: 64, budget: 4096, pool: 90_000, base: 0.05, each: 0.001, chunk: 0.0008, context: 1e-8}
			s.load = workload{rate: 0.12, prompt: 3500, output: 40}
			s.labels = gpu("qwen2.5-72b-awq")
			s.labels.noEngine = true
			s.changes = at(33, func(w *workload) { w.rate = 0.6 })
		}),
		with("fc13", `Field case FC-13, https://github.com/vllm-project/vllm/issues/15996: at more than 90 % of the cache the scheduler stands
			still. Running is frozen, every new request waits, nothing is preempted, no token.`, func(s *scene) {
			s.machine = h100of70b
			s.machine.pool = 60_000
			s.load = workload{rate: 2, prompt: 900, output: 300}
			s.labels = gpu("llama-3.1-70b")
			s.changes = []change{
				{35, func(w *workload) { w.rate, w.output = 3, 600 }},
				{36.5, func(w *workload) { w.stuck = true }},
			}
		}),
		with("fc12", `Field case FC-12, comment in https://github.com/vllm-project/vllm/pull/8378 (0.6.x): two requests run, then none; 12 and
			later 22 are pending, the cache is empty, no prompt token any more, /health answers 200.`, func(s *scene) {
			s.machine = l4of8b
			s.load = workload{rate: 0.06, prompt: 900, output: 500}
			s.labels = labelling{model: "llama-3.1-8b", instance: "gpu-%d:8000", rest: `job="vllm",`, noEngine: true}
			s.names = "v0"
			s.changes = at(37, func(w *workload) { w.wedged = true })
		}),
		with("fc56", `Field case FC-56, https://github.com/vllm-project/vllm/issues/21037: decode server of a disaggregated pair. The handover
			takes 600 ms instead of 40 ms and the first token comes that much later; nothing fails, the steps are as fast as before.`,
			func(s *scene) {
				s.machine = h100of70b
				s.machine.nixl = true
				s.load = workload{rate: 4, prompt: 2500, output: 200, hit: 0.98, remote: 0.04}
				s.labels = k8s("llama-3.3-70b-decode", "pd")
				s.changes = at(34, func(w *workload) { w.remote = 1.5 })
			}),
		with("fc57", `Field case FC-57, https://github.com/llm-d/llm-d/issues/191: a link error fails the transfers at minute 36; a minute later the
			engine is dead behind its API server.`, func(s *scene) {
			s.machine = h100of70b
			s.machine.nixl = true
			s.load = workload{rate: 3, prompt: 2500, output: 200, hit: 0.98}
			s.labels = k8s("llama-3.3-70b-decode", "pd")
			s.changes = []change{{36, func(w *workload) { w.remote, w.lose = 6, 0.6 }}, {37, func(w *workload) { w.hang = true }}}
		}),
		with("fc58", `Field case FC-58, https://github.com/LMCache/LMCache/issues/1938: the remote cache answers late and one look-up in ten breaks.
			The first token takes twice as long and more.`, func(s *scene) {
			s.machine = h100of70b
			s.machine.nixl = true
			s.load = workload{rate: 3, prompt: 2500, output: 200, hit: 0.9, remote: 0.05}
			s.labels = k8s("llama-3.3-70b", "kv")
			s.changes = at(34, func(w *workload) { w.remote, w.lose = 2, 0.1 })
		}),
		with("fc53", `Field cases FC-53 and FC-54: prefill server of a disaggregated pair. The router times out, nobody fetches the finished
			prompts, and their blocks stay taken for five minutes.`, func(s *scene) {
			s.machine = h100of70b
			s.machine.nixl = true
			s.load = workload{rate: 0.8, prompt: 2500, output: 1}
			s.labels = k8s("llama-3.3-70b-prefill", "pd")
			s.changes = at(34, func(w *workload) { w.strand = 300 })
		}),
		with("fc55", `Field case FC-55: the prefill server died in the handshake; requests wait for its KV for ever, the others are served.`,
			func(s *scene) {
				s.machine = h100of70b
				s.machine.nixl, s.machine.seqs = true, 512
				s.load = workload{rate: 2, prompt: 1500, output: 200, hit: 0.95}
				s.labels = k8s("llama-3.3-70b-decode", "pd")
				s.changes = []change{{35, func(w *workload) { w.park = 0.25 }}}
			}),
		with("fc69", `Field case FC-69, https://github.com/vllm-project/vllm/issues/29928: all requests were cancelled at once at minute 36. The
			gauges keep their last values (cache 99 %) until the next step, and routers avoid the server for ever.`, func(s *scene) {
			s.machine = h100of70b
			s.machine.pool = 47_000
			s.load = workload{rate: 2, prompt: 900, output: 500}
			s.labels = gpu("llama-3.3-70b")
			s.changes = at(36, func(w *workload) { w.rate, w.cancel, w.hang = 0, true, true })
		}),
		with("fc73", `Field case FC-73: /metrics of one of four replicas answers 500 from minute 36 on; it serves its requests all the same.`,
			func(s *scene) {
				s.replicas, s.machine = 4, h100of70b
				s.load = workload{rate: 12, prompt: 700, output: 200, hit: 0.3}
				s.labels = gpu("llama-3.3-70b")
				s.outages, s.serving = []outage{{4, 36, 60, nil}}, true
			}),
		with("fc74", `Field case FC-74: two processes share a port and answer the scrapes in turn, each with its own counters. No process
			metrics, no restart, only counters that go back and forth.`, func(s *scene) {
			s.workers = true
		}),
	}
}
