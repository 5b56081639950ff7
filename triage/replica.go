package triage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq"
)

const minuteOf = time.Minute

// replica is one server (or data-parallel rank) of the scope with its own series.
type replica struct {
	place  Place
	key    string
	values map[string][]float64 // Signal to grid values.
}

func (r replica) series(id string) []float64 { return r.values[id] }

// serves is a series that is there while the replica exports its engine's metrics; nil when none was read.
func (r replica) serves() []float64 {
	for _, id := range []string{"running", "waiting", "kv_usage", "generation_tokens", "prompt_tokens", "finished"} {
		if v := r.values[id]; v != nil {
			return v
		}
	}
	return nil
}

// readReplicas reads the per-replica view of the signals that have one. Up to MaxReplicas replicas are read; of a larger
// fleet those that stand out, chosen by the server, so that the number of queries and the bytes stay bounded.
func (e *Engine) readReplicas(ctx context.Context, log *queryLog, p *plan, o *observations) {
	if len(p.replicaKeys) == 0 {
		return
	}
	if p.rows == 1 {
		o.replicas = []replica{e.onlyReplica(p, o)}
		return
	}
	var only *labels.Matcher
	if n := promq.Max(present(o.series("targets"))); n > float64(e.opts.MaxReplicas) || math.IsNaN(n) &&
		promq.Max(present(o.series("serving"))) > float64(e.opts.MaxReplicas) {
		chosen := e.chooseReplicas(ctx, log, p, o)
		if len(chosen) == 0 {
			return
		}
		only = promq.AnyOf(p.replicaKeys[0], chosen)
	}
	type row struct {
		id     string
		matrix model.Matrix
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var rows []row
	for _, s := range e.kb.Signals {
		x := o.get(s.ID)
		if !s.Replica || !x.wasRead() || s.ID == "up" && o.noUp {
			continue
		}
		keys := p.replicaKeys
		if s.Scope == "target" {
			keys = []string{p.replicaKeys[0]}
		}
		wg.Go(func() {
			expr := e.expression(p, x.asked, keys)
			if only != nil {
				var err error
				if expr, err = promq.AddMatchers(expr, only); err != nil {
					return
				}
			}
			a := log.ranged(ctx, s.ID+"_by_replica", expr, p.grid)
			mu.Lock()
			defer mu.Unlock()
			o.replicaErrs[s.ID] = a.err
			if m, ok := a.value.(model.Matrix); ok {
				rows = append(rows, row{s.ID, m})
			}
		})
	}
	wg.Wait()
	byKey := map[string]*replica{}
	for _, r := range rows {
		for _, s := range r.matrix {
			place := Place{
				Instance: string(s.Metric["instance"]), Pod: string(s.Metric["pod"]), Engine: string(s.Metric["engine"]),
			}
			key := place.Instance + "\x00" + place.Pod + "\x00" + place.Engine
			x, ok := byKey[key]
			if !ok {
				x = &replica{place: place, key: key, values: map[string][]float64{}}
				byKey[key] = x
			}
			x.values[r.id] = streamOnGrid(s, p.grid)
		}
	}
	o.replicas = foldTargets(byKey)
}

// replicaFigures are what is computed by comparing replicas, with the signals that it compares.
var replicaFigures = map[string][]string{
	"replica_load_skew":    {"running", "waiting"},
	"replica_arrival_skew": {"first_tokens"},
	"replica_itl_skew":     {"itl_sum", "itl_count"},
	"replicas_idle":        {"generation_tokens"},
	"replicas_silent":      {"generation_tokens", "first_tokens"},
}

// replicaErr is why a figure that compares replicas cannot be computed: one of the signals could not be read replica by
// replica.
func (o *observations) replicaErr(id string) error {
	for _, s := range replicaFigures[id] {
		if err := o.replicaErrs[s]; err != nil {
			return err
		}
	}
	return nil
}

// onlyReplica is the replica of a scope that has just one: its series are the folded ones.
func (e *Engine) onlyReplica(p *plan, o *observations) replica {
	r := replica{place: p.sampled, key: p.sampled.Instance + "\x00" + p.sampled.Pod + "\x00" + p.sampled.Engine, values: map[string][]float64{}}
	for _, s := range e.kb.Signals {
		if v := o.series(s.ID); s.Replica && v != nil {
			r.values[s.ID] = v
		}
	}
	return r
}

// foldTargets gives each engine its target's series (up) and lists the replicas by key. A target that serves no engine
// stays as a row of its own: it is down.
func foldTargets(byKey map[string]*replica) []replica {
	var out []replica
	for _, x := range byKey {
		if x.serves() != nil {
			out = append(out, *x)
			continue
		}
		shared := false
		for _, y := range byKey {
			if y != x && y.place.Instance == x.place.Instance && y.place.Pod == x.place.Pod && y.serves() != nil {
				maps.Copy(y.values, x.values)
				shared = true
			}
		}
		if !shared {
			out = append(out, *x)
		}
	}
	slices.SortFunc(out, func(a, b replica) int { return cmp.Compare(a.key, b.key) })
	return out
}

// chooseReplicas asks the server which replicas of a large fleet stand out: the longest queues, the fullest caches, the
// steps that slowed down most, those that do not answer, and the idlest.
func (e *Engine) chooseReplicas(ctx context.Context, log *queryLog, p *plan, o *observations) []string {
	key := p.replicaKeys[0]
	late := promDuration(time.Duration(o.late.len()) * o.grid.step)
	before := promDuration(max(time.Duration(o.baseline.len())*o.grid.step, p.rate))
	back := promDuration(max(p.end.Sub(o.onset), time.Second))
	// A subquery without a step takes the server's rule interval, often a minute: too coarse for a short incident.
	step := promDuration(o.grid.step)
	var exprs []string
	rank := func(format, id string, args ...any) {
		x := o.get(id)
		if !x.wasRead() {
			return
		}
		s := x.asked
		s.Fold = "sum"
		args = append([]any{e.expression(p, s, []string{key})}, args...)
		exprs = append(exprs, fmt.Sprintf(format, args...))
	}
	rank("topk(4, avg_over_time((%s)[%s:%s]))", "waiting", late, step)
	rank("topk(3, avg_over_time((%s)[%s:%s]))", "kv_usage", late, step)
	rank("bottomk(3, avg_over_time((%s)[%s:%s]))", "running", late, step)
	rank("topk(3, avg_over_time((%s)[%s:%s]))", "running", late, step)
	rank("bottomk(4, %s)", "up")
	if sum, count := o.get("itl_sum"), o.get("itl_count"); sum.wasRead() && count.wasRead() {
		itl := fmt.Sprintf("(%s) / (%s)", e.expression(p, sum.asked, []string{key}), e.expression(p, count.asked, []string{key}))
		exprs = append(exprs, fmt.Sprintf("topk(4, avg_over_time((%s)[%s:%s]) / (avg_over_time((%s)[%s:%s] offset %s) > 0))",
			itl, late, step, itl, before, step, back))
	}
	found := map[string]bool{}
	for _, f := range p.focus {
		found[f] = key == "instance"
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, expr := range exprs {
		wg.Go(func() {
			v, ok := log.instant(ctx, "replicas", expr, p.end).value.(model.Vector)
			if !ok {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range v {
				if x := string(s.Metric[model.LabelName(key)]); x != "" {
					found[x] = true
				}
			}
		})
	}
	wg.Wait()
	var out []string
	for x, ok := range found {
		if ok {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	if limit := 2 * e.opts.MaxReplicas; len(out) > limit {
		out = out[:limit]
	}
	return out
}

// replicaLevel is the value of a replica's signal in a range, pooled for ratios.
func (o *observations) replicaLevel(r replica, id string, in promRange) float64 {
	switch id {
	case "itl":
		if r.series("itl_sum") == nil || r.series("itl_count") == nil {
			return over(mean(in.of(r.series("running"))), mean(in.of(r.series("generation_tokens"))))
		}
		return over(mean(in.of(r.series("itl_sum"))), mean(in.of(r.series("itl_count"))))
	case "ttft":
		return over(mean(in.of(r.series("ttft_sum"))), mean(in.of(r.series("first_tokens"))))
	case "abandoned":
		started := mean(in.of(r.series("first_tokens")))
		if !(started > 0.05) {
			return math.NaN()
		}
		growth := max(o.growth(r.series("running"), in), 0)
		return min(max((started-mean(in.of(r.series("finished")))-growth)/started, 0), 1)
	case "arrivals":
		// Flow balance: what starts or finishes falls when the replica drowns.
		return mean(in.of(r.series("finished"))) + max(o.growth(r.series("running"), in)+orZero(o.growth(r.series("waiting"), in)), 0)
	case "load":
		running, waiting := mean(in.of(r.series("running"))), mean(in.of(r.series("waiting")))
		if math.IsNaN(running) {
			return waiting // A lower bound.
		}
		return running + orZero(waiting)
	}
	return mean(in.of(r.series(id)))
}

// growth is how much a gauge grew each second over a range.
func (o *observations) growth(v []float64, in promRange) float64 {
	have := present(in.of(v))
	if len(have) < 2 {
		return math.NaN()
	}
	return (have[len(have)-1] - have[0]) / (float64(in.len()-1) * o.grid.step.Seconds())
}

// worst is the replica whose level is farthest above the median of the others, with that factor. Replicas that do not
// answer are left out: they say nothing.
func (o *observations) worst(id string, floor float64, in promRange) (r replica, factor float64) {
	type level struct {
		r replica
		v float64
	}
	var all []level
	for _, x := range o.replicas {
		if v := o.replicaLevel(x, id, in); !math.IsNaN(v) {
			all = append(all, level{x, v})
		}
	}
	if len(all) < 2 {
		return replica{}, math.NaN()
	}
	slices.SortStableFunc(all, func(a, b level) int { return cmp.Compare(b.v, a.v) })
	others := make([]float64, 0, len(all)-1)
	for _, x := range all[1:] {
		others = append(others, x.v)
	}
	return all[0].r, (all[0].v + floor) / (promq.Median(others) + floor)
}

func (o *observations) skew(id string) float64 {
	s := o.get(id)
	_, f := o.worst(id, s.sig.Floor, o.late)
	return f
}

func (o *observations) skewScalar(id string, floor float64) map[string]float64 {
	_, now := o.worst(id, floor, o.late)
	if math.IsNaN(now) {
		return nil
	}
	out := map[string]float64{"level": now}
	if o.baseline.len() > 0 {
		if _, before := o.worst(id, floor, o.baseline); !math.IsNaN(before) {
			out["base"], out["ratio"], out["delta"] = before, now/before, now-before
		}
	}
	return out
}

func replicaLoadSkew(_ *plan, o *observations) map[string]float64 { return o.skewScalar("load", 1) }
func replicaArrivalSkew(_ *plan, o *observations) map[string]float64 {
	return o.skewScalar("first_tokens", 0.1)
}

func replicaITLSkew(_ *plan, o *observations) map[string]float64 {
	return o.skewScalar("itl", o.get("itl").sig.Floor)
}

// placesOf names replicas for people, at most 20.
func placesOf(rs []replica, scopeModel string) []Place {
	out := make([]Place, 0, len(rs))
	for _, r := range rs[:min(len(rs), 20)] {
		p := r.place
		p.Model = scopeModel
		out = append(out, p)
	}
	return out
}
