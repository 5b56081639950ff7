package robust

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
)

func hasPrefix(s, prefix string) bool { return strings.HasPrefix(s, prefix) }

func isVLLM(name string) bool { return hasPrefix(name, "vllm:") }

// histograms of vLLM (v1/metrics/loggers.py).
var histograms = []string{
	"vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds", "vllm:request_time_per_output_token_seconds",
	"vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds", "vllm:request_prefill_time_seconds",
	"vllm:request_decode_time_seconds", "vllm:request_inference_time_seconds", "vllm:request_prompt_tokens",
	"vllm:request_generation_tokens", "vllm:request_max_num_generation_tokens", "vllm:request_params_n",
	"vllm:request_params_max_tokens", "vllm:request_prefill_kv_computed_tokens", "vllm:request_num_preemptions",
	"vllm:iteration_tokens",
}

func isHistogram(family string) bool { return slices.Contains(histograms, family) }

// introduced holds the version from which the V1 engine exports a metric, of those that are younger than 0.8.0. Read from
// the sources of 0.7.1 to 0.32.0 (v1/metrics/loggers.py).
var introduced = map[string]string{
	"vllm:num_requests_waiting_by_reason":        "0.20.0",
	"vllm:kv_cache_usage_perc":                   "0.9.2",
	"vllm:prefix_cache_queries":                  "0.9.2",
	"vllm:prefix_cache_hits":                     "0.9.2",
	"vllm:external_prefix_cache_queries":         "0.11.1",
	"vllm:external_prefix_cache_hits":            "0.11.1",
	"vllm:mm_cache_queries":                      "0.11.1",
	"vllm:mm_cache_hits":                         "0.11.1",
	"vllm:engine_sleep_state":                    "0.11.1",
	"vllm:prompt_tokens_by_source":               "0.16.0",
	"vllm:prompt_tokens_cached":                  "0.16.0",
	"vllm:prompt_tokens_cached_by_source":        "0.32.0",
	"vllm:admission_rejections":                  "0.32.0",
	"vllm:estimated_flops_per_gpu":               "0.17.0",
	"vllm:estimated_read_bytes_per_gpu":          "0.17.0",
	"vllm:estimated_write_bytes_per_gpu":         "0.17.0",
	"vllm:inter_token_latency_seconds":           "0.10.2",
	"vllm:request_time_per_output_token_seconds": "0.11.0",
	"vllm:request_prefill_kv_computed_tokens":    "0.13.0",
	"vllm:request_num_preemptions":               "0.30.0",
	"http_requests":                              "0.8.5",
	"http_request_duration_seconds":              "0.8.5",
	"http_request_duration_highr_seconds":        "0.8.5",
	"http_request_size_bytes":                    "0.8.5",
	"http_response_size_bytes":                   "0.8.5",
}

// former holds names that a metric had before, with the last version that shows the old name without being asked to.
var former = map[string]struct{ old, until string }{
	"vllm:kv_cache_usage_perc":         {"vllm:gpu_cache_usage_perc", "0.10.2"},
	"vllm:prefix_cache_queries":        {"vllm:gpu_prefix_cache_queries", "0.10.2"},
	"vllm:prefix_cache_hits":           {"vllm:gpu_prefix_cache_hits", "0.10.2"},
	"vllm:inter_token_latency_seconds": {"vllm:time_per_output_token_seconds", "0.11.2"},
}

// labelSince holds labels and label values that are younger than 0.8.0: metric, label, value (empty for any).
var labelSince = []struct{ family, label, value, since string }{
	{"vllm:cache_config_info", "kv_cache_size_tokens", "", "0.24.0"},
	{"vllm:cache_config_info", "kv_cache_max_concurrency", "", "0.24.0"},
	{"vllm:cache_config_info", "engine", "", "0.9.0"},
	{"vllm:request_success", "finished_reason", "error", "0.13.0"},
	{"vllm:request_success", "finished_reason", "repetition", "0.17.0"},
}

// newBounds are the bucket bounds that came with 0.8.4, by metric: the first bound that an older version lacks.
var newBounds = map[string]float64{
	"vllm:time_to_first_token_seconds": 20, "vllm:inter_token_latency_seconds": 5,
	"vllm:e2e_request_latency_seconds": 120, "vllm:request_queue_time_seconds": 120,
	"vllm:request_prefill_time_seconds": 120, "vllm:request_decode_time_seconds": 120,
	"vllm:request_inference_time_seconds": 120,
}

// asVersion rewrites the series of a 0.32 to those that an older V1 would have exported.
func asVersion(version string) func(*eval.Recording) *memstore.Store {
	return func(r *eval.Recording) *memstore.Store {
		return r.Data.Store().Apply(func(one memstore.Series) []memstore.Series {
			var out []memstore.Series
			l, ok := asLabels(one.Labels, version)
			if !ok {
				return nil
			}
			name, fam := nameOf(l), family(nameOf(l))
			if since, young := introduced[fam]; !young || !older(version, since) {
				out = append(out, memstore.Series{Labels: l, Samples: one.Samples})
			}
			if was, ok := former[fam]; ok && !older(was.until, version) {
				old := labels.NewBuilder(l).Set(model.MetricNameLabel, was.old+strings.TrimPrefix(name, fam)).Labels()
				out = append(out, memstore.Series{Labels: old, Samples: one.Samples})
			}
			return out
		})
	}
}

