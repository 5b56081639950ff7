package triage

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"vllm-triage/triage/kb"
)

// anchorOf is a regular expression of the spellings of the metric that tells scope, scrape interval and targets: the best
// one that exists. Every vLLM exports the first, but a site may drop any.
func (e *Engine) anchorOf(names map[string]bool) string {
	for _, n := range e.kb.Anchor {
		if spelled := kb.Spellings(n); slices.ContainsFunc(spelled, func(x string) bool { return names[x] }) {
			return strings.Join(spelled, "|")
		}
	}
	return strings.Join(kb.Spellings(e.kb.Anchor[0]), "|")
}

// reanchor takes another metric as anchor when the one that was sampled has no fresh sample and others have: it is not
// exported any more. (When nothing has any, or only a dead replica was sampled, it stays.)
func (e *Engine) reanchor(ctx context.Context, log *queryLog, p *plan) {
	if p.discovery != nil || !p.edge.IsZero() && p.end.Sub(p.edge) <= 2*p.scrape+5*time.Second {
		return
	}
	var all []string
	for _, n := range e.kb.Anchor {
		all = append(all, p.found(kb.Spellings(n))...)
	}
	if len(all) < 2 {
		return
	}
	a := log.instant(ctx, "anchor", "count by (__name__) ("+e.selector(strings.Join(all, "|"), p.scope)+")", p.end)
	v, ok := a.value.(model.Vector)
	if !ok || len(v) == 0 {
		return
	}
	fresh := map[string]bool{}
	for _, s := range v {
		fresh[string(s.Metric[model.MetricNameLabel])] = true
	}
	if anchor := e.anchorOf(fresh); anchor != p.anchor {
		p.anchor, p.replicaKeys, p.targetKeys = anchor, nil, nil
		e.sample(ctx, log, p)
	}
}

// byAnchor reads a signal from the anchor where that is one of its alternatives.
func (p *plan) byAnchor(s kb.Signal) kb.Signal {
	anchors := strings.Split(p.anchor, "|")
	for _, f := range s.Fallback {
		if slices.ContainsFunc(f.Spellings(), func(n string) bool { return slices.Contains(anchors, n) }) {
			s.Names, s.Read = f.Names, f.Read
			return s
		}
	}
	return s
}
