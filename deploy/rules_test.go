package deploy_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// ruleFile is the part of a Prometheus rule file that the tests look at.
type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// testFile is the part of a promtool test file that the tests look at.
type testFile struct {
	Tests []struct {
		Name   string `yaml:"name"`
		Alerts []struct {
			Alert string `yaml:"alertname"`
			Want  []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func load(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, into), path)
}

// alerts returns the alerts of a rule file by name.
func alerts(t *testing.T, path string) map[string]rule {
	t.Helper()
	var file ruleFile
	load(t, path, &file)
	all := map[string]rule{}
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			require.NotContains(t, all, r.Alert, "two alerts of one name")
			all[r.Alert] = r
		}
	}
	require.NotEmpty(t, all)
	return all
}

func ruleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("prometheus/rules/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestRulesPassPromtool(t *testing.T) {
	t.Parallel()
	promtool := program(t, "promtool")
	for _, file := range ruleFiles(t) {
		run(t, promtool, "check", "rules", file)
	}
	tests, err := filepath.Glob("prometheus/tests/*_test.yml")
	require.NoError(t, err)
	require.Len(t, tests, len(ruleFiles(t)), "each rule file has its tests")
	for _, file := range tests {
		require.Contains(t, run(t, promtool, "test", "rules", file), "SUCCESS")
	}
}

// TestEveryAlertIsTestedBothWays fails for an alert that no promtool test sees firing, or none sees silent.
func TestEveryAlertIsTestedBothWays(t *testing.T) {
	t.Parallel()
	for _, file := range ruleFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".yml")
		var tests testFile
		load(t, filepath.Join("prometheus", "tests", name+"_test.yml"), &tests)
		fires, silent := map[string]bool{}, map[string]bool{}
		for _, test := range tests.Tests {
			require.NotEmpty(t, test.Name)
			for _, a := range test.Alerts {
				if len(a.Want) > 0 {
					fires[a.Alert] = true
				} else {
					silent[a.Alert] = true
				}
			}
		}
		for alert, r := range alerts(t, file) {
			require.True(t, fires[alert], "%s: no test sees %s firing", file, alert)
			always := r.Labels["severity"] == "none" // The heartbeat.
			require.True(t, silent[alert] || always, "%s: no test sees %s silent", file, alert)
		}
	}
}

// TestAlertsCarryWhatPeopleNeed checks labels and annotations, and that a link to a runbook leads to a page that exists.
func TestAlertsCarryWhatPeopleNeed(t *testing.T) {
	t.Parallel()
	for _, file := range ruleFiles(t) {
		for name, r := range alerts(t, file) {
			require.Contains(t, []string{"warning", "critical", "none"}, r.Labels["severity"], name)
			require.NotEmpty(t, r.Labels["team"], name)
			require.NotEmpty(t, r.Annotations["summary"], name)
			require.NotEmpty(t, r.Annotations["description"], name)
			if strings.HasPrefix(name, "VLLMTriage") { // About the service: it cannot serve the page when it is down.
				require.Empty(t, r.Annotations["runbook_url"], name)
				continue
			}
			link, err := url.Parse(r.Annotations["runbook_url"])
			require.NoError(t, err, name)
			require.Equal(t, "https", link.Scheme, name)
			require.Equal(t, "triage.example.org", link.Host, "%s: the one host that readers replace", name)
			page, ok := strings.CutPrefix(link.Path, "/runbooks/")
			require.True(t, ok, name)
			require.FileExists(t, filepath.Join("..", "triage", "kb", "runbook", "en", page+".md"), name)
		}
	}
}

// TestRatiosAreGuarded holds the rule that a share or a quantile is never judged on a handful of events: each needs a
// comparison with an absolute number of events beside it.
func TestRatiosAreGuarded(t *testing.T) {
	t.Parallel()
	for _, file := range ruleFiles(t) {
		for name, r := range alerts(t, file) {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
			require.NoError(t, err, name)
			judged, guarded := false, false
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				switch n := node.(type) {
				case *parser.Call:
					judged = judged || n.Func.Name == "histogram_quantile"
				case *parser.BinaryExpr:
					judged = judged || n.Op == parser.DIV
					_, number := n.RHS.(*parser.NumberLiteral)
					guarded = guarded || number && n.Op == parser.GTE && strings.Contains(n.LHS.String(), "increase(")
				}
				return nil
			})
			if judged {
				require.True(t, guarded, "%s: %s judges a ratio or a quantile without `and sum(increase(..._count)) >= N`", file, name)
			}
		}
	}
}

func TestPrometheusConfig(t *testing.T) {
	t.Parallel()
	promtool := program(t, "promtool")
	// A copy, with the file of credentials that it wants to see.
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("prometheus")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "secrets"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secrets", "webhook-token"), []byte("token"), 0o600))
	require.Contains(t, run(t, promtool, "check", "config", filepath.Join(dir, "prometheus.yml")), "SUCCESS")
}
