package sim

import "fmt"

// Truth says why a scenario did not become what it was meant to be; "" is that it clearly did. The limits are shares of the time in
// steps since the fault took hold:
//
//   - concurrency_cap: all slots taken with requests waiting for one in half of the time, the pool short in less than a
//     twentieth, steps less than 1.6 times as long.
//   - kv_cache_exhaustion: requests preempted or the head of the queue without room in half of the time, slots binding in less
//     than a twentieth, prompts less than 0.45 of the step time.
//   - prefill_bound: prompts use up the token budget, or take seven tenths of the step time, in half of the time, while steps got 1.5 times as long; neither
//     slots nor pool bind.
//   - decode_bound: steps at least twice as long, prompts less than 0.35 of their time, nothing waits, neither slots nor
//     pool bind.
//   - lora_slots, structured_output: requests deferred in six tenths of the time, and more deferred than waiting for capacity.
//   - frontend_bound: more than six tenths of the time to first token is spent in the API process, and that doubled; steps are
//     less than 1.5 times as long.
//   - healthy, low_traffic: none of the above at more than a fiftieth, steps and first tokens less than 1.25 and 1.4 times
//     as long as before.
//   - Faults that are injected as such (a slow device, a stall, a lost replica, uneven routing) are what they are if users
//     feel them.
func (p Played) Truth() string {
	d, b := p.During, p.Before
	w := d
	if p.Scenario.Replicas > 1 && (p.Scenario.Bottleneck == "replica_imbalance" || p.Scenario.After.SlowOne > 0) {
		w = p.Worst
	}
	slots, pool, budget, prefill, deferred := w.Share(w.Slots), w.Share(w.Pool), w.Share(w.Budget), w.Share(w.Prefill), w.Share(w.Deferred)
	slower := ratio(w.ITL(), b.ITL())
	later := ratio(w.TTFT(), b.TTFT())
	bad := ""
	need := func(ok bool, what string, v float64) {
		if !ok && bad == "" {
			bad = fmt.Sprintf("%s (%.2f)", what, v)
		}
	}
	need(b.Share(b.Slots)+b.Share(b.Pool) < 0.05, "calm is not calm: slots or the pool bind", b.Share(b.Slots)+b.Share(b.Pool))
	need(b.Share(b.Budget) < 0.3, "calm is not calm: prompts fill the steps", b.Share(b.Budget))
	need(ratio(b.Waiting, b.Time) < 1, "calm is not calm: requests wait", ratio(b.Waiting, b.Time))
	outside := ratio(w.OutsideTime, w.FirstTime)
	if p.Scenario.Bottleneck != "frontend_bound" {
		need(outside < 0.3 || w.TTFT() < 0.3, "the API process takes time", outside)
	}
	switch p.Scenario.Bottleneck {
	case "concurrency_cap":
		need(deferred < 0.3, "requests are deferred too", deferred)
		need(slots > 0.5, "slots bind too rarely", slots)
		need(pool < 0.05, "the pool binds too", pool)
		need(slower < 1.6, "steps got long", slower)
	case "kv_cache_exhaustion":
		need(deferred < 0.3, "requests are deferred too", deferred)
		need(pool > 0.5, "the pool binds too rarely", pool)
		need(slots < 0.05, "slots bind too", slots)
		need(budget < 0.3 && prefill < 0.45, "prompts fill the steps too", prefill)
	case "prefill_bound":
		need(budget > 0.5 || prefill > 0.7, "prompts do not use up the steps", budget)
		need(slots < 0.05, "slots bind too", slots)
		need(pool < 0.05, "the pool binds too", pool)
		need(slower > 1.5, "steps did not get longer", slower)
		need(later > 2, "first tokens are not late", later)
	case "decode_bound":
		need(slower > 2, "steps did not get longer", slower)
		need(prefill < 0.35, "prompts take the time", prefill)
		need(slots < 0.02, "slots bind too", slots)
		need(pool < 0.02, "the pool binds too", pool)
	case "lora_slots", "structured_output":
		need(deferred > 0.6, "too few are deferred", deferred)
		need(slots < 0.2, "slots bind too", slots)
		need(pool < 0.05, "the pool binds too", pool)
	case "frontend_bound":
		need(outside > 0.6, "the engine takes the time", outside)
		need(ratio(w.OutsideTime, w.Firsts) > 2*ratio(b.OutsideTime, b.Firsts), "it did not grow", 0)
		need(slots+pool < 0.05, "the engine is full too", slots+pool)
		need(budget < 0.3, "prompts fill the steps too", budget)
		need(slower < 1.5, "steps got longer too", slower)
	case "device_slowdown":
		need(slower > 1.6, "steps did not get longer", slower)
		need(pool < 0.05, "the pool binds too", pool)
	case "replica_imbalance":
		need(w.Share(w.Waiting) > 0.5, "nothing waits", w.Share(w.Waiting))
	case "client_aborts":
		need(ratio(w.Left, w.Firsts) > 0.6, "most requests finish", ratio(w.Left, w.Firsts))
		need(slower < 1.5, "steps got longer", slower)
		need(slots+pool < 0.05, "slots or the pool bind", slots+pool)
	case "engine_stalled":
	case "replica_down":
	case "healthy", "low_traffic":
		need(slots < 0.02, "slots bind", slots)
		need(pool < 0.02, "the pool binds", pool)
		need(slower < 1.25, "steps got longer", slower)
		need(later < 1.4, "first tokens got late", later)
	}
	return bad
}
