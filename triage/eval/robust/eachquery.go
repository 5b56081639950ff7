package robust

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"

	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

// eachQuery lets every single query of a triage fail in turn.
var eachQuery = Variant{Group: groupServer, Name: "each query alone fails", Blind: true}

// failEachQuery asks about the last alert of each recording as many times as there are queries. Answers are read once.
func failEachQuery(
	ctx context.Context, base *kb.Base, cases []eval.Case, was map[string]eval.Outcome, opts eval.Options,
) (Row, eval.Result) {
	row := Row{Group: eachQuery.Group, Name: eachQuery.Name}
	var all eval.Result
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(opts.Workers, runtime.GOMAXPROCS(0)))
	for i, c := range cases {
		if i+1 < len(cases) && cases[i+1].Recording == c.Recording {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			queries, res := failing(ctx, base, eachQuery.Apply([]eval.Case{c})[0], opts)
			mu.Lock()
			defer mu.Unlock()
			for j, o := range res.Outcomes {
				v := eachQuery
				v.Detail = queries[j]
				row.add(v, o, was[key(c)])
				res.Outcomes[j].Report = triage.Report{}
			}
			all.Outcomes = append(all.Outcomes, res.Outcomes...)
		})
	}
	wg.Wait()
	slices.SortStableFunc(row.Failures, func(a, b Failure) int {
		return strings.Compare(a.Outcome.Recording+a.Detail, b.Outcome.Recording+b.Detail)
	})
	slices.SortStableFunc(all.Outcomes, func(a, b eval.Outcome) int { return strings.Compare(a.Recording, b.Recording) })
	return row, all
}

// failing asks one question again and again, each time without the answer to another query.
func failing(ctx context.Context, base *kb.Base, c eval.Case, opts eval.Options) (queries []string, res eval.Result) {
	var memo *eval.Memo
	whole, err := eval.Ask(ctx, base, c, eval.Options{Engine: opts.Engine, Querier: func(_ int, next triage.Querier) triage.Querier {
		memo = eval.NewMemo(next)
		return memo
	}})
	if err != nil {
		return nil, eval.Result{}
	}
	for _, q := range whole.QueryLog {
		expr := q.Query
		if strings.HasPrefix(expr, discovery) {
			expr = discovery
		}
		if !slices.Contains(queries, expr) {
			queries = append(queries, expr)
		}
	}
	again := slices.Repeat([]eval.Case{c}, len(queries))
	return queries, eval.Run(ctx, base, again, eval.Options{
		Engine: opts.Engine, Workers: 1, // Answers are shared, and an engine may sort them.
		Querier: func(i int, _ triage.Querier) triage.Querier {
			return &meddling{next: memo, fails: func(expr string) bool { return expr == queries[i] }}
		},
	})
}
