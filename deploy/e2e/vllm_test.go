//go:build e2e

package e2e_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The simulated server: a vLLM engine reduced to what its metrics are about. Every step gives each running request one
// token; a request holds one block for each 16 tokens; a request that needs a block when none is free preempts the newest.
const (
	stepTime  = 20 * time.Millisecond
	blockSize = 16
	blocks    = 1000
	maxSeqs   = 256
	arrivals  = 4.0 // Requests a second.
	promptLen = 200
)

// request is one request of the simulation. Times are steps.
type request struct {
	arrived, scheduled, first, last int
	prompt, output, done            int
}

func (r *request) blocks() int { return (r.prompt + r.done + blockSize) / blockSize }

// engine simulates one vLLM server and exports its metrics under the names of vLLM 0.32.
type engine struct {
	mu      sync.Mutex
	step    int
	owed    float64 // Arrivals not yet whole.
	output  int     // Tokens that new requests ask for.
	waiting []*request
	running []*request
	random  *rand.Rand

	registry                               *prometheus.Registry
	gaugeRunning, gaugeWaiting, usage      prometheus.Gauge
	prompts, generated, preemptions        prometheus.Counter
	finished                               *prometheus.CounterVec
	ttft, itl, e2e, queue, prefill, decode prometheus.Histogram
	promptTokens, outputTokens             prometheus.Histogram
	waitingBy                              *prometheus.GaugeVec
	localPrompt                            *prometheus.CounterVec
}

// newEngine returns an idle server whose requests want output tokens each.
func newEngine(model string, output int) *engine {
	labels := prometheus.Labels{"model_name": model, "engine": "0"}
	gauge := func(name string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: name, ConstLabels: labels})
	}
	counter := func(name string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: name, ConstLabels: labels})
	}
	histogram := func(name string, buckets ...float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: name, ConstLabels: labels, Buckets: buckets})
	}
	latency := []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240}
	tokens := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}
	e := &engine{
		output:       output,
		random:       rand.New(rand.NewPCG(1, 2)),
		registry:     prometheus.NewRegistry(),
		gaugeRunning: gauge("vllm:num_requests_running"),
		gaugeWaiting: gauge("vllm:num_requests_waiting"),
		usage:        gauge("vllm:kv_cache_usage_perc"),
		prompts:      counter("vllm:prompt_tokens_total"),
		generated:    counter("vllm:generation_tokens_total"),
		preemptions:  counter("vllm:num_preemptions_total"),
		ttft: histogram("vllm:time_to_first_token_seconds",
			0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160),
		itl: histogram("vllm:inter_token_latency_seconds",
			0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
		e2e:          histogram("vllm:e2e_request_latency_seconds", latency...),
		queue:        histogram("vllm:request_queue_time_seconds", latency...),
		prefill:      histogram("vllm:request_prefill_time_seconds", latency...),
		decode:       histogram("vllm:request_decode_time_seconds", latency...),
		promptTokens: histogram("vllm:request_prompt_tokens", tokens...),
		outputTokens: histogram("vllm:request_generation_tokens", tokens...),
		finished: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm:request_success_total", Help: "finished", ConstLabels: labels,
		}, []string{"finished_reason"}),
		waitingBy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vllm:num_requests_waiting_by_reason", Help: "waiting", ConstLabels: labels,
		}, []string{"reason"}),
		localPrompt: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm:prompt_tokens_by_source_total", Help: "prompt tokens", ConstLabels: labels,
		}, []string{"source"}),
	}
	for _, reason := range []string{"stop", "length", "abort", "error"} {
		e.finished.WithLabelValues(reason)
	}
	config := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "vllm:cache_config_info", Help: "configuration",
		ConstLabels: prometheus.Labels{
			"engine": "0", "block_size": "16", "num_gpu_blocks": "1000", "cache_dtype": "auto",
			"gpu_memory_utilization": "0.9", "enable_prefix_caching": "False", "kv_cache_size_tokens": "16000",
		},
	})
	config.Set(1)
	started := prometheus.NewGauge(prometheus.GaugeOpts{Name: "process_start_time_seconds", Help: "start"})
	started.Set(float64(time.Now().Add(-time.Hour).Unix()))
	e.registry.MustRegister(e.gaugeRunning, e.gaugeWaiting, e.usage, e.prompts, e.generated, e.preemptions, e.ttft, e.itl, e.e2e,
		e.queue, e.prefill, e.decode, e.promptTokens, e.outputTokens, e.finished, e.waitingBy, e.localPrompt, config, started)
	return e
}

