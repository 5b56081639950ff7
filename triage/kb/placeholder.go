package kb

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var placeholder = regexp.MustCompile(`\{([a-z][a-z0-9_]*)\}`)

// Figures lists the figures that the engine computes from an incident beside the signals' own, for use as {name} in
// sentences and next steps. A next step whose figures are unknown is left out.
//
//	residence            seconds that a request stays in the engine
//	slots_needed         arrivals × residence (Little's law)
//	shed_share           share of the requests that the servers cannot keep up with
//	replicas_now, replicas_needed, replicas_to_add
//	pool_tokens          size of the KV cache, all replicas
//	tokens_per_request   tokens of KV cache that a running request holds
//	tokens_needed        what running and waiting requests would hold; pool_factor: against the pool
//	concurrency_fits     requests of the present size that fit into the pool
//	prompt_plateau       most prompt tokens per second seen computed; prompt_demand: what is asked for
//	requests_affected    requests that started or waited since the onset
//	config_changes_text  the changed fields of the cache configuration
//	down_instances, busiest_replica, slowest_replica: names of replicas
//	models_seen          models that have data, when the one asked about has none
//
// Every signal gives three more: {id}, {id}_before and {id}_ratio.
func Figures() []string {
	return []string{
		"residence", "slots_needed", "shed_share", "replicas_now", "replicas_needed", "replicas_to_add", "pool_tokens",
		"tokens_per_request", "tokens_needed", "pool_factor", "concurrency_fits", "prompt_plateau", "prompt_demand",
		"requests_affected", "config_changes_text", "down_instances", "busiest_replica", "slowest_replica", "models_seen",
	}
}

// sentence lists what a sentence about a predicate may name beside the figures.
func sentence(p Predicate) []string {
	out := []string{"signal", "during", "before", "ratio", "skew", "value"}
	for i := range p.All {
		for _, name := range []string{"signal", "during", "before", "ratio"} {
			out = append(out, fmt.Sprintf("%s%d", name, i+1))
		}
	}
	if p.Signal == "config_changes" {
		out = append(out, "changes")
	}
	return out
}

// figure says whether a name stands for a figure or a signal of this base.
func (b *Base) figure(name string) bool {
	if slices.Contains(Figures(), name) {
		return true
	}
	for _, suffix := range []string{"", "_before", "_ratio"} {
		if id, ok := strings.CutSuffix(name, suffix); ok {
			if _, known := b.Signal(id); known {
				return true
			}
		}
	}
	return false
}

// unfilled lists the names in braces that nothing fills in.
func (b *Base) unfilled(text string, also []string) []string {
	var out []string
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if name := m[1]; !slices.Contains(also, name) && !b.figure(name) {
			out = append(out, name)
		}
	}
	return out
}

// validateTexts reports placeholders that nothing fills in.
func (c Cause) validateTexts(b *Base) []error {
	var errs []error
	check := func(where, text string, also []string) {
		for _, name := range b.unfilled(text, also) {
			errs = append(errs, fmt.Errorf("cause %q %s: {%s} is neither a figure nor a signal", c.ID, where, name))
		}
	}
	for _, cond := range c.Requires {
		check("requires", cond.Say, sentence(Predicate{Test: Test{Signal: cond.Signal}}))
	}
	for _, p := range c.Evidence {
		check("evidence "+p.ID, p.Say+p.SayAgainst, sentence(p))
	}
	for _, a := range c.Actions {
		check("action "+a.ID, a.Text+a.Cost, nil)
	}
	return errs
}
