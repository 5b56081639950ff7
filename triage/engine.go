package triage

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// Querier asks a Prometheus. *promq.Client is one.
type Querier interface {
	Query(ctx context.Context, expr string, at time.Time) (promq.Result, error)
	QueryRange(ctx context.Context, expr string, start, end time.Time, step time.Duration) (promq.Result, error)
	LabelValues(
		ctx context.Context, label string, matchers []string, start, end time.Time,
	) (values, warnings []string, err error)
}

// Options are the engine's settings. The zero value takes the defaults.
type Options struct {
	// LookBack is how long before the alert's condition began data is read; default 1 h.
	LookBack time.Duration
	// MaxWindow caps the incident window; default 6 h.
	MaxWindow time.Duration
	// MaxReplicas is how many replicas are read one by one; default 16. Others are in the folded figures.
	MaxReplicas int
	// Concurrency is how many queries run at once; default 8.
	Concurrency int
	// Timeout bounds one triage, queries included; default 60 s.
	Timeout time.Duration
	// Matchers are added to every selector, for example {cluster="eu-1"}.
	Matchers []*labels.Matcher
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.LookBack, time.Hour)
	def(&o.MaxWindow, 6*time.Hour)
	def(&o.Timeout, time.Minute)
	if o.MaxReplicas <= 0 {
		o.MaxReplicas = 16
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 8
	}
	return o
}

// Engine finds causes. It is safe for concurrent use.
type Engine struct {
	kb   *kb.Base
	q    Querier
	opts Options
}

// NewEngine returns an engine that asks q and knows what base says.
func NewEngine(base *kb.Base, q Querier, opts Options) *Engine {
	return &Engine{kb: base, q: q, opts: opts.withDefaults()}
}

// Triage answers what binds the scope of the incident and what changed, as of in.Now. It fails only when ctx ends or the
// knowledge does not fit; a Prometheus that is down, slow or partial gives an inconclusive report that says so.
func (e *Engine) Triage(ctx context.Context, in Incident) (Report, error) {
	began := time.Now() // For the duration only: the answer depends on in.Now.
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()

	log := &queryLog{q: e.q, slots: make(chan struct{}, e.opts.Concurrency)}
	p := stage(ctx, "plan", func(ctx context.Context) *plan { return e.plan(ctx, log, in) })
	o := stage(ctx, "observe", func(ctx context.Context) *observations { return e.observe(ctx, log, p) })
	log.tally(p)
	w := stage(ctx, "weigh", func(context.Context) *weighed {
		w := e.weigh(p, o)
		if own, judged := e.focus(p, o, w); own != nil {
			o, w = own, judged
		}
		return w
	})
	if err := context.Cause(ctx); err != nil && ctx.Err() == context.Canceled {
		return Report{}, err
	}
	r := stage(ctx, "report", func(context.Context) Report { return e.report(p, o, w) })
	log.fill(&r)
	r.DurationMS = time.Since(began).Milliseconds()
	return r, nil
}
