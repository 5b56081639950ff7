package sweep

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/prometheus/common/model"

	"vllm-triage/triage"
)

// maxExpressions bounds how many expressions one sweep evaluates: they were written for one evaluation an interval.
const maxExpressions = 50

// Expression knows whether an alert fires by evaluating its rule's own expression, which Prometheus writes into the
// generatorURL. The address itself is not called. It serves where the series ALERTS is not stored, and where Alertmanager
// cannot be reached.
type Expression struct {
	q Querier
}

// NewExpression returns a Source that asks q.
func NewExpression(q Querier) *Expression { return &Expression{q} }

// Ask implements Source. An alert whose expression is not known, or cannot be evaluated, stays unknown.
func (e *Expression) Ask(ctx context.Context, alerts []triage.Alert, now time.Time) ([]Answer, error) {
	answers := make([]Answer, len(alerts))
	known := map[string]model.Vector{}
	for i, a := range alerts {
		expr := ruleExpression(a.GeneratorURL)
		if expr == "" {
			continue
		}
		vector, asked := known[expr]
		if !asked {
			if len(known) == maxExpressions {
				continue
			}
			vector = e.evaluate(ctx, expr, now)
			known[expr] = vector
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if vector == nil {
			continue
		}
		answers[i] = Over
		for _, s := range vector {
			if agrees(s.Metric, a) {
				answers[i] = Fires
			}
		}
	}
	return answers, nil
}

// evaluate returns nil when the answer is none, or incomplete: then it says nothing about what is absent.
func (e *Expression) evaluate(ctx context.Context, expr string, now time.Time) model.Vector {
	res, err := e.q.Query(ctx, expr, now)
	if err != nil || len(res.Warnings) > 0 {
		return nil
	}
	vector, ok := res.Value.(model.Vector)
	if !ok {
		return nil
	}
	if vector == nil {
		vector = model.Vector{}
	}
	return vector
}

// ruleExpression is the PromQL in a generatorURL, or empty.
func ruleExpression(generator string) string {
	u, err := url.Parse(generator)
	if err != nil {
		return ""
	}
	return u.Query().Get("g0.expr")
}

// agrees says whether a series may be the one that an alert is about. Rules drop and rewrite labels, so only those count
// that both sides have.
func agrees(m model.Metric, a triage.Alert) bool {
	for name, value := range m {
		if told, ok := a.Labels[string(name)]; ok && name != model.MetricNameLabel && told != string(value) {
			return false
		}
	}
	return true
}

// Sources asks one source after the other about what those before it did not know.
type Sources []Source

// Ask implements Source. It fails only when every source does.
func (s Sources) Ask(ctx context.Context, alerts []triage.Alert, now time.Time) ([]Answer, error) {
	answers := make([]Answer, len(alerts))
	var errs []error
	for _, source := range s {
		var open []triage.Alert
		var place []int
		for i, a := range alerts {
			if answers[i] == Unknown {
				open, place = append(open, a), append(place, i)
			}
		}
		if len(open) == 0 {
			break
		}
		got, err := source.Ask(ctx, open, now)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i, answer := range got {
			answers[place[i]] = answer
		}
	}
	if len(errs) > 0 && len(errs) == len(s) {
		return nil, errors.Join(errs...)
	}
	return answers, nil
}
