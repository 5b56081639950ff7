package triage

import (
	"cmp"
	"slices"

	"vllm-triage/triage/kb"
)

// chain is the causal line in order: trigger, bottleneck, consequences by their onsets.
func chain(o *observations, w *weighed, v Verdict) []ChainLink {
	if v == NoBottleneck || len(w.bottlenecks) == 0 {
		return nil
	}
	var out []ChainLink
	if len(w.triggers) > 0 && w.triggers[0].cause.Kind != kb.NoTrigger && w.triggers[0].probability >= likely {
		t := w.triggers[0].cause
		out = append(out, ChainLink{ID: t.ID, Kind: "trigger", Title: t.Title, Since: o.onset})
	}
	b := w.bottlenecks[0].cause
	out = append(out, ChainLink{ID: b.ID, Kind: "bottleneck", Title: b.Title, Since: o.onset})
	var rest []ChainLink
	for _, id := range b.Explains {
		if i, ok := o.onsets[id]; ok {
			rest = append(rest, ChainLink{ID: id, Kind: "consequence", Title: o.get(id).sig.Title, Since: o.time(i)})
		}
	}
	slices.SortStableFunc(rest, func(a, b ChainLink) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return append(out, rest...)
}
