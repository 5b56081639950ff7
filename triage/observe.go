package triage

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// observe is the second stage: it reads every signal that exists in the scope, in parallel and bounded, finds the onset
// and the windows in the data, then reads the replicas one by one, and computes what follows from both.
func (e *Engine) observe(ctx context.Context, log *queryLog, p *plan) *observations {
	o := &observations{grid: p.grid, all: map[string]*observation{}, onsets: map[string]int{}, replicaErrs: map[string]error{}, due: e.due(p)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, s := range e.kb.Signals {
		if !s.Queried() || s.Neighbour() || isQuantile(s) {
			continue
		}
		if s.ID == "serving" {
			s = p.byAnchor(s)
		}
		wg.Go(func() {
			x := e.read(ctx, log, p, s)
			mu.Lock()
			defer mu.Unlock()
			o.all[s.ID] = x
		})
	}
	wg.Go(func() {
		after, err := e.configAt(ctx, log, p, p.end)
		mu.Lock()
		defer mu.Unlock()
		o.configAfter, o.pool, o.configErr = after, poolOf(after), err
	})
	wg.Go(func() { o.firing = e.readFiring(ctx, log, p) })
	wg.Go(func() {
		e.readNeighbours(ctx, log, p, func(id string, x *observation) {
			mu.Lock()
			defer mu.Unlock()
			o.all[id] = x
		})
	})
	wg.Wait()

	e.stopped(ctx, log, p, o, "serving", "up", "targets", "start_time")
	o.standInForUp()
	o.findRestarts(p)
	e.stopped(ctx, log, p, o, slices.Sorted(maps.Keys(o.all))...)
	e.askSpares(ctx, log, p, o)
	e.substitute(o)
	o.holdRunning(p)
	e.ratios(o)
	e.deriveSeries(p, o)
	o.findWindows(p, o.firing)
	wg.Go(func() { e.readReplicas(ctx, log, p, o) })
	wg.Go(func() {
		before, err := e.configAt(ctx, log, p, o.time(max(o.onsetIdx-1, 0)))
		o.configs, o.configBeforeErr = compareConfigs(before, o.configAfter), err
	})
	var quantiles map[string]*observation
	wg.Go(func() { quantiles = e.readQuantiles(ctx, log, p, o) })
	wg.Go(func() { e.readLora(ctx, log, p, o) })
	wg.Go(func() { e.readAbsence(ctx, log, p, o) })
	wg.Wait()
	maps.Copy(o.all, quantiles)
	o.standInReplicas()
	e.substituteReplicas(o)
	e.deriveScalars(p, o)
	return o
}

// read asks for one signal over the whole grid, unless others tell what it does.
func (e *Engine) read(ctx context.Context, log *queryLog, p *plan, s kb.Signal) *observation {
	if e.spared(p, s) {
		return &observation{sig: s, state: Absent, why: "no such metric in this scope"}
	}
	return e.ask(ctx, log, p, s)
}

// ask asks for one signal over the whole grid.
func (e *Engine) ask(ctx context.Context, log *queryLog, p *plan, s kb.Signal) *observation {
	x := &observation{sig: s, asked: s, expr: e.expression(p, s, nil)}
	if x.expr == "" && s.Scope == "target" && p.unlabelled != nil {
		x.state, x.why = Failed, "which targets these are could not be asked: "+failure(p.unlabelled)
		return x
	}
	if x.expr == "" {
		x.state, x.why = Absent, "no such metric in this scope"
		return x
	}
	_, _, x.estimate = e.existing(p, s)
	e.fetch(ctx, log, p, x)
	if x.state == Failed || x.state == Stale {
		if y := e.readFallback(ctx, log, p, x, -1, func() bool { return true }); y != nil {
			return y
		}
	}
	return x
}

// readFallback asks for the other metrics that tell what a signal does, while there is room for more requests, and takes
// the first with values after a point of the grid; nil when none has any.
func (e *Engine) readFallback(ctx context.Context, log *queryLog, p *plan, x *observation, after int, room func() bool) *observation {
	for i := 0; i < len(x.sig.Fallback) && p.discovery == nil && ctx.Err() == nil; i++ {
		other := x.sig
		other.Names, other.Read, other.Fallback = x.sig.Fallback[i].Names, x.sig.Fallback[i].Read, nil
		y := &observation{sig: x.sig, asked: other, expr: e.expression(p, other, nil), estimate: x.sig.Fallback[i].Estimate}
		if y.expr == "" || y.expr == x.expr || !room() {
			continue
		}
		if e.fetch(ctx, log, p, y); y.state == Present && lastIndex(y.values) > after {
			return y
		}
	}
	return nil
}

// fetch runs the query of an observation and sets its state.
func (e *Engine) fetch(ctx context.Context, log *queryLog, p *plan, x *observation) {
	a := log.ranged(ctx, x.sig.ID, x.expr, p.grid)
	if a.err != nil {
		x.state, x.why = Failed, failure(a.err)
		return
	}
	x.values = onGrid(a.value, p.grid)
	have := present(x.values)
	switch {
	case len(have) == 0 && x.sig.Scope == "target":
		x.state, x.why = Absent, "no such metric for the targets of this scope"
	case len(have) == 0 && x.sig.Optional:
		// The name is there, the label value that the signal is about is not: this server does not count it.
		x.state, x.why = Absent, "no such series in this scope"
	case len(have) == 0:
		x.state, x.why = Stale, "exported, but without a sample in the time looked at"
	default:
		x.state = Present
	}
	if x.state != Present {
		x.values = nil
	}
}

// failure words a query error for people.
func failure(err error) string {
	switch {
	case promq.IsTimeout(err):
		return "the query timed out"
	case promq.IsTooExpensive(err):
		return "Prometheus refused the query as too expensive"
	case promq.IsUnauthorized(err):
		return "Prometheus refused the credentials"
	case promq.IsUnavailable(err):
		return "Prometheus could not be reached"
	case promq.IsCanceled(err):
		return "the query was cancelled"
	case promq.IsBadQuery(err):
		return "Prometheus refused the query"
	}
	return "the query failed"
}

// onGrid lays the only series of a matrix on the grid.
func onGrid(v model.Value, g grid) []float64 {
	m, ok := v.(model.Matrix)
	if !ok || len(m) == 0 {
		return newSeries(g.points())
	}
	return streamOnGrid(m[0], g)
}

func streamOnGrid(s *model.SampleStream, g grid) []float64 {
	out := newSeries(g.points())
	for _, x := range s.Values {
		v := float64(x.Value)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		// Servers may align to the step: nearest point.
		i := int(math.Round(float64(x.Timestamp.Time().Sub(g.start)) / float64(g.step)))
		if i >= 0 && i < len(out) {
			out[i] = v
		}
	}
	return out
}

// readFiring reads when any alert of this scope fired: such times are no baseline.
func (e *Engine) readFiring(ctx context.Context, log *queryLog, p *plan) []float64 {
	if p.in.Scope.Model == "" {
		return nil
	}
	expr, err := promq.AddMatchers(`count(ALERTS{alertstate="firing"})`, promq.Equal("model_name", p.in.Scope.Model))
	if err != nil {
		return nil
	}
	return onGrid(log.ranged(ctx, "alerts_firing", expr, p.grid).value, p.grid)
}

// configLabels are the fields of CacheConfig that change how a server behaves; target labels and fields that differ from
// process to process are left out (vLLM config/cache.py, metrics_info).
var configLabels = []string{
	"block_size", "cache_dtype", "cpu_offload_gb", "enable_prefix_caching", "gpu_memory_utilization", "kv_cache_layout",
	"kv_cache_max_concurrency", "kv_cache_memory_bytes", "kv_cache_size_tokens", "kv_offloading_backend",
	"kv_offloading_size", "num_gpu_blocks", "num_gpu_blocks_override", "prefix_caching_hash_algo", "sliding_window",
	"swap_space",
}

// configChange holds how the servers' cache configuration differs from before.
type configChange struct {
	known   bool
	changed []fieldChange
}

type fieldChange struct{ field, before, after string }

// kvPool is the size of the KV cache.
type kvPool struct {
	// tokens is how many tokens fit, summed over replicas; 0 when unknown.
	tokens float64
	// perReplica is the smallest replica's.
	perReplica float64
	blockSize  float64
	blocks     float64
}

// configNames matches the gauge that carries the configuration, in vLLM's and in Ray's spelling.
const configNames = `{__name__=~"vllm:cache_config_info|vllm_cache_config_info|ray_vllm_cache_config_info"}`

// configAt reads the label sets of vllm:cache_config_info of the scope at one moment, most frequent first.
func (e *Engine) configAt(ctx context.Context, log *queryLog, p *plan, t time.Time) (model.Vector, error) {
	keys := p.targetKeys
	if len(keys) == 0 || p.discovery != nil {
		return nil, nil
	}
	expr := fmt.Sprintf("topk(8, count by (%s) (last_over_time(%s[%s]) and on (%s) last_over_time(%s[%s])))",
		joinNames(configLabels), configNames, promDuration(time.Minute+4*p.scrape), joinNames(keys), e.selector(p.anchor, p.scope),
		promDuration(e.opts.LookBack))
	a := log.instant(ctx, "config", expr, t)
	if a.err != nil {
		return nil, a.err
	}
	v, ok := a.value.(model.Vector)
	if !ok {
		return nil, nil
	}
	slices.SortFunc(v, func(a, b *model.Sample) int {
		if a.Value != b.Value {
			return int(b.Value - a.Value)
		}
		if a.Metric.Before(b.Metric) {
			return -1
		}
		return 1
	})
	return v, nil
}

// compareConfigs lists the fields that differ.
func compareConfigs(before, after model.Vector) configChange {
	var c configChange
	if len(before) == 0 || len(after) == 0 {
		return c
	}
	c.known = true
	for _, l := range configLabels {
		if b, a := valuesOf(before, l), valuesOf(after, l); b != a {
			c.changed = append(c.changed, fieldChange{l, b, a})
		}
	}
	return c
}

func joinNames(names []string) string { return strings.Join(names, ", ") }

// valuesOf lists the distinct values of a label, sorted, as one string.
func valuesOf(v model.Vector, label string) string {
	var out []string
	for _, s := range v {
		if x := string(s.Metric[model.LabelName(label)]); !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "|")
}

// poolOf adds up the KV cache over replicas. num_gpu_blocks × block_size is the pool of one row; kv_cache_size_tokens (from
// 0.24.0) is right for hybrid models too.
func poolOf(v model.Vector) kvPool {
	var p kvPool
	for _, s := range v {
		blocks, size := labelNumber(s.Metric, "num_gpu_blocks"), labelNumber(s.Metric, "block_size")
		tokens := labelNumber(s.Metric, "kv_cache_size_tokens")
		if tokens == 0 {
			tokens = blocks * size
		}
		if tokens == 0 {
			return kvPool{}
		}
		p.tokens += tokens * float64(s.Value)
		if p.perReplica == 0 || tokens < p.perReplica {
			p.perReplica, p.blocks, p.blockSize = tokens, blocks, size
		}
	}
	return p
}

func labelNumber(m model.Metric, label string) float64 {
	var f float64
	if _, err := fmt.Sscanf(string(m[model.LabelName(label)]), "%g", &f); err != nil {
		return 0
	}
	return f
}
