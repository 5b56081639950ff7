package triage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// loraUse is what vllm:lora_requests_info says at one moment: the labels list the adapters, the value is when they were
// current. Old label sets are never removed, so only each target's newest counts (reference: vllm-metrics §6.27).
type loraUse struct {
	known    bool
	adapters float64 // Most adapters with live requests on one replica.
	slots    float64 // max_lora; 0 when unknown.
}

// readLora reads the adapters at the end and before the onset.
func (e *Engine) readLora(ctx context.Context, log *queryLog, p *plan, o *observations) {
	if !p.names["vllm:lora_requests_info"] && len(p.targetKeys) > 0 {
		// The series carry no model_name: discovery by model cannot see them.
		o.lora, o.loraBefore = e.loraAt(ctx, log, p, p.end, o.late), loraUse{}
		if o.lora.known && o.baseline.len() > 0 {
			o.loraBefore = e.loraAt(ctx, log, p, o.time(max(o.onsetIdx-1, 0)), o.baseline)
		}
	}
}

func (e *Engine) loraAt(ctx context.Context, log *queryLog, p *plan, at time.Time, in promRange) loraUse {
	var use loraUse
	keys := joinNames(p.targetKeys)
	const info = "vllm:lora_requests_info"
	window := promDuration(max(time.Duration(in.len())*o0step(p), p.rate))
	expr := fmt.Sprintf("topk(8, (%s == on (%s) group_left max by (%s) (%s)) and on (%s) last_over_time(%s[%s]))",
		info, keys, keys, info, keys, e.selector(runningNames, p.scope), window)
	v, ok := log.instant(ctx, "lora", expr, at).value.(model.Vector)
	if !ok || len(v) == 0 {
		return use
	}
	use.known = true
	for _, s := range v {
		names := map[string]bool{}
		for _, l := range []model.LabelName{"running_lora_adapters", "waiting_lora_adapters"} {
			for n := range strings.SplitSeq(string(s.Metric[l]), ",") {
				if n = strings.TrimSpace(n); n != "" {
					names[n] = true
				}
			}
		}
		use.adapters = max(use.adapters, float64(len(names)))
		if m := labelNumber(s.Metric, "max_lora"); m > 0 && (use.slots == 0 || m < use.slots) {
			use.slots = m
		}
	}
	return use
}

func o0step(p *plan) time.Duration { return p.grid.step }

func loraAdapters(_ *plan, o *observations) map[string]float64 {
	if !o.lora.known {
		return nil
	}
	out := map[string]float64{"level": o.lora.adapters, "max": max(o.lora.adapters, o.loraBefore.adapters)}
	if o.loraBefore.known {
		out["base"] = o.loraBefore.adapters
		out["delta"] = o.lora.adapters - o.loraBefore.adapters
	}
	return out
}

func loraMax(_ *plan, o *observations) map[string]float64 {
	if !o.lora.known || o.lora.slots == 0 {
		return nil
	}
	return map[string]float64{"level": o.lora.slots, "base": o.lora.slots}
}

func loraPressure(_ *plan, o *observations) map[string]float64 {
	if !o.lora.known || o.lora.slots == 0 {
		return nil
	}
	return map[string]float64{"level": o.lora.adapters / o.lora.slots}
}
