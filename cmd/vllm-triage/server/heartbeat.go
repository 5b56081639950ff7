package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/alertmanager/template"
	"go.uber.org/zap"

	"vllm-triage/config"
	"vllm-triage/notify"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// kindHeartbeat is the job that looks whether the heartbeats still come; there is one such job in all.
const kindHeartbeat = "heartbeat"

// heartbeatEvery is how often it looks.
const heartbeatEvery = 15 * time.Second

// beat takes the heartbeats out of a notification and notes them: an alert that always fires says that the way from
// Prometheus to here is open, and nothing about a model.
func (s *Server) beat(ctx context.Context, cfg config.Heartbeat, p triage.Payload, now time.Time) (triage.Payload, error) {
	var rest template.Alerts
	heard := map[string]bool{}
	for _, a := range p.Alerts {
		name := a.Labels["alertname"]
		if !slices.Contains(cfg.Alertnames, name) {
			rest = append(rest, a)
			continue
		}
		// One that ends is no sign of life: it says that the rule is gone.
		if a.Status == triage.StatusFiring {
			heard[name] = true
		}
	}
	p.Alerts = rest
	if len(heard) > 0 {
		s.metrics.heartbeat.Set(float64(now.Unix()))
	}
	for name := range heard {
		if err := s.store.Beat(ctx, name, now); err != nil {
			return p, err
		}
	}
	return p, nil
}

// reported is the name under which the store keeps which silence was told: the time of the beat that began it.
func reported(name string) string { return "silence:" + name }

// heartbeatJob tells when a heartbeat has stopped, once, and when it has come back. One that was never heard is not
// missed. It never fails: what could not be told is told by the next look.
func (s *Server) heartbeatJob(ctx context.Context, j store.Job) error {
	now := s.now()
	parts := s.Parts()
	s.showHeartbeat(ctx, parts.Config.Heartbeat)
	for _, name := range parts.Config.Heartbeat.Alertnames {
		if err := s.watchHeartbeat(ctx, parts, name, now); err != nil {
			s.log.Warn("heartbeat not told", zap.String("alertname", name), zap.Error(err))
		}
	}
	return s.store.Finish(ctx, j, now.Add(heartbeatEvery))
}

// showHeartbeat puts the newest beat into the metric: another replica may have heard it.
func (s *Server) showHeartbeat(ctx context.Context, cfg config.Heartbeat) {
	var newest time.Time
	for _, name := range cfg.Alertnames {
		if at, err := s.store.LastBeat(ctx, name); err == nil && at.After(newest) {
			newest = at
		}
	}
	if !newest.IsZero() {
		s.metrics.heartbeat.Set(float64(newest.Unix()))
	}
}

func (s *Server) watchHeartbeat(ctx context.Context, p *Parts, name string, now time.Time) error {
	last, err := s.store.LastBeat(ctx, name)
	if err != nil || last.IsZero() {
		return err
	}
	told, err := s.store.LastBeat(ctx, reported(name))
	if err != nil {
		return err
	}
	timeout := time.Duration(p.Config.Heartbeat.Timeout)
	switch {
	case told.IsZero() && now.Sub(last) > timeout && now.Sub(s.started) > timeout:
		// While this service was down it could hear nothing: its own silence is not reported as another's.
		s.log.Error("heartbeat is missing: alerts may not arrive", zap.String("alertname", name), zap.Time("last", last))
		if err := s.tellHeartbeat(ctx, p, name, "heartbeat.silent", now.Sub(last)); err != nil {
			return err
		}
		return s.store.Beat(ctx, reported(name), last)
	case !told.IsZero() && last.After(told):
		s.log.Info("heartbeat is back", zap.String("alertname", name))
		if err := s.tellHeartbeat(ctx, p, name, "heartbeat.back", last.Sub(told)); err != nil {
			return err
		}
		return s.store.Beat(ctx, reported(name), time.Time{})
	}
	return nil
}

func (s *Server) tellHeartbeat(ctx context.Context, p *Parts, name, key string, silence time.Duration) error {
	channel := p.Config.Heartbeat.Channel
	if channel == "" {
		channel = p.Config.Slack.Channel
	}
	if p.Notifier == nil || channel == "" {
		return nil // The log and the metric have it.
	}
	language := p.Config.Slack.Language
	m := notify.NewNote("heartbeat", language, "", say(language, key, "alert", notify.Clean(name, 80), "duration",
		silence.Round(time.Second).String()))
	err := s.call(ctx, opPost, func(ctx context.Context) error {
		_, err := p.Notifier.Post(ctx, channel, m)
		return err
	})
	if e, ok := errors.AsType[*notify.Error](err); ok && e.Maybe {
		return nil // Perhaps posted: twice is worse here, the metric fires as well.
	}
	return err
}
