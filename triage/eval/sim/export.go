package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
)

// epoch is the moment of virtual time zero, in seconds since the Unix epoch.
const epoch = 1_790_000_000

// exporter writes one replica's series, as vLLM 0.32 and Prometheus name and label them.
type exporter struct {
	model  string
	target []string // Label pairs of the scrape target.
	series []memstore.Series
	index  map[string]int
	alive  map[int]bool // Series of the last scrape.
	at     int64
	now    map[int]bool
}

func newExporter(served string, replica int) *exporter {
	return &exporter{
		model: served, index: map[string]int{}, alive: map[int]bool{},
		target: []string{
			"instance", instanceOf(replica), "job", "llm/vllm", "namespace", "llm",
			"pod", fmt.Sprintf("%s-%d", strings.ToLower(served), replica),
		},
	}
}

// instanceOf is the address of a replica.
func instanceOf(replica int) string {
	return fmt.Sprintf("10.%d.7.%d:8000", 60+replica/200, 11+replica%200)
}

// put appends one sample.
func (x *exporter) put(name string, v float64, extra ...string) {
	key := name + "\x00" + strings.Join(extra, "\x00")
	i, ok := x.index[key]
	if !ok {
		i = len(x.series)
		x.index[key] = i
		x.series = append(x.series, memstore.Series{
			Labels: labels.FromStrings(slices.Concat([]string{model.MetricNameLabel, name}, extra, x.target)...),
		})
	}
	x.series[i].Samples = append(x.series[i].Samples, memstore.Sample{At: x.at, Value: v})
	x.now[i] = true
}

// own appends a sample of one of the engine's series.
func (x *exporter) own(name string, v float64, extra ...string) {
	x.put(name, v, append([]string{"engine", "0", "model_name", x.model}, extra...)...)
}

func (x *exporter) hist(name string, h histogram) {
	n := 0.0
	for i, le := range h.le {
		n += h.in[i]
		x.own(name+"_bucket", n, "le", strconv.FormatFloat(le, 'f', -1, 64))
	}
	if len(h.le) > 0 {
		x.own(name+"_bucket", h.count, "le", "+Inf")
	}
	x.own(name+"_sum", h.sum)
	x.own(name+"_count", h.count)
}

// scrape writes what one scrape sees; nil is a target that does not answer. Series that are gone get a staleness marker.
func (x *exporter) scrape(at float64, s *server, started float64) {
	x.at = int64(math.Round((epoch + at) * 1000))
	x.now = map[int]bool{}
	if s == nil {
		x.put("up", 0)
		x.put("scrape_duration_seconds", 0.0004)
		x.put("scrape_samples_scraped", 0)
	} else {
		x.put("up", 1)
		x.put("scrape_duration_seconds", 0.009+0.001*math.Abs(s.rand())+min(0.4*s.lag(), 8))
		x.put("scrape_samples_scraped", 480)
		x.answer(s, at, started)
	}
	for _, i := range slices.Sorted(maps.Keys(x.alive)) {
		if !x.now[i] {
			x.series[i].Samples = append(x.series[i].Samples, memstore.StaleAt(x.at))
		}
	}
	x.alive = x.now
}

