package triage

import (
	"vllm-triage/promq"
)

// signsOfConnector are the signals that move only where a KV connector is at work. The counters exist without one too.
var signsOfConnector = []string{"external_queries", "kv_transfers", "kv_fetch_waiting", "kv_transfer_failures", "kv_transfer_expired"}

// certain is the name of the figure by which a derivation says that nothing which is missing could change its result.
const certain = "certain"

// kvConnector counts the signs that a KV connector is at work: look-ups in an external cache, transfers, requests that
// wait for remote KV. Without any it is known to be none only when no sign is missing.
func kvConnector(_ *plan, o *observations) map[string]float64 {
	n, missing := 0.0, false
	for _, id := range signsOfConnector {
		if promq.Max(present(o.series(id))) > 0 {
			n++
		}
		missing = missing || o.gap(id) != nil
	}
	if n == 0 && missing {
		return nil
	}
	return map[string]float64{"level": n, "base": 0, certain: min(n, 1)}
}
