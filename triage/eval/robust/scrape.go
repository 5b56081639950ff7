package robust

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
)

// scraped changes how often and how well the targets were scraped.
func scraped() []Variant {
	return []Variant{
		thinned("every 10 s", 10*time.Second, 0, false),
		thinned("every 15 s", 15*time.Second, 0, false),
		thinned("every 15 s, 20 min of calm before", 15*time.Second, 20*time.Minute, false),
		thinned("every 30 s", 30*time.Second, 0, true),
		thinned("every 30 s, 20 min of calm before", 30*time.Second, 20*time.Minute, true),
		thinned("every 60 s", time.Minute, 0, true),
		slowly("every 30 s, 30 min of calm before, 10 min into the fault", 30*time.Second),
		slowly("every 60 s, 30 min of calm before, 10 min into the fault", time.Minute),
		{Group: groupScrape, Name: "10 % of the scrapes lost", Data: func(r *eval.Recording) *memstore.Store {
			return lossy(r.Data.Store(), 0.1, target0)
		}},
		{Group: groupScrape, Name: "10 % of the samples lost", Data: func(r *eval.Recording) *memstore.Store {
			return lossy(r.Data.Store(), 0.1, func(s memstore.Series) string { return s.Labels.String() })
		}},
		{Group: groupScrape, Name: "no scrape for 30 s before the fault", Data: func(r *eval.Recording) *memstore.Store {
			return silent(r, -40*time.Second, -10*time.Second)
		}},
		{Group: groupScrape, Name: "no scrape for 20 s after the fault", Data: func(r *eval.Recording) *memstore.Store {
			return silent(r, 0, 20*time.Second)
		}},
		{Group: groupScrape, Name: "counters start anew 30 s before the fault", Data: func(r *eval.Recording) *memstore.Store {
			return reset(r, -30*time.Second)
		}},
		{Group: groupScrape, Name: "counters start anew 20 s after the fault", Data: func(r *eval.Recording) *memstore.Store {
			return reset(r, 20*time.Second)
		}},
		{Group: groupScrape, Name: "one wild scrape 60 s before the fault", Data: func(r *eval.Recording) *memstore.Store {
			return outlier(r, -time.Minute)
		}},
	}
}

func thinned(name string, every, history time.Duration, gone bool) Variant {
	return Variant{Group: groupScrape, Name: name, Gone: gone, Data: func(r *eval.Recording) *memstore.Store {
		if history > 0 {
			return withHistory(r, history).Thin(every)
		}
		return r.Data.Store().Thin(every)
	}}
}

// slowly is a long incident seen by a slow scrape: what a rule with a long window over such data would alert on.
func slowly(name string, every time.Duration) Variant {
	const in = 10 * time.Minute
	return Variant{
		Group: groupScrape, Name: name,
		Data: func(r *eval.Recording) *memstore.Store { return longFault(r, in, 30*time.Minute).Thin(every) },
		Case: func(c eval.Case) (eval.Case, bool) {
			by := c.Recording.FaultStart.Add(in).Sub(c.Incident.Now)
			return askLater(c, by, by), c.Payload != nil
		},
	}
}

// target0 names the scrape that a sample belongs to: all of a target's samples at a time are lost together.
func target0(s memstore.Series) string { return s.Labels.Get("job") + "/" + target(s.Labels) }

// lossy loses a share of what is scraped, the same by every run. Series of one key lose the same times.
func lossy(s *memstore.Store, share float64, key func(memstore.Series) string) *memstore.Store {
	return s.Apply(func(one memstore.Series) []memstore.Series {
		if isAlert(nameOf(one.Labels)) {
			return []memstore.Series{one}
		}
		h := fnv.New64a()
		h.Write([]byte(key(one)))
		seed := h.Sum64()
		var out []memstore.Sample
		for _, x := range one.Samples {
			rng := rand.New(rand.NewPCG(seed, uint64(x.At/1000))) //nolint:gosec // Chosen to be repeatable.
			if x.IsStale() || rng.Float64() >= share {
				out = append(out, x)
			}
		}
		return []memstore.Series{{Labels: one.Labels, Samples: out}}
	})
}

// silent leaves out all scrapes between two moments around the fault's start.
func silent(r *eval.Recording, from, to time.Duration) *memstore.Store {
	lo, hi := r.FaultStart.Add(from).UnixMilli(), r.FaultStart.Add(to).UnixMilli()
	return r.Data.Store().Apply(func(one memstore.Series) []memstore.Series {
		if isAlert(nameOf(one.Labels)) {
			return []memstore.Series{one}
		}
		out := slices.DeleteFunc(slices.Clone(one.Samples), func(x memstore.Sample) bool { return x.At >= lo && x.At < hi })
		return []memstore.Series{{Labels: one.Labels, Samples: out}}
	})
}

// reset lets all counters start anew although the process does not: vLLM rebuilds its loggers on elastic scaling.
func reset(r *eval.Recording, at time.Duration) *memstore.Store {
	cut := r.FaultStart.Add(at).UnixMilli()
	return r.Data.Store().Apply(func(one memstore.Series) []memstore.Series {
		if name := nameOf(one.Labels); !isCounter(name) || !isVLLM(name) {
			return []memstore.Series{one}
		}
		out := slices.Clone(one.Samples)
		base := 0.0
		for i := range out {
			switch {
			case out[i].IsStale():
			case out[i].At < cut:
				base = out[i].Value
			case out[i].Value >= base:
				out[i].Value -= base
			default:
				base = 0 // It starts anew by itself.
			}
		}
		return []memstore.Series{{Labels: one.Labels, Samples: out}}
	})
}

// outlier multiplies the gauges of one scrape by eight: a glitch, not an incident. Ratios stay ratios.
func outlier(r *eval.Recording, at time.Duration) *memstore.Store {
	lo := r.FaultStart.Add(at).UnixMilli()
	hi := lo + tick.Milliseconds()
	return r.Data.Store().Apply(func(one memstore.Series) []memstore.Series {
		const factor = 8
		most := 1e9
		switch nameOf(one.Labels) {
		case "vllm:num_requests_running", "vllm:num_requests_waiting":
		case "vllm:kv_cache_usage_perc":
			most = 1
		default:
			return []memstore.Series{one}
		}
		out := slices.Clone(one.Samples)
		for i := range out {
			if out[i].At >= lo && out[i].At < hi && !out[i].IsStale() {
				out[i].Value = min(factor*(out[i].Value+1), most)
			}
		}
		return []memstore.Series{{Labels: one.Labels, Samples: out}}
	})
}
