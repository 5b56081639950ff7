package eval

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"vllm-triage/promq"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
)

// Options say how cases are run. The zero value is the engine as shipped.
type Options struct {
	// Engine are the engine's own settings.
	Engine triage.Options
	// Workers is how many cases run at once; default: the CPUs there are.
	Workers int
	// Transport, if set, stands between the client and a case's data: it sees every request and may change any answer.
	Transport func(c Case, next http.RoundTripper) http.RoundTripper
	// Querier, if set, stands between the engine and the client.
	Querier func(i int, next triage.Querier) triage.Querier
}

// Ask runs the engine on one case, as of the moment of the question.
func Ask(ctx context.Context, base *kb.Base, c Case, opts Options) (triage.Report, error) {
	return ask(ctx, base, 0, c, opts)
}

func ask(ctx context.Context, base *kb.Base, i int, c Case, opts Options) (triage.Report, error) {
	rt := c.Data.RoundTripper(c.Incident.Now)
	if opts.Transport != nil {
		rt = opts.Transport(c, rt)
	}
	client, err := promq.NewClient(promq.Config{URL: "http://recording.invalid", RoundTripper: rt})
	if err != nil {
		return triage.Report{}, err
	}
	var q triage.Querier = client
	if opts.Querier != nil {
		q = opts.Querier(i, client)
	}
	return triage.NewEngine(base, q, opts.Engine).Triage(ctx, c.Incident)
}

// Run asks all cases and scores the answers. A panic or an error of the engine is an outcome, not an end of the run.
func Run(ctx context.Context, base *kb.Base, cases []Case, opts Options) Result {
	outcomes := make([]Outcome, len(cases))
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, max(len(cases), 1)) {
		wg.Go(func() {
			for i := range next {
				outcomes[i] = outcome(ctx, base, i, cases[i], opts)
			}
		})
	}
	for i := range cases {
		next <- i
	}
	close(next)
	wg.Wait()
	return Summarise(outcomes, len(base.OnAxis(kb.Bottleneck)))
}

func outcome(ctx context.Context, base *kb.Base, i int, c Case, opts Options) (o Outcome) {
	began := time.Now()
	defer func() {
		if r := recover(); r != nil {
			o = failed(c, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
		o.Seconds = time.Since(began).Seconds()
	}()
	rep, err := ask(ctx, base, i, c, opts)
	if err != nil {
		return failed(c, err.Error())
	}
	return judge(c, rep)
}
