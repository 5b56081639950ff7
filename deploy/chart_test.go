package deploy_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

var update = flag.Bool("update", false, "rewrite golden files")

const (
	chart     = "helm/vllm-triage"
	manifests = "kubernetes/vllm-triage.yaml"
)

// rendered returns what helm makes of the chart.
func rendered(t *testing.T, args ...string) string {
	t.Helper()
	helm := program(t, "helm")
	command := exec.CommandContext(t.Context(), helm,
		append([]string{"template", "vllm-triage", chart, "--namespace", "monitoring", "--kube-version", "1.31"}, args...)...)
	var problems bytes.Buffer
	command.Stderr = &problems // It tells there that it follows symbolic links.
	out, err := command.Output()
	require.NoError(t, err, problems.String())
	return string(out)
}

// object is the part of a Kubernetes object that the tests look at.
type object struct {
	Kind string         `yaml:"kind"`
	Data map[string]any `yaml:"data"`
	Spec struct {
		Replicas int                   `yaml:"replicas"`
		Strategy struct{ Type string } `yaml:"strategy"`
		Template struct {
			Spec struct {
				AutomountToken *bool `yaml:"automountServiceAccountToken"`
				Grace          int   `yaml:"terminationGracePeriodSeconds"`
				Security       struct {
					NonRoot bool `yaml:"runAsNonRoot"`
				} `yaml:"securityContext"`
				Containers []struct {
					Security struct {
						Escalation *bool `yaml:"allowPrivilegeEscalation"`
						ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
						Caps       struct {
							Drop []string `yaml:"drop"`
						} `yaml:"capabilities"`
					} `yaml:"securityContext"`
					Readiness map[string]any `yaml:"readinessProbe"`
					Liveness  map[string]any `yaml:"livenessProbe"`
				} `yaml:"containers"`
			} `yaml:"spec"`
		} `yaml:"template"`
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	} `yaml:"spec"`
}

// objects splits a stream of manifests by kind.
func objects(t *testing.T, stream string) map[string]object {
	t.Helper()
	all := map[string]object{}
	decoder := yaml.NewDecoder(strings.NewReader(stream))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if o.Kind != "" {
			all[o.Kind] = o
		}
	}
}

// TestPlainManifestsAreTheChart keeps kubernetes/ what the chart makes of its defaults.
func TestPlainManifestsAreTheChart(t *testing.T) {
	t.Parallel()
	var plain []string
	for line := range strings.SplitSeq(rendered(t), "\n") {
		label := strings.TrimSpace(line)
		if strings.HasPrefix(label, "# Source: ") || strings.HasPrefix(label, "helm.sh/chart:") || strings.HasPrefix(label, "app.kubernetes.io/managed-by:") {
			continue // About helm, which these manifests do without.
		}
		plain = append(plain, line)
	}
	got := "# What the chart in ../helm makes of its defaults (`make golden`), for `kubectl apply -n monitoring -f`. Before that:\n" +
		"#   kubectl create secret generic vllm-triage -n monitoring --from-literal=webhook-token=\"$(openssl rand -base64 32)\" \\\n" +
		"#     --from-file=slack-bot-token --from-file=slack-signing-secret\n" + strings.Join(plain, "\n")
	if *update {
		require.NoError(t, os.WriteFile(manifests, []byte(got), 0o644))
	}
	want, err := os.ReadFile(manifests)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got), "run `make golden`")
}

func TestChartIsHardened(t *testing.T) {
	t.Parallel()
	deployment := objects(t, rendered(t))["Deployment"]
	pod := deployment.Spec.Template.Spec
	require.True(t, pod.Security.NonRoot)
	require.NotNil(t, pod.AutomountToken)
	require.False(t, *pod.AutomountToken)
	require.Greater(t, pod.Grace, 25, "longer than the service's own shutdown")
	require.Len(t, pod.Containers, 1)
	container := pod.Containers[0]
	require.True(t, container.Security.ReadOnly)
	require.NotNil(t, container.Security.Escalation)
	require.False(t, *container.Security.Escalation)
	require.Equal(t, []string{"ALL"}, container.Security.Caps.Drop)
	// A Slack outage must not take the pod out of the Service: Alertmanager could not get through.
	require.Equal(t, map[string]any{"path": "/-/accepting", "port": "metrics"}, container.Readiness["httpGet"])
	require.NotEmpty(t, container.Liveness)
}

// TestChartKnowsWhatMayRunTwice: two pods on one SQLite file would lose data.
func TestChartKnowsWhatMayRunTwice(t *testing.T) {
	t.Parallel()
	helm := program(t, "helm")
	out, err := exec.CommandContext(t.Context(), helm, "template", "x", chart, "--kube-version", "1.31", "--set", "replicas=2").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "replicas > 1 needs PostgreSQL")

	one := objects(t, rendered(t))
	require.Equal(t, "Recreate", one["Deployment"].Spec.Strategy.Type)
	require.Contains(t, one, "PersistentVolumeClaim")

	two := objects(t, rendered(t, "--set", "replicas=2", "--set", "config.storage=postgres://db/triage"))
	require.Equal(t, "RollingUpdate", two["Deployment"].Spec.Strategy.Type)
	require.NotContains(t, two, "PersistentVolumeClaim")
	require.Contains(t, two, "PodDisruptionBudget")
}

// TestChartChecksPorts: a probe of a port that nobody listens on keeps the pod out of the Service for ever.
func TestChartChecksPorts(t *testing.T) {
	t.Parallel()
	helm := program(t, "helm")
	for setting, says := range map[string]string{
		"config.server.metrics_listen=": "set it to the port of service.metricsPort",
		"service.metricsPort=9200":      "set it to the port of service.metricsPort",
		"config.server.listen=:9098":    "must have the port of service.port",
	} {
		out, err := exec.CommandContext(t.Context(), helm, "template", "x", chart, "--kube-version", "1.31", "--set", setting).CombinedOutput()
		require.Error(t, err, setting)
		require.Contains(t, string(out), says, setting)
	}
	rendered(t, "--set", "config.server.listen=:9098", "--set", "service.port=9098")
}

func TestChartCarriesTheRules(t *testing.T) {
	t.Parallel()
	got := objects(t, rendered(t, "--set", "prometheusRule.enabled=true", "--set", "prometheusRule.runbookBaseURL=https://triage.internal"))
	shipped := 0
	for _, group := range got["PrometheusRule"].Spec.Groups {
		for _, r := range group.Rules {
			shipped++
			require.NotContains(t, r.Annotations["runbook_url"], "triage.example.org")
		}
	}
	want := 0
	for _, file := range ruleFiles(t) {
		want += len(alerts(t, file))
	}
	require.Equal(t, want, shipped)
}
