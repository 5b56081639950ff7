package server

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/sweep"
	"vllm-triage/triage/store"
)

// sweeping is the sweeper of the parts in force. What it remembers survives reloads that keep the source.
type sweeping struct {
	mu      sync.Mutex
	parts   *Parts
	sweeper *sweep.Sweeper
}

// sweepJob asks about alerts whose end, or whose beginning, may have been lost. It never fails: the next sweep asks again.
func (s *Server) sweepJob(ctx context.Context, j store.Job) error {
	now := s.now()
	if err := s.sweep(ctx, now); err != nil {
		s.log.Warn("lost ends of alerts not looked for", zap.Error(err))
	}
	return s.store.Finish(ctx, j, now.Add(sweep.Every))
}

func (s *Server) sweep(ctx context.Context, now time.Time) error {
	s.sweeping.mu.Lock()
	defer s.sweeping.mu.Unlock()
	p := s.Parts()
	if p.Alerts == nil {
		return nil
	}
	if s.sweeping.parts != p {
		s.sweeping.parts, s.sweeping.sweeper = p, sweep.New(s.store, p.Alerts, policyOf(p.Config))
	}
	r, err := s.sweeping.sweeper.Sweep(ctx, now)
	if r.Closed+r.Reopened > 0 {
		s.log.Info("alerts put right that Alertmanager's notifications left behind",
			zap.Int("closed", r.Closed), zap.Int("reopened", r.Reopened), zap.Int("asked", r.Asked))
		signal(s.wake)
	}
	return err
}
