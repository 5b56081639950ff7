package triage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"vllm-triage/promq"
)

// absence is what was found out about a scope without fresh vLLM metrics.
type absence struct {
	asked bool
	// fresh says that Prometheus has samples of something at the end; stopped, that it has none although it had before. Where
	// the targets' own series are not kept at all, neither is known.
	fresh, stopped bool
	// err is why nobody knows; nil when the question was answered or not asked.
	err error
	// models are the names of models that do have data, at most five, when the one asked about has none.
	models []string
	// http counts targets of the scope that count HTTP requests and export nothing of the engine.
	http float64
}

// coreSignals are what every vLLM since 0.4 exports unless its statistics are off.
var coreSignals = []string{
	"running", "waiting", "kv_usage_max", "prompt_tokens", "generation_tokens", "finished", "first_tokens", "itl_count",
	"e2e_count",
}

// aboutGaps are the signals whose subject is that data is missing.
var aboutGaps = []string{"core_missing", "data_age", "scrapes_stopped"}

// stoppedWithin is how far back it is looked for targets that are not there any more.
const stoppedWithin = 2 * time.Hour

// readAbsence asks, only when the scope has no sample at the end, whether Prometheus has samples of anything there: if not
// it stopped or lags behind. When the scope has none of late, it also asks whether the servers answer without the engine's
// metrics (--disable-log-stats, or an engine that is not up yet).
func (e *Engine) readAbsence(ctx context.Context, log *queryLog, p *plan, o *observations) {
	serving := o.series("serving")
	if p.discovery != nil || !math.IsNaN(lastOf(serving)) {
		return
	}
	o.absence.asked = true
	up := log.instant(ctx, "any_target", "count(up)", p.end)
	o.absence.err, o.absence.fresh = up.err, !up.empty()
	if up.err == nil && up.empty() {
		before := log.instant(ctx, "any_target_before", "count(present_over_time(up["+promDuration(stoppedWithin)+"]))", p.end)
		o.absence.err, o.absence.stopped = before.err, !before.empty()
	}
	if len(present(o.late.of(serving))) > 0 {
		return
	}
	if len(p.names) == 0 {
		seen := log.instant(ctx, "other_models", "topk(5, count by (model_name) ("+e.selector(p.anchor, Scope{})+"))", p.end)
		if v, ok := seen.value.(model.Vector); ok {
			for _, s := range v {
				if m := string(s.Metric["model_name"]); m != "" {
					o.absence.models = append(o.absence.models, m)
				}
			}
			slices.Sort(o.absence.models)
		}
	}
	asked := p.in.Scope
	asked.Model = ""
	if asked.Key() == "" {
		return
	}
	http := log.instant(ctx, "http_only", fmt.Sprintf("count(count by (instance, pod) (last_over_time(%s[%s])))",
		e.selector("http_requests_total", asked), promDuration(5*time.Minute)), p.end)
	if v, ok := http.value.(model.Vector); ok && len(v) > 0 {
		o.absence.http = float64(v[0].Value)
	}
}

// coreMissing is the share of the core signals, those left out whose query failed, without a sample of late. It is unknown
// when most failed, and while the replicas are known to be down, which is the better explanation.
func coreMissing(p *plan, o *observations) map[string]float64 {
	if p.discovery != nil {
		return nil
	}
	if gone := replicasGone(p, o); gone != nil && gone["level"] >= 1 && len(present(o.late.of(o.series("serving")))) == 0 {
		return nil
	}
	missing, read := 0.0, 0.0
	for _, id := range coreSignals {
		x := o.get(id)
		if x.state == Failed {
			continue
		}
		read++
		if x.state != Present || len(present(o.late.of(x.values))) == 0 {
			missing++
		}
	}
	if 2*read < float64(len(coreSignals)) {
		return nil
	}
	out := map[string]float64{"level": missing / read, "base": 0}
	if o.absence.http > 0 {
		out["max"] = o.absence.http
	}
	return out
}

// dataAge is how old the newest sample of the scope is.
func dataAge(p *plan, o *observations) map[string]float64 {
	serving := o.series("serving")
	last := lastIndex(serving)
	if last < 0 {
		return nil
	}
	age := o.grid.end.Sub(o.time(last)).Seconds()
	if !p.edge.IsZero() {
		// An instant query looks back five minutes; the raw samples do not.
		age = max(age, p.end.Sub(p.edge).Seconds())
	}
	if gone := replicasGone(p, o); gone != nil && gone["level"] >= 1 {
		return nil
	}
	return map[string]float64{"level": max(age, 0), "base": p.scrape.Seconds()}
}

// upSilent says that a target without a sample at the end says nothing about its replica: no target has any, or nobody knows
// whether others have, because the question failed.
func (o *observations) upSilent() bool {
	up := o.series("up")
	return math.IsNaN(lastOf(up)) && (o.absence.err != nil || o.absence.stopped && promq.Max(present(up)) > 0)
}

// scrapesStopped is 1 when Prometheus has no fresh sample of anything. max is 1 only where that is known.
func scrapesStopped(p *plan, o *observations) map[string]float64 {
	if p.discovery != nil || o.absence.err != nil {
		return nil
	}
	switch {
	case o.absence.stopped:
		return map[string]float64{"level": 1, "max": 1, "base": 0}
	case o.absence.asked && !o.absence.fresh:
		return map[string]float64{"max": 0, "base": 0} // Without targets' own series it is not known.
	}
	return map[string]float64{"level": 0, "max": 0, "base": 0}
}

func lastOf(v []float64) float64 { return at(v, len(v)-1) }

// leastRise is the share by which the load of those left must be expected to rise for its absence to say something.
const leastRise = 0.2

// beside is how much time before and after a replica went is compared: traffic drifts by more than a replica's share
// within an hour.
const beside = 2 * time.Minute

// takenOver asks whether the replicas that still answer carry the load of those that do not. level is how much of the
// expected rise per replica is seen: 1 when requests moved over, 0 when every replica gets as many as before. Then the
// missing one most likely serves on and only its scrape fails (field case FC-73).
func takenOver(p *plan, o *observations) map[string]float64 {
	gone := replicasGone(p, o)
	if gone == nil || gone["level"] < 1 || o.baseline.len() == 0 || o.lasts(o.window) < p.rate+2*p.scrape {
		return nil
	}
	up := o.series("up")
	went := tailFrom(len(up), func(i int) bool { return !(up[i] > orZero(lastOf(up))) })
	if went == 0 {
		return nil
	}
	earlier := promRange{max(went-o.points(beside), o.baseline.from), went}
	later := promRange{went + o.points(p.rate), min(went+o.points(p.rate+beside), len(up))}
	var now, before, left float64
	for _, r := range o.replicas {
		b := o.replicaLevel(r, "arrivals", earlier)
		if !(b > 0) {
			continue
		}
		if v := lastOf(r.series("up")); !(v > 0) {
			continue
		}
		if v := o.replicaLevel(r, "arrivals", later); !math.IsNaN(v) {
			now, before, left = now+v, before+b, left+1
		}
	}
	if left == 0 || before == 0 {
		return nil
	}
	rise := gone["level"] / left
	if rise < leastRise {
		return nil // Lost in the ups and downs of traffic.
	}
	return map[string]float64{"level": (now/before - 1) / rise, "base": 0}
}
