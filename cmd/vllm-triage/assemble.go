package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/cmd/vllm-triage/server/sweep"
	"vllm-triage/config"
	"vllm-triage/notify/slack"
	"vllm-triage/promq"
	"vllm-triage/triage"
)

// assemble builds everything that a configuration describes: knowledge, runbooks, the engine over Prometheus, and the
// notifier. It makes no call; a reload builds first and swaps afterwards.
func assemble(cfg *config.Config) (*server.Parts, error) {
	base, err := loadKnowledge(cfg.Triage.KnowledgeDir)
	if err != nil {
		return nil, fmt.Errorf("triage.knowledge_dir: %w", err)
	}
	book, err := loadRunbooks(cfg.Triage.RunbookDir)
	if err != nil {
		return nil, err
	}
	client, err := prometheusClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	opts, err := engineOptions(cfg)
	if err != nil {
		return nil, err
	}
	p := &server.Parts{Config: cfg, Knowledge: base, Runbooks: book, Engine: triage.NewEngine(base, client, opts)}
	am, err := alertmanagerClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("alertmanager: %w", err)
	}
	if am != nil {
		p.Silencer = am
	}
	p.Alerts = alertSources(am, client)
	if p.Models, err = chatops.NewPrometheusModels(client, opts.Matchers...); err != nil {
		return nil, err
	}
	if cfg.Slack.Enabled() {
		n, err := slackNotifier(cfg)
		if err != nil {
			return nil, fmt.Errorf("slack: %w", err)
		}
		p.Notifier = n
		p.Pictures = true
		p.Ping = func(ctx context.Context) error {
			_, err := n.Check(ctx)
			return err
		}
	}
	return p, nil
}

// alertSources are asked in turn which alerts fire: Alertmanager where it is configured, then the series that Prometheus
// writes about its alerts, then the alerts' own expressions.
func alertSources(am *alertmanager.Client, prometheus *promq.Client) sweep.Sources {
	var out sweep.Sources
	if am != nil {
		out = append(out, sweep.NewAlertmanager(func(ctx context.Context, now time.Time) (map[string]bool, error) {
			return firing(ctx, am, now)
		}))
	}
	return append(out, sweep.NewPrometheus(prometheus), sweep.NewExpression(prometheus))
}

// alertmanagerClient makes the client of a configuration, or returns nil when there is no Alertmanager in it. It asks nobody.
func alertmanagerClient(cfg *config.Config) (*alertmanager.Client, error) {
	peers := cfg.Alertmanager.Peers()
	if len(peers) == 0 {
		return nil, nil
	}
	return alertmanagerAt(cfg, peers...)
}

// alertmanagerAt makes a client of some members of the cluster.
func alertmanagerAt(cfg *config.Config, peers ...config.Address) (*alertmanager.Client, error) {
	urls := make([]string, 0, len(peers))
	for _, peer := range peers {
		urls = append(urls, peer.Raw())
	}
	return alertmanager.New(alertmanager.Config{
		URLs: urls, HTTP: cfg.Alertmanager.HTTP.Config(), Timeout: time.Duration(cfg.Alertmanager.Timeout),
	})
}

// firing lists the fingerprints of the alerts that an Alertmanager holds as firing.
func firing(ctx context.Context, am *alertmanager.Client, now time.Time) (map[string]bool, error) {
	alerts, err := am.Alerts(ctx)
	if err != nil {
		return nil, err
	}
	held := make(map[string]bool, len(alerts))
	for _, a := range alerts {
		if a.EndsAt.IsZero() || a.EndsAt.After(now) {
			held[a.Fingerprint] = true
		}
	}
	return held, nil
}

func engineOptions(cfg *config.Config) (triage.Options, error) {
	o := triage.Options{
		LookBack:    time.Duration(cfg.Triage.LookBack),
		MaxWindow:   time.Duration(cfg.Triage.MaxWindow),
		MaxReplicas: cfg.Triage.MaxReplicas,
		Concurrency: cfg.Prometheus.Concurrency,
		Timeout:     time.Duration(cfg.Triage.Timeout),
	}
	ms, err := parseMatchers(cfg.Triage.Matchers)
	o.Matchers = ms
	return o, err
}

// parseMatchers reads matchers as PromQL writes them: cluster="eu-1".
func parseMatchers(texts []string) ([]*labels.Matcher, error) {
	var out []*labels.Matcher
	p := parser.NewParser(parser.Options{})
	for i, text := range texts {
		ms, err := p.ParseMetricSelector("{" + text + "}")
		if err != nil {
			return nil, fmt.Errorf("triage.matchers[%d]: %w", i, err)
		}
		out = append(out, ms...)
	}
	return out, nil
}

// greet asks the chat who we are, once at the start, so that a bad token is seen before the first incident.
func greet(ctx context.Context, s *server.Server, log *zap.Logger) {
	p := s.Parts()
	n, ok := p.Notifier.(*slack.Notifier)
	if !ok {
		log.Warn("no slack.bot_token: incidents are kept and shown on the pages, nothing is posted")
		return
	}
	id, err := n.Check(ctx)
	if err != nil {
		log.Error("Slack cannot be used; messages are kept until it can", zap.Error(err))
		return
	}
	log.Info("connected to Slack", zap.Any("identity", id))
	s.Revive(ctx)
}