func (x *exporter) answer(s *server, at, started float64) {
	c, g := &s.c, s.gauge
	x.own("vllm:num_requests_running", float64(g.running))
	x.own("vllm:num_requests_waiting", float64(g.waiting+g.deferred))
	x.own("vllm:num_requests_waiting_by_reason", float64(g.waiting), "reason", "capacity")
	x.own("vllm:num_requests_waiting_by_reason", float64(g.deferred), "reason", "deferred")
	x.own("vllm:kv_cache_usage_perc", g.kv)
	x.own("vllm:engine_sleep_state", 1, "sleep_state", "awake")
	x.own("vllm:engine_sleep_state", 0, "sleep_state", "weights_offloaded")
	x.own("vllm:engine_sleep_state", 0, "sleep_state", "discard_all")
	x.own("vllm:num_preemptions_total", c.preempted)
	x.own("vllm:prompt_tokens_total", c.prompt)
	x.own("vllm:prompt_tokens_by_source_total", c.prompt-c.cached, "source", "local_compute")
	x.own("vllm:prompt_tokens_by_source_total", c.cached, "source", "local_cache_hit")
	x.own("vllm:prompt_tokens_by_source_total", 0, "source", "external_kv_transfer")
	x.own("vllm:prompt_tokens_cached_total", c.cached)
	x.own("vllm:generation_tokens_total", c.generated)
	x.own("vllm:prefix_cache_queries_total", c.queries)
	x.own("vllm:prefix_cache_hits_total", c.hits)
	x.own("vllm:external_prefix_cache_queries_total", 0)
	x.own("vllm:external_prefix_cache_hits_total", 0)
	x.own("vllm:mm_cache_queries_total", 0)
	x.own("vllm:mm_cache_hits_total", 0)
	x.own("vllm:request_success_total", c.finished, "finished_reason", "stop")
	for _, reason := range []string{"length", "abort", "error", "repetition"} {
		x.own("vllm:request_success_total", 0, "finished_reason", reason)
	}
	for _, reason := range []string{"max_num_queued_reqs", "max_num_queued_tokens"} {
		x.put("vllm:admission_rejections_total", 0, "model_name", x.model, "reason", reason)
	}
	x.hist("vllm:time_to_first_token_seconds", c.ttft)
	x.hist("vllm:inter_token_latency_seconds", c.itl)
	x.hist("vllm:e2e_request_latency_seconds", c.e2e)
	x.hist("vllm:request_queue_time_seconds", c.queue)
	x.hist("vllm:request_prefill_time_seconds", c.prefill)
	x.hist("vllm:request_decode_time_seconds", c.decode)
	x.hist("vllm:request_prompt_tokens", c.promptLen)
	x.hist("vllm:request_generation_tokens", c.outputLen)
	x.hist("vllm:request_params_n", c.paramsN)
	x.hist("vllm:iteration_tokens_total", c.iteration)
	pool := s.m.Blocks * blockSize
	x.put("vllm:cache_config_info", 1, "engine", "0", "block_size", strconv.Itoa(blockSize), "cache_dtype", "auto",
		"enable_prefix_caching", "True", "gpu_memory_utilization", "0.9", "num_gpu_blocks", strconv.Itoa(s.m.Blocks),
		"kv_cache_size_tokens", strconv.Itoa(pool))
	if s.m.Loras > 0 {
		x.adapters(s, at)
	}
	x.put("http_requests_total", c.http, "handler", "/v1/chat/completions", "method", "POST", "status", "2xx")
	x.put("http_requests_total", c.http5xx, "handler", "/v1/chat/completions", "method", "POST", "status", "5xx")
	x.put("process_start_time_seconds", epoch+started)
	x.put("process_cpu_seconds_total", c.cpu+0.05*(at-started))
}

// adapters writes vllm:lora_requests_info: a series for each set of adapters ever seen, its value the time when that was.
func (x *exporter) adapters(s *server, at float64) {
	set := map[int]bool{}
	for a := range s.adapters {
		set[a] = true
	}
	for _, r := range slices.Concat(s.waiting, s.deferred) {
		if r.adapter > 0 {
			set[r.adapter] = true
		}
	}
	names := make([]string, 0, len(set))
	for _, a := range slices.Sorted(maps.Keys(set)) {
		names = append(names, fmt.Sprintf("tenant-%02d", a))
	}
	list := strings.Join(names, ",")
	if s.sets == nil {
		s.sets = map[string]float64{}
	}
	s.sets[list] = epoch + at
	for _, k := range slices.Sorted(maps.Keys(s.sets)) {
		x.put("vllm:lora_requests_info", s.sets[k], "max_lora", strconv.Itoa(s.m.Loras), "running_lora_adapters", k, "waiting_lora_adapters", k)
	}
}
