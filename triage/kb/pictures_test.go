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
		with("kv_longer_outputs", `Half of the answers' length limit was lifted at minute 30: 150 → 1,100 tokens. The KV cache fills.`,
			func(s *scene) {
				s.changes = at(30, func(w *workload) { w.output = 1100 })
			}),
		with("kv_longer_prompts", `Prompts grow from 1,200 to 16,000 tokens on an L4 with a pool of 76,640 tokens: the next one
			does not fit into the last quarter of the pool (field case FC-19).`, func(s *scene) {
			s.machine, s.load = l4of8b, workload{rate: 0.6, prompt: 1200, output: 120}
			s.machine.chunk = 0.00008
			s.labels = k8s("mistral-small", "rag")
			s.changes = at(31, func(w *workload) { w.prompt, w.output = 16_000, 300 })
		}),
	}
}
