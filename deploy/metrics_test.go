package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/cmd/vllm-triage/server/reload"
	"vllm-triage/triage/store"
)

// exported maps each metric name that the service exports to the values of its labels, as of its start.
type exported map[string][]map[string]string

// ofService gathers what a service exports that has just started.
func ofService(t *testing.T) exported {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "triage.db"), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	server.NewMetrics(registry, "test")
	registry.MustRegister(server.NewStoreCollector(st, zap.NewNop()))
	reload.New(reload.Options{Paths: func() []string { return nil }, Log: zap.NewNop(), Registry: registry})
	families, err := registry.Gather()
	require.NoError(t, err)
	all := exported{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			set := map[string]string{}
			for _, pair := range metric.GetLabel() {
				set[pair.GetName()] = pair.GetValue()
			}
			names := []string{family.GetName()}
			if metric.GetHistogram() != nil {
				names = []string{family.GetName() + "_bucket", family.GetName() + "_sum", family.GetName() + "_count"}
			}
			for _, name := range names {
				all[name] = append(all[name], set)
			}
		}
	}
	return all
}

// ofTarget are the labels that Prometheus adds when it scrapes, and le, which belongs to the buckets.
var ofTarget = []string{model.MetricNameLabel, "job", "instance", "namespace", "le"}

// check fails for a name that the service does not export, and for a matcher that none of its series satisfies.
func (e exported) check(t *testing.T, where, query string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	require.NoError(t, err, "%s: %s", where, query)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		series, known := e[selector.Name]
		require.True(t, known, "%s: the service exports no %s", where, selector.Name)
		for _, m := range selector.LabelMatchers {
			if slices.Contains(ofTarget, m.Name) {
				continue
			}
			found := false
			for _, set := range series {
				found = found || m.Matches(set[m.Name])
			}
			require.True(t, found, "%s: no series of %s has %s", where, selector.Name, m)
		}
		return nil
	})
}

// TestRulesNameMetricsOfTheService: a renamed metric must not silence an alert.
func TestRulesNameMetricsOfTheService(t *testing.T) {
	t.Parallel()
	service := ofService(t)
	for name, r := range alerts(t, "prometheus/rules/vllm-triage.yml") {
		if name != "VLLMTriageHeartbeat" {
			service.check(t, name, r.Expr)
		}
	}
}

// dashboard is the part of a Grafana dashboard that holds queries.
type dashboard struct {
	UID    string `json:"uid"`
	Panels []struct {
		ID      int    `json:"id"`
		Title   string `json:"title"`
		Type    string `json:"type"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
	Annotations struct {
		List []struct {
			Name string `json:"name"`
			Expr string `json:"expr"`
		} `json:"list"`
	} `json:"annotations"`
}

func TestDashboardNamesMetricsOfTheService(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("grafana/vllm-triage.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(raw, &d))
	service := ofService(t)
	// Grafana fills these in.
	fill := strings.NewReplacer("$__rate_interval", "5m", "$__interval", "1m", "$job", ".*")
	ids, queries := map[int]bool{}, 0
	for _, panel := range d.Panels {
		require.False(t, ids[panel.ID], "%s: a second panel of this id", panel.Title)
		ids[panel.ID] = true
		require.True(t, panel.Type == "row" || len(panel.Targets) > 0, panel.Title)
		for _, target := range panel.Targets {
			queries++
			service.check(t, panel.Title, fill.Replace(target.Expr))
		}
	}
	for _, a := range d.Annotations.List {
		service.check(t, a.Name, fill.Replace(a.Expr))
	}
	require.Greater(t, queries, 15)
}
