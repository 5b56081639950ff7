package triage

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// maxNeighbours is how many pods and how many hosts are asked about; a larger fleet is judged by the first of them.
const maxNeighbours = 32

// neighbours are the places at which other exporters tell about the replicas of a scope: the GPUs of their hosts (DCGM
// exporter), their pods (kube-state-metrics) and their containers (cAdvisor).
type neighbours struct {
	pods, hosts []string
	names       map[string]bool
}

// readNeighbours reads the signals about devices and pods. It asks once where the replicas are and once which of the names
// exist there; without any nothing more is asked, and their absence costs the causes nothing.
func (e *Engine) readNeighbours(ctx context.Context, log *queryLog, p *plan, put func(string, *observation)) {
	var signals []kb.Signal
	for _, s := range e.kb.Signals {
		if s.Neighbour() {
			signals = append(signals, s)
		}
	}
	n := e.findNeighbours(ctx, log, p, signals)
	for _, s := range signals {
		x := &observation{sig: s, state: Absent, why: "no such metric for the hosts and pods of this scope"}
		if x.expr = e.neighbourExpression(p, n, s); x.expr != "" {
			e.fetch(ctx, log, p, x)
		}
		put(s.ID, x)
	}
}

func (e *Engine) findNeighbours(ctx context.Context, log *queryLog, p *plan, signals []kb.Signal) neighbours {
	var n neighbours
	if len(p.targetKeys) == 0 || len(signals) == 0 {
		return n
	}
	window := promDuration(p.grid.end.Sub(p.grid.start))
	v, ok := log.instant(ctx, "neighbours", fmt.Sprintf("topk(%d, count by (instance, pod) (last_over_time(%s[%s])))",
		maxNeighbours, e.selector(p.anchor, p.scope), window), p.end).value.(model.Vector)
	if !ok {
		return n
	}
	for _, s := range v {
		if pod := string(s.Metric["pod"]); pod != "" && !slices.Contains(n.pods, pod) {
			n.pods = append(n.pods, pod)
		}
		if host := hostOf(string(s.Metric["instance"])); host != "" && !slices.Contains(n.hosts, host) {
			n.hosts = append(n.hosts, host)
		}
	}
	slices.Sort(n.pods)
	slices.Sort(n.hosts)

	var names []string
	for _, s := range signals {
		names = append(names, s.Names...)
	}
	name := labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, strings.Join(names, "|"))
	var selectors []string
	for _, at := range slices.Concat(n.at("device"), n.at("pod")) {
		all := append([]*labels.Matcher{name, at}, e.nearby(p)...)
		parts := make([]string, 0, len(all))
		for _, m := range all {
			parts = append(parts, m.String())
		}
		if s := "{" + strings.Join(parts, ",") + "}"; !slices.Contains(selectors, s) {
			selectors = append(selectors, s)
		}
	}
	if len(selectors) == 0 {
		return n
	}
	found, err := log.names(ctx, "neighbour_names", selectors, p.grid.start, p.end)
	if err == nil {
		n.names = toSet(found)
	}
	return n
}

// hostOf is the host part of an instance.
func hostOf(instance string) string {
	if i := strings.LastIndexByte(instance, ':'); i >= 0 {
		instance = instance[:i]
	}
	return strings.Trim(instance, "[]")
}

// at lists the matchers by which series of a kind belong to the replicas: the workload's pod (exported_pod where the
// exporter's own pod has taken the name), the host's name, or an exporter on the same host.
func (n neighbours) at(scope string) []*labels.Matcher {
	var out []*labels.Matcher
	if len(n.pods) > 0 {
		out = append(out, promq.AnyOf("exported_pod", n.pods), promq.AnyOf("pod", n.pods))
	}
	if scope == "device" && len(n.hosts) > 0 {
		quoted := make([]string, 0, len(n.hosts))
		for _, h := range n.hosts {
			quoted = append(quoted, regexp.QuoteMeta(h))
		}
		out = append(out, promq.AnyOf("Hostname", n.hosts),
			labels.MustNewMatcher(labels.MatchRegexp, "instance", "(?:"+strings.Join(quoted, "|")+")(?::[0-9]+)?"))
	}
	return out
}

// nearby are the matchers that keep other clusters out.
func (e *Engine) nearby(p *plan) []*labels.Matcher {
	var out []*labels.Matcher
	if p.scope.Cluster != "" {
		out = append(out, promq.Equal("cluster", p.scope.Cluster))
	}
	return append(out, e.opts.Matchers...)
}

// neighbourExpression joins a signal's names and places with `or`: a series that two of them match is one series.
func (e *Engine) neighbourExpression(p *plan, n neighbours, s kb.Signal) string {
	t, err := promq.ParseTemplate(s.Read)
	if err != nil {
		return "" // Excluded when the knowledge base is loaded.
	}
	for _, name := range s.Names {
		if !n.names[name] {
			continue
		}
		var parts []string
		for _, at := range n.at(s.Scope) {
			parts = append(parts, t.Expand(name, p.rate, append([]*labels.Matcher{at}, e.nearby(p)...)...))
		}
		return fmt.Sprintf("%s (%s)", s.Fold, strings.Join(parts, " or "))
	}
	return ""
}
