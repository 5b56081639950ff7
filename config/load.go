package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	promconfig "github.com/prometheus/common/config"
)

// Lookup finds an environment variable; os.LookupEnv is one.
type Lookup func(name string) (value string, ok bool)

// NoEnv is an empty environment.
func NoEnv(string) (string, bool) { return "", false }

// Load reads a file. Relative paths in it are relative to the file's directory.
func Load(path string, env Lookup) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w; name the file with --config, or write one from what "+
			"`vllm-triage check --print-example` prints", err)
	}
	c, err := Parse(data, filepath.Dir(path), env)
	if err != nil {
		return nil, fmt.Errorf("%s:\n%w", path, err)
	}
	return c, nil
}

// Parse reads a configuration whose relative paths are relative to dir. Its error joins one *Problem for each mistake, in
// the order of the file.
func Parse(data []byte, dir string, env Lookup) (*Config, error) {
	c := Default()
	found, fatal := decode(data, &c)
	if fatal {
		return nil, found.err()
	}
	c.resolve(dir)
	c.bind(dir, env, found)
	if !found.partial {
		c.validate(found)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return &c, nil
}

// resolve makes the paths of files absolute to dir. Those of secrets follow in bind.
func (c *Config) resolve(dir string) {
	c.Prometheus.HTTP.setDirectory(dir)
	c.Alertmanager.HTTP.setDirectory(dir)
	for _, p := range []*string{&c.Server.WebConfigFile, &c.Triage.KnowledgeDir, &c.Triage.RunbookDir} {
		*p = promconfig.JoinDir(dir, *p)
	}
}

// EnvPrefix begins the names of all environment variables that the service reads.
const EnvPrefix = "VLLM_TRIAGE_"

// slot is a place for a secret: the key, the key of its file and the environment variable that stands in for both.
type slot struct {
	path   string
	secret *Secret
	file   *string
	env    string
}

func (c *Config) slots() []slot {
	out := []slot{
		{"storage", &c.Storage, &c.StorageFile, "STORAGE"},
		{"webhook.bearer_token", &c.Webhook.BearerToken, &c.Webhook.BearerTokenFile, "WEBHOOK_BEARER_TOKEN"},
		{"pages.link_key", &c.Pages.LinkKey, &c.Pages.LinkKeyFile, "PAGES_LINK_KEY"},
		{"slack.bot_token", &c.Slack.BotToken, &c.Slack.BotTokenFile, "SLACK_BOT_TOKEN"},
		{"slack.signing_secret", &c.Slack.SigningSecret, &c.Slack.SigningSecretFile, "SLACK_SIGNING_SECRET"},
		{"slack.app_token", &c.Slack.AppToken, &c.Slack.AppTokenFile, "SLACK_APP_TOKEN"},
	}
	if b := c.Webhook.BasicAuth; b != nil {
		out = append(out, slot{"webhook.basic_auth.password", &b.Password, &b.PasswordFile, "WEBHOOK_PASSWORD"})
	}
	return out
}

// bind ties each secret to its text, its file or its environment variable, in this order, and reads it once to see that it
// can be.
func (c *Config) bind(dir string, env Lookup, found *problems) {
	for _, s := range c.slots() {
		name := EnvPrefix + s.env
		value, inEnv := env(name)
		switch {
		case s.secret.IsSet() && *s.file != "":
			found.add(s.path, "give it here or in "+s.path+"_file, not both")
		case s.secret.IsSet():
			if _, err := s.secret.Read(); err != nil {
				found.add(s.path, err.Error())
			}
		case *s.file != "":
			*s.file = promconfig.JoinDir(dir, *s.file)
			*s.secret = FileSecret(*s.file)
			if _, err := s.secret.Read(); err != nil {
				found.add(s.path+"_file", err.Error())
			}
		case inEnv && strings.TrimSpace(value) == "":
			found.add(s.path, "the environment variable "+name+" is set but empty; unset it or fill it")
		case inEnv:
			*s.secret = NewSecret(value)
			if _, err := s.secret.Read(); err != nil {
				found.add(s.path, err.Error())
			}
		}
	}
	if c.Storage.IsZero() {
		c.Storage = NewSecret(DefaultStorage)
	}
}