// handler serves the metrics.
func (e *engine) handler() http.Handler {
	scrape := promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock() // A scrape sees whole steps only.
		defer e.mu.Unlock()
		scrape.ServeHTTP(w, r)
	})
}

// ask changes how many tokens new requests want.
func (e *engine) ask(output int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.output = output
}

// leave makes the clients of all requests that want more than output tokens disconnect.
func (e *engine) leave(output int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	keep := func(all []*request) []*request {
		var kept []*request
		for _, r := range all {
			if r.output <= output {
				kept = append(kept, r)
			}
		}
		return kept
	}
	e.waiting, e.running = keep(e.waiting), keep(e.running)
}

// advance runs the steps that are due at a time since the start.
func (e *engine) advance(since time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for due := int(since / stepTime); e.step < due; e.step++ {
		e.arrive()
		e.admit()
		e.decodeStep()
	}
	e.gaugeRunning.Set(float64(len(e.running)))
	e.gaugeWaiting.Set(float64(len(e.waiting)))
	e.waitingBy.WithLabelValues("capacity").Set(float64(len(e.waiting)))
	e.waitingBy.WithLabelValues("deferred").Set(0)
	e.usage.Set(float64(e.used()) / blocks)
}

func (e *engine) used() int {
	sum := 0
	for _, r := range e.running {
		sum += r.blocks()
	}
	return sum
}

func (e *engine) arrive() {
	for e.owed += arrivals * stepTime.Seconds(); e.owed >= 1; e.owed-- {
		vary := 0.8 + 0.4*e.random.Float64()
		e.waiting = append(e.waiting, &request{
			arrived: e.step, scheduled: -1, first: -1, prompt: int(promptLen * vary), output: int(float64(e.output) * vary),
		})
	}
}

func (e *engine) admit() {
	for len(e.waiting) > 0 && len(e.running) < maxSeqs {
		next := e.waiting[0]
		if e.used()+next.blocks() > blocks {
			return
		}
		if next.scheduled < 0 {
			next.scheduled = e.step
		}
		e.waiting, e.running = e.waiting[1:], append(e.running, next)
	}
}

func (e *engine) decodeStep() {
	for i := 0; i < len(e.running); i++ {
		for e.used() > blocks-1 && len(e.running) > i+1 { // The newest gives way.
			victim := e.running[len(e.running)-1]
			e.running = e.running[:len(e.running)-1]
			e.waiting = append([]*request{victim}, e.waiting...)
			e.preemptions.Inc()
		}
		e.token(e.running[i])
	}
	var still []*request
	for _, r := range e.running {
		if r.done < r.output {
			still = append(still, r)
			continue
		}
		e.finished.WithLabelValues("stop").Inc()
		e.e2e.Observe(seconds(e.step - r.arrived))
		e.queue.Observe(seconds(r.scheduled - r.arrived))
		e.prefill.Observe(seconds(r.first - r.scheduled))
		e.decode.Observe(seconds(e.step - r.first))
		e.promptTokens.Observe(float64(r.prompt))
		e.outputTokens.Observe(float64(r.done))
	}
	e.running = still
}

// token gives a request its next token.
func (e *engine) token(r *request) {
	r.done++
	e.generated.Inc()
	if r.first < 0 {
		r.first, r.last = e.step, e.step
		e.prompts.Add(float64(r.prompt))
		e.localPrompt.WithLabelValues("local_compute").Add(float64(r.prompt))
		e.ttft.Observe(seconds(e.step - r.arrived + 1))
		return
	}
	e.itl.Observe(seconds(e.step - r.last))
	r.last = e.step
}

func seconds(steps int) float64 { return float64(steps) * stepTime.Seconds() }
