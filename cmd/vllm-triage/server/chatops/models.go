package chatops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.uber.org/zap"

	"vllm-triage/promq"
)

// Model is a model that is served somewhere.
type Model struct {
	Name      string
	Namespace string
	Replicas  int // 0: not known.
}

// ModelSource knows which models there are. *PrometheusModels is one.
type ModelSource interface {
	// Models lists the models that were served at a time, sorted by name and namespace.
	Models(ctx context.Context, at time.Time) ([]Model, error)
}

// Querier asks a Prometheus. *promq.Client is one.
type Querier interface {
	Query(ctx context.Context, expr string, at time.Time) (promq.Result, error)
}

// PrometheusModels reads the models out of the series that vLLM has exported for each of them since its first release, in
// the spelling of vLLM and in Ray's.
type PrometheusModels struct {
	q     Querier
	query string
}

// modelsQuery finds a model that was scraped within the last minutes, so that a restart does not hide it.
const modelsQuery = `count by (model_name, namespace) (count by (model_name, namespace, instance) (
	last_over_time({__name__=~"vllm:num_requests_running|vllm_num_requests_running|ray_vllm_num_requests_running"}[10m])))`

// NewPrometheusModels returns a source that adds matchers to its query, as the engine does to its own.
func NewPrometheusModels(q Querier, matchers ...*labels.Matcher) (*PrometheusModels, error) {
	query, err := promq.AddMatchers(modelsQuery, matchers...)
	if err != nil {
		return nil, fmt.Errorf("build query for models: %w", err)
	}
	return &PrometheusModels{q: q, query: query}, nil
}

// Models implements ModelSource.
func (p *PrometheusModels) Models(ctx context.Context, at time.Time) ([]Model, error) {
	res, err := p.q.Query(ctx, p.query, at)
	if err != nil {
		return nil, err
	}
	vector, ok := res.Value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("list models: the answer is a %T, want a vector", res.Value)
	}
	var out []Model
	for _, x := range vector {
		if name := string(x.Metric["model_name"]); name != "" {
			out = append(out, Model{Name: name, Namespace: string(x.Metric["namespace"]), Replicas: int(x.Value)})
		}
	}
	slices.SortFunc(out, compareModels)
	return out, nil
}

func compareModels(a, b Model) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

// modelsFresh is how long a list of models counts.
const modelsFresh = time.Minute

// modelsTime is what listing models may take before the question goes on without.
const modelsTime = 8 * time.Second

// known lists the models of a time. complete is false when Prometheus could not be asked: then it has the models of
// incidents that are kept.
func (s *Service) known(ctx context.Context, set Settings, at time.Time) (models []Model, complete bool) {
	now := s.now()
	key := at.Truncate(modelsFresh).UTC().Format(time.RFC3339)
	if set.Models != nil {
		if models, fresh := s.models.get(key, now); fresh {
			return models, true
		}
		asking, cancel := context.WithTimeout(ctx, modelsTime)
		models, err := set.Models.Models(asking, at)
		cancel()
		if err == nil {
			s.models.put(key, models, now.Add(modelsFresh))
			return models, true
		}
		s.log.Warn("models not listed", zap.Error(err))
	}
	names, err := s.c.Store.Models(ctx)
	if err != nil {
		s.log.Warn("models of incidents not listed", zap.Error(err))
	}
	for _, n := range names {
		models = append(models, Model{Name: n})
	}
	return models, false
}

// names lists the different names of models, sorted.
func names(models []Model) []string {
	out := make([]string, 0, len(models))
	for _, m := range models {
		out = append(out, m.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pick finds the model that a name means: the name itself, in other letters, or the only one that holds it. Otherwise it
// returns those that may have been meant.
func pick(name string, all []string) (found string, near []string) {
	if slices.Contains(all, name) {
		return name, nil
	}
	low := strings.ToLower(name)
	var same, tail, inside []string
	for _, n := range all {
		l := strings.ToLower(n)
		switch {
		case l == low:
			same = append(same, n)
		case strings.HasSuffix(l, "/"+low): // The name without its owner.
			tail = append(tail, n)
		case len(low) >= 3 && strings.Contains(l, low):
			inside = append(inside, n)
		}
	}
	for _, some := range [][]string{same, tail, inside} {
		switch {
		case len(some) == 1:
			return some[0], nil
		case len(some) > 1:
			return "", some
		}
	}
	return "", nearModels(name, all)
}

// nearModels lists models whose name, or the part behind the owner, is a few typing errors away.
func nearModels(name string, all []string) []string {
	if out := near(name, all); len(out) > 0 {
		return out
	}
	tails, full := make([]string, 0, len(all)), map[string]string{}
	for _, n := range all {
		_, tail, ok := strings.Cut(n, "/")
		if ok {
			tails, full[tail] = append(tails, tail), n
		}
	}
	var out []string
	for _, t := range near(name, tails) {
		out = append(out, full[t])
	}
	return out
}
