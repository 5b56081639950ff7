package deploy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

const alertmanagerConfig = "alertmanager/alertmanager.yml"

func TestAlertmanagerConfig(t *testing.T) {
	t.Parallel()
	require.Contains(t, run(t, program(t, "amtool"), "check-config", alertmanagerConfig), "SUCCESS")
}

// TestAlertsAreRouted asks amtool where each kind of alert goes. The service is told of vLLM's alerts and of the heartbeat,
// never of alerts about itself.
func TestAlertsAreRouted(t *testing.T) {
	t.Parallel()
	amtool := program(t, "amtool")
	routed := func(name string) string {
		out := run(t, amtool, "config", "routes", "test", "--config.file="+alertmanagerConfig, "alertname="+name, "model_name=m")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		return lines[len(lines)-1]
	}
	for name := range alerts(t, "prometheus/rules/vllm.yml") {
		require.Equal(t, "vllm-triage,default", routed(name), name)
	}
	require.Equal(t, "vllm-triage-heartbeat", routed("Watchdog"))
	require.Equal(t, "vllm-triage-heartbeat", routed("VLLMTriageHeartbeat"))
	require.Equal(t, "default", routed("VLLMTriageDown"))
	require.Equal(t, "default", routed("NodeDiskFull"))
}

// TestAlertmanagerRepeatsRarely holds what the service's users suffered elsewhere: a sample that repeats every minute.
func TestAlertmanagerRepeatsRarely(t *testing.T) {
	t.Parallel()
	type route struct {
		Receiver string  `yaml:"receiver"`
		Repeat   string  `yaml:"repeat_interval"`
		Routes   []route `yaml:"routes"`
	}
	var config struct {
		Route     route `yaml:"route"`
		Receivers []struct {
			Name     string `yaml:"name"`
			Webhooks []struct {
				SendResolved bool `yaml:"send_resolved"`
				HTTP         struct {
					Authorization struct {
						File string `yaml:"credentials_file"`
					} `yaml:"authorization"`
				} `yaml:"http_config"`
			} `yaml:"webhook_configs"`
		} `yaml:"receivers"`
	}
	load(t, alertmanagerConfig, &config)
	for _, r := range append([]route{config.Route}, config.Route.Routes...) {
		if r.Repeat == "" || r.Receiver == "vllm-triage-heartbeat" {
			continue
		}
		repeat, err := model.ParseDuration(r.Repeat)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Duration(repeat), 4*time.Hour, r.Receiver)
	}
	hooks := 0
	for _, receiver := range config.Receivers {
		for _, hook := range receiver.Webhooks {
			hooks++
			require.True(t, hook.SendResolved, receiver.Name)
			require.NotEmpty(t, hook.HTTP.Authorization.File, "%s: the service refuses deliveries without credentials", receiver.Name)
		}
	}
	require.Equal(t, 2, hooks)
}
