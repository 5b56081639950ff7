package robust

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq"
	"vllm-triage/promq/memstore"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
)

// servers lets the Prometheus fail, warn or lag.
func servers() []Variant {
	out := []Variant{
		{Group: groupServer, Name: "every answer with a warning", Querier: func(next triage.Querier) triage.Querier {
			return &meddling{next: next, after: func(res *promq.Result) {
				res.Warnings = append(res.Warnings, "some storage nodes did not respond")
			}}
		}},
		{Group: groupServer, Name: "data ends an hour before the question", Gone: true, Case: func(c eval.Case) (eval.Case, bool) {
			return askLater(c, time.Hour, 0), true
		}},
		{
			Group: groupServer, Name: "this model's data ends an hour before, other targets go on", Gone: true, Data: withBystander,
			Case: func(c eval.Case) (eval.Case, bool) {
				c.Also = append(slices.Clone(c.Also), "replica_down") // All targets are gone from service discovery.
				return askLater(c, time.Hour, 0), true
			},
		},
		{Group: groupServer, Name: "alert starts an hour after the data ends", Gone: true, Case: func(c eval.Case) (eval.Case, bool) {
			return askLater(c, time.Hour, time.Hour), c.Payload != nil
		}},
		{Group: groupServer, Name: "every query fails", Gone: true, Querier: func(next triage.Querier) triage.Querier {
			return &meddling{next: next, fails: func(string) bool { return true }}
		}},
	}
	for seed := range 4 {
		out = append(out, Variant{
			Group: groupServer, Name: "10 % of the queries fail", Detail: "seed " + string(rune('0'+seed)), Blind: true,
			Querier: func(next triage.Querier) triage.Querier {
				return &meddling{next: next, fails: unlucky(0.1, byte(seed))} //nolint:gosec // Below 4.
			},
		})
	}
	return out
}

// withBystander adds a target of another kind that is scraped on.
func withBystander(r *eval.Recording) *memstore.Store {
	first, last := r.Data.Bounds()
	one := memstore.Series{Labels: labels.FromStrings("__name__", "up", "job", "node", "instance", "10.42.9.9:9100")}
	for t := first; t.Before(last.Add(2 * time.Hour)); t = t.Add(3 * tick) {
		one.Samples = append(one.Samples, memstore.Sample{At: t.UnixMilli(), Value: 1})
	}
	return r.Data.Store().Merge(memstore.New([]memstore.Series{one}))
}

// errInjected is what an injected failure says.
var errInjected = errors.New("injected failure")

// meddling stands between the engine and a server.
type meddling struct {
	next  triage.Querier
	fails func(expr string) bool
	after func(*promq.Result)
}

func (m *meddling) Query(ctx context.Context, expr string, at time.Time) (promq.Result, error) {
	if m.fails != nil && m.fails(expr) {
		return promq.Result{}, errInjected
	}
	res, err := m.next.Query(ctx, expr, at)
	return m.done(res), err
}

func (m *meddling) QueryRange(ctx context.Context, expr string, start, end time.Time, step time.Duration) (promq.Result, error) {
	if m.fails != nil && m.fails(expr) {
		return promq.Result{}, errInjected
	}
	res, err := m.next.QueryRange(ctx, expr, start, end, step)
	return m.done(res), err
}

func (m *meddling) LabelValues(
	ctx context.Context, label string, matchers []string, start, end time.Time,
) (values, warnings []string, err error) {
	if m.fails != nil && m.fails(discovery) {
		return nil, nil, errInjected
	}
	values, warnings, err = m.next.LabelValues(ctx, label, matchers, start, end)
	return values, m.done(promq.Result{Warnings: warnings}).Warnings, err
}

func (m *meddling) done(res promq.Result) promq.Result {
	if m.after != nil {
		m.after(&res)
	}
	return res
}

// discovery stands for the request for label values, which has no expression.
const discovery = "label values"

// unlucky chooses a share of the expressions, the same in every run.
func unlucky(share float64, seed byte) func(string) bool {
	return func(expr string) bool {
		h := fnv.New32a()
		h.Write([]byte{seed})
		h.Write([]byte(expr))
		return float64(h.Sum32()%1000) < share*1000
	}
}
