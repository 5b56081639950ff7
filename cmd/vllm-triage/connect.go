package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"vllm-triage/config"
	"vllm-triage/notify/slack"
	"vllm-triage/promq"
	"vllm-triage/triage/kb/runbook"
	"vllm-triage/triage/store"
)

// defaultConfig is where a configuration is looked for when --config does not say.
const defaultConfig = "/etc/vllm-triage/config.yaml"

// existingStore opens the database of a configuration, which has to exist already.
func existingStore(ctx context.Context, c *config.Config) (*store.Store, error) {
	address, err := c.Storage.Read()
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	return store.Open(ctx, address, store.Options{Refresh: c.Storage.Read, Existing: true})
}

// prometheusClient makes the client of a configuration. It asks nobody.
func prometheusClient(c *config.Config) (*promq.Client, error) {
	return promq.NewClient(promq.Config{
		URL:              c.Prometheus.URL.Raw(),
		HTTP:             c.Prometheus.HTTP.Config(),
		Timeout:          time.Duration(c.Prometheus.Timeout),
		Concurrency:      c.Prometheus.Concurrency,
		MaxResponseBytes: int64(c.Prometheus.MaxResponse),
		Params:           c.Prometheus.Values(),
	})
}

// slackNotifier makes the notifier of a configuration. It asks nobody.
func slackNotifier(c *config.Config) (*slack.Notifier, error) {
	return slack.New(slack.Config{
		Token: c.Slack.BotToken.Read, APIURL: c.Slack.APIURL, Timeout: time.Duration(c.Slack.Timeout),
		View: slack.View{Interactive: c.Slack.SigningSecret.IsSet() || c.Slack.AppToken.IsSet(), Charts: slack.AutoCharts},
	})
}

// loadRunbooks loads the shipped runbooks with a site's own pages laid over them.
func loadRunbooks(dir string) (*runbook.Book, error) {
	if dir == "" {
		return runbook.Default(), nil
	}
	book, err := runbook.Load(runbook.Overlay(runbook.Embedded(), os.DirFS(dir)))
	if err != nil {
		return nil, fmt.Errorf("runbooks in %s: %w", dir, err)
	}
	return book, nil
}

// loadConfig reads the configuration that a flag names. A file that is not there gets the next step.
func loadConfig(env environment, path string) (*config.Config, error) {
	lookup := env.lookupenv
	if lookup == nil {
		lookup = config.NoEnv
	}
	c, err := config.Load(path, lookup)
	if errors.Is(err, fs.ErrNotExist) && path == defaultConfig {
		return nil, fmt.Errorf("%w; name one with --config, or begin with: vllm-triage check --print-example > config.yaml", err)
	}
	return c, err
}
