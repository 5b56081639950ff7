package runbook

import "slices"

// Kind says what a page is about.
type Kind string

// The kinds of pages.
const (
	Bottleneck Kind = "bottleneck" // A mechanism that makes requests slow or fail.
	Trigger    Kind = "trigger"    // What changed to bring it there.
	General    Kind = "general"    // Where to start, and what to do without a verdict.
	Site       Kind = "site"       // A page that an overlay adds.
)

var bottlenecks = []string{
	"admission_blocked", "admission_rejections", "client_aborts", "concurrency_cap", "cpu_swapping", "decode_bound",
	"device_slowdown", "engine_asleep", "engine_stalled", "frontend_bound", "healthy", "kv_cache_exhaustion",
	"kv_transfer", "lora_slots", "low_traffic", "metrics_missing", "multimodal_encoder", "oversize_request",
	"prefill_bound", "replica_down", "replica_imbalance", "request_errors", "speculative_decoding", "structured_output",
}

var triggers = []string{
	"adapter_mix", "config_change", "longer_outputs", "longer_prompts", "multimodal_mix", "none", "prefix_cache_collapse",
	"replica_loss", "restart", "routing_change", "sampling_n", "structured_output_mix", "traffic_surge",
}

var general = []string{"index", "unknown"}

// Required lists the ids of one kind that a book must have, sorted. It is empty for Site.
func Required(k Kind) []string {
	switch k {
	case Bottleneck:
		return slices.Clone(bottlenecks)
	case Trigger:
		return slices.Clone(triggers)
	case General:
		return slices.Clone(general)
	case Site:
	}
	return nil
}

func kindOf(id string) Kind {
	for _, k := range []Kind{Bottleneck, Trigger, General} {
		if slices.Contains(Required(k), id) {
			return k
		}
	}
	return Site
}
