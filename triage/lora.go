package triage

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/common/model"
)

// loraUse is what vllm:lora_requests_info says of a time: the labels list adapters with live requests, the value is when
// that set was current. Old sets are never removed, so only those updated in the time count (reference: vllm-metrics §6.27).
type loraUse struct {
	known    bool
	adapters float64 // Different adapters in use.
	slots    float64 // max_lora; 0 when unknown.
}

// loraNames matches the gauge that lists adapters, in vLLM's and in Ray's spelling.
const loraNames = `{__name__=~"vllm:lora_requests_info|vllm_lora_requests_info|ray_vllm_lora_requests_info"}`

// readLora reads which adapters were in use in the incident and in the baseline.
func (e *Engine) readLora(ctx context.Context, log *queryLog, p *plan, o *observations) {
	if len(p.targetKeys) == 0 {
		return
	}
	o.lora = e.loraIn(ctx, log, p, o, o.window)
	if o.baseline.len() > 0 {
		o.loraBefore = e.loraIn(ctx, log, p, o, o.baseline)
	}
	if !o.lora.known && o.loraBefore.known && !o.restartedSince(o.onsetIdx-o.points(p.rate)) {
		o.loraStopped = !e.loraExported(ctx, log, p)
	}
}

// loraExported says whether the gauge still has a sample at the end: a server that no adapter is asked of keeps exporting
// what was in use last.
func (e *Engine) loraExported(ctx context.Context, log *queryLog, p *plan) bool {
	a := log.instant(ctx, "lora", fmt.Sprintf("count(%s and on (%s) %s)", loraNames, joinNames(p.targetKeys),
		e.selector(p.anchor, p.scope)), p.end)
	v, ok := a.value.(model.Vector)
	return a.err != nil || ok && len(v) > 0
}

// loraIn collects the adapters whose label sets were updated in a range of the grid.
func (e *Engine) loraIn(ctx context.Context, log *queryLog, p *plan, o *observations, in promRange) loraUse {
	var use loraUse
	keys := joinNames(p.targetKeys)
	from, to := o.time(in.from), o.time(max(in.to-1, in.from))
	expr := fmt.Sprintf(
		"topk(50, max by (running_lora_adapters, waiting_lora_adapters, max_lora) (%s and on (%s) last_over_time(%s[%s])) > %d)",
		loraNames, keys, e.selector(p.anchor, p.scope), promDuration(to.Sub(from)+p.rate), from.Unix())
	a := log.instant(ctx, "lora", expr, to)
	if a.err != nil {
		o.loraErr = a.err
	}
	v, ok := a.value.(model.Vector)
	if !ok || len(v) == 0 {
		return use
	}
	use.known = true
	names := map[string]bool{}
	for _, s := range v {
		for _, l := range []model.LabelName{"running_lora_adapters", "waiting_lora_adapters"} {
			for n := range strings.SplitSeq(string(s.Metric[l]), ",") {
				if n = strings.TrimSpace(n); n != "" {
					names[n] = true
				}
			}
		}
		if m := labelNumber(s.Metric, "max_lora"); m > 0 && (use.slots == 0 || m < use.slots) {
			use.slots = m
		}
	}
	use.adapters = float64(len(names))
	return use
}

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