// asLabels drops what an older version does not say in labels; false when it has no such series.
func asLabels(l labels.Labels, version string) (labels.Labels, bool) {
	fam := family(nameOf(l))
	b := labels.NewBuilder(l)
	for _, x := range labelSince {
		if x.family != fam || !older(version, x.since) {
			continue
		}
		if x.value != "" && l.Get(x.label) == x.value {
			return l, false
		}
		if x.value == "" {
			b.Del(x.label)
		}
	}
	if older(version, "0.8.3") && isVLLM(fam) {
		b.Del("engine")
	}
	if bound, ok := newBounds[fam]; ok && older(version, "0.8.4") {
		if le, err := strconv.ParseFloat(l.Get("le"), 64); err == nil && le >= bound && l.Get("le") != "+Inf" {
			return l, false
		}
	}
	return b.Labels(), true
}

// older compares dotted versions.
func older(a, b string) bool {
	return slices.Compare(numbers(a), numbers(b)) < 0
}

func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 0
		}
		out = append(out, n)
	}
	return out
}

// asV0 rewrites the series to what the V0 engine of 0.6.6 exported: no engine label, no prefix counters, one process more
// and therefore neither process nor HTTP metrics, and the gauges of its swap space (engine/metrics.py).
func asV0(r *eval.Recording) *memstore.Store {
	v1 := asVersion("0.8.0")(r)
	return v1.Apply(func(one memstore.Series) []memstore.Series {
		name := nameOf(one.Labels)
		switch {
		case hasPrefix(name, "vllm:gpu_prefix_cache"), hasPrefix(name, "process_"), hasPrefix(name, "python_"),
			hasPrefix(name, "http_"), strings.HasSuffix(name, "_created"):
			return nil
		case name == "vllm:num_requests_running":
			out := []memstore.Series{one}
			for _, zero := range []string{"vllm:num_requests_swapped", "vllm:cpu_cache_usage_perc"} {
				l := labels.NewBuilder(one.Labels).Set(model.MetricNameLabel, zero).Labels()
				samples := slices.Clone(one.Samples)
				for i := range samples {
					if !samples[i].IsStale() {
						samples[i].Value = 0
					}
				}
				out = append(out, memstore.Series{Labels: l, Samples: samples})
			}
			return out
		}
		return []memstore.Series{one}
	})
}

// asRay rewrites the series to what Ray exports of vLLM: every other character replaced, Ray's prefix, counters without
// _total, labels of Ray's own, counters that never moved left out, and no metrics of the HTTP process
// (v1/metrics/ray_wrappers.py).
func asRay(total string) func(*eval.Recording) *memstore.Store {
	return func(r *eval.Recording) *memstore.Store {
		return r.Data.Store().Apply(func(one memstore.Series) []memstore.Series {
			name := nameOf(one.Labels)
			switch {
			case hasPrefix(name, "http_"), hasPrefix(name, "process_"), hasPrefix(name, "python_"), strings.HasSuffix(name, "_created"):
				return nil
			case !isVLLM(name):
				return []memstore.Series{one}
			case isCounter(name) && strings.HasSuffix(name, "_total") && neverMoved(one.Samples):
				return nil
			}
			rest := strings.TrimPrefix(name, "vllm:")
			if bare, ok := strings.CutSuffix(rest, "_total"); ok {
				rest = bare + total
			}
			l := labels.NewBuilder(one.Labels).Set(model.MetricNameLabel, "ray_vllm_"+rest).
				Set("ReplicaId", "r-"+one.Labels.Get("pod")).Set("WorkerId", "w-"+one.Labels.Get("pod")).Labels()
			return []memstore.Series{{Labels: l, Samples: one.Samples}}
		})
	}
}

func neverMoved(samples []memstore.Sample) bool {
	for i := range samples {
		if !samples[i].IsStale() && samples[i].Value != 0 {
			return false
		}
	}
	return true
}

// names rewrites to other versions and spellings.
func names() []Variant {
	var out []Variant
	for _, v := range []string{"0.26.0", "0.19.0", "0.15.0", "0.11.0", "0.10.0", "0.9.0", "0.8.0"} {
		out = append(out, Variant{Group: groupNames, Name: "vLLM " + v, Data: asVersion(v)})
	}
	return append(out,
		Variant{Group: groupNames, Name: "vLLM 0.6.6 (V0)", Data: asV0},
		Variant{Group: groupNames, Name: "Ray", Data: asRay("")},
		Variant{Group: groupNames, Name: "Ray, counters with _total", Data: asRay("_total")},
	)
}
