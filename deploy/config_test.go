package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"vllm-triage/config"
)

// TestSampleConfigIsTheExample keeps deploy/config.yaml what `vllm-triage` carries inside.
func TestSampleConfigIsTheExample(t *testing.T) {
	t.Parallel()
	if *update {
		require.NoError(t, os.WriteFile("config.yaml", config.Example(), 0o644))
	}
	got, err := os.ReadFile("config.yaml")
	require.NoError(t, err)
	require.Equal(t, string(config.Example()), string(got), "run `make golden`")
}

// TestConfigsLoad reads every configuration that is shipped, with the secrets in place that it names.
func TestConfigsLoad(t *testing.T) {
	t.Parallel()
	sample, err := os.ReadFile("config.yaml")
	require.NoError(t, err)
	var values struct {
		Config map[string]any `yaml:"config"`
	}
	load(t, filepath.Join(chart, "values.yaml"), &values)
	ofChart, err := yaml.Marshal(values.Config)
	require.NoError(t, err)
	for name, text := range map[string][]byte{"config.yaml": sample, "values.yaml": ofChart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "secrets"), 0o700))
			for file, secret := range map[string]string{
				"webhook-token":        "not-a-secret-not-a-secret",
				"slack-bot-token":      "xoxb-not-a-token",
				"slack-signing-secret": "0123456789abcdef0123456789abcdef",
			} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "secrets", file), []byte(secret), 0o600))
			}
			// The chart mounts its secrets under an absolute path.
			local := bytes.ReplaceAll(text, []byte("/etc/vllm-triage/secrets/vllm-triage/"), []byte("secrets/"))
			c, err := config.Parse(local, dir, config.NoEnv)
			require.NoError(t, err)
			require.True(t, c.Slack.Enabled())
			require.Equal(t, config.DefaultListen, c.Server.Listen)
		})
	}
}
