package triage

import (
	"vllm-triage/promq"
)

// certain is the name of the figure by which a derivation says that nothing which is missing could change its result.
const certain = "certain"

// kvConnector counts the signs that a KV connector is at work, as the catalogue lists them: look-ups in an external cache,
// transfers, requests that wait for remote KV. The counters exist without one too; only movement tells. Without any it is
// known to be none only when no sign is missing.
func (e *Engine) kvConnector(_ *plan, o *observations) map[string]float64 {
	s, _ := e.kb.Signal("kv_connector")
	n := 0.0
	for _, id := range s.BetterWith {
		if promq.Max(present(o.series(id))) > 0 {
			n++
		}
	}
	if n == 0 && o.gapAmong(s.BetterWith) != nil {
		return nil
	}
	return map[string]float64{"level": n, "base": 0, certain: min(n, 1)}
}
