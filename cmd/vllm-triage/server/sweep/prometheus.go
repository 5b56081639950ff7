package sweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"vllm-triage/promq"
	"vllm-triage/triage"
)

// Querier asks a Prometheus. *promq.Client is one.
type Querier interface {
	Query(ctx context.Context, expr string, at time.Time) (promq.Result, error)
}

// Prometheus knows which alerts fire by the series ALERTS, which the server that evaluates the rules writes. It needs no
// access to Alertmanager, but the rules must be evaluated by the server that is asked, or the series be stored there.
type Prometheus struct {
	q Querier
}

// NewPrometheus returns a Source that asks q.
func NewPrometheus(q Querier) *Prometheus { return &Prometheus{q} }

// known is how long ago an alert may have fired last for its absence to mean that it is over. An alert without a series in
// that time is evaluated elsewhere.
const known = "1d"

// Ask implements Source.
func (p *Prometheus) Ask(ctx context.Context, alerts []triage.Alert, now time.Time) ([]Answer, error) {
	names := map[string]bool{}
	for _, a := range alerts {
		if a.Name != "" {
			names[a.Name] = true
		}
	}
	answers := make([]Answer, len(alerts))
	if len(names) == 0 {
		return answers, nil
	}
	match := promq.AnyOf("alertname", slices.Collect(maps.Keys(names))).String()
	firing, err := p.labels(ctx, fmt.Sprintf(`ALERTS{alertstate="firing",%s}`, match), now)
	if err != nil {
		return nil, err
	}
	evaluated, err := p.labels(ctx, fmt.Sprintf(`count by (alertname) (last_over_time(ALERTS{%s}[%s]))`, match, known), now)
	if err != nil {
		return nil, err
	}
	for i, a := range alerts {
		switch {
		case slices.ContainsFunc(firing, func(m model.Metric) bool { return same(m, a) }):
			answers[i] = Fires
		case slices.ContainsFunc(evaluated, func(m model.Metric) bool { return string(m["alertname"]) == a.Name }):
			answers[i] = Over
		}
	}
	return answers, nil
}

// labels returns the labels of an instant query's series. An answer with warnings is incomplete, so it says nothing about
// what is absent.
func (p *Prometheus) labels(ctx context.Context, expr string, now time.Time) ([]model.Metric, error) {
	res, err := p.q.Query(ctx, expr, now)
	if err != nil {
		return nil, err
	}
	if len(res.Warnings) > 0 {
		return nil, fmt.Errorf("the answer is incomplete: %s", res.Warnings[0])
	}
	vector, ok := res.Value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("the answer is a %T, want a vector", res.Value)
	}
	out := make([]model.Metric, len(vector))
	for i, s := range vector {
		out[i] = s.Metric
	}
	return out, nil
}

// same says whether a series is about an alert. Labels that only one side has do not count: external labels are added, and
// others dropped, on the way to Alertmanager.
func same(m model.Metric, a triage.Alert) bool {
	if string(m["alertname"]) != a.Name {
		return false
	}
	for name, value := range m {
		if name == model.MetricNameLabel || name == "alertstate" {
			continue
		}
		if told, ok := a.Labels[string(name)]; ok && told != string(value) {
			return false
		}
	}
	return true
}
