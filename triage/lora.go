package triage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	all := promRange{o.window.from, o.window.to}
	if o.baseline.len() > 0 {
		all.from = o.baseline.from
	}
	sets := e.loraSets(ctx, log, p, o, all, true)
	o.lora = loraUseSince(sets, o.time(o.window.from))
	if len(sets) == 0 || o.baseline.len() == 0 {
		return
	}
	o.loraBefore = loraUseSince(e.loraSets(ctx, log, p, o, o.baseline, false), o.time(o.baseline.from))
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

// loraSets reads the sets of adapters that were updated in a range of the grid, the latest first: those exported at its end,
// or ended ones too.
func (e *Engine) loraSets(ctx context.Context, log *queryLog, p *plan, o *observations, in promRange, ended bool) model.Vector {
	from, to := o.time(in.from), o.time(max(in.to-1, in.from))
	gauge, back := loraNames, promDuration(to.Sub(from)+p.rate)
	if ended {
		gauge = "last_over_time(" + gauge + "[" + back + "])"
	}
	expr := fmt.Sprintf("topk(50, max by (running_lora_adapters, waiting_lora_adapters, max_lora) "+
		"(%s and on (%s) last_over_time(%s[%s])) > %d)",
		gauge, joinNames(p.targetKeys), e.selector(p.anchor, p.scope), back, from.Unix())
	a := log.instant(ctx, "lora", expr, to)
	if a.err != nil {
		o.loraErr = a.err
	}
	v, _ := a.value.(model.Vector)
	return v
}

// loraUseSince collects the adapters of the sets that were current after a moment.
func loraUseSince(sets model.Vector, from time.Time) loraUse {
	var use loraUse
	sets = slices.DeleteFunc(slices.Clone(sets), func(s *model.Sample) bool { return float64(s.Value) <= float64(from.Unix()) })
	if len(sets) == 0 {
		return use
	}
	use.known = true
	names := map[string]bool{}
	for _, s := range sets {
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
