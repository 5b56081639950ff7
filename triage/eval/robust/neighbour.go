package robust

import (
	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
)

// neighbours lets other models with incidents of their own live at the same Prometheus.
func neighbours(recs []*eval.Recording) []Variant {
	var out []Variant
	for _, step := range []int{3, 11} {
		out = append(out, Variant{
			Group: groupNeighbours, Name: "another model has an incident too", Detail: "step " + string(rune('0'+step%10)),
			Data: func(r *eval.Recording) *memstore.Store {
				other := neighbour(recs, r, step)
				if other == nil {
					return nil
				}
				return r.Data.Store().Merge(asNeighbour(other, r))
			},
		})
	}
	for _, other := range recs {
		out = append(out, Variant{
			Group: groupNeighbours, Name: "calm model, another has an incident", Detail: other.ID,
			Data: func(r *eval.Recording) *memstore.Store {
				if r.Truth.Bottleneck != "healthy" || other == r {
					return nil
				}
				return r.Data.Store().Merge(asNeighbour(other, r))
			},
		})
	}
	return out
}

// neighbour is the recording some steps further in the list, if it has another cause.
func neighbour(recs []*eval.Recording, r *eval.Recording, step int) *eval.Recording {
	for i, x := range recs {
		if x != r {
			continue
		}
		for j := range recs {
			if y := recs[(i+step+j)%len(recs)]; y.Truth.Bottleneck != r.Truth.Bottleneck {
				return y
			}
		}
	}
	return nil
}

// asNeighbour is an incident under names of its own, at the time of another.
func asNeighbour(other, r *eval.Recording) *memstore.Store {
	s := shift(other.Data.Store(), r.FaultStart.Sub(other.FaultStart).Truncate(tick))
	return s.Map(func(l labels.Labels) (labels.Labels, bool) {
		b := labels.NewBuilder(l)
		for _, label := range []string{"model_name", "pod"} {
			if v := l.Get(label); v != "" {
				b.Set(label, "other-"+v)
			}
		}
		if v := l.Get("instance"); v != "" {
			b.Set("instance", "10.99."+v[len("10.42."):])
		}
		return b.Labels(), true
	})
}
