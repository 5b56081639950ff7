package server

import (
	"context"
	"time"

	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/sweep"
	"vllm-triage/triage/store"
)

const (
	// pruneEvery is how often what is older than the retention is dropped.
	pruneEvery = time.Hour
	// watchEvery is how often it is looked whether the chat is to be asked for a sign of life.
	watchEvery = 5 * time.Second
)

// wantChores puts the work that comes again and again into the queue. Replicas share it: each piece is done by one of them.
func (s *Server) wantChores(ctx context.Context) error {
	for kind, every := range map[string]time.Duration{
		store.KindSweep: sweep.Every, kindHeartbeat: heartbeatEvery, store.KindPrune: 0,
	} {
		if err := s.store.Enqueue(ctx, kind, "", "start", s.started.Add(every)); err != nil {
			return err
		}
	}
	return nil
}

// pruneJob drops what is older than the retention. It never fails: it is tried again at the next time.
func (s *Server) pruneJob(ctx context.Context, j store.Job) error {
	now := s.now()
	if keep := time.Duration(s.Parts().Config.Retention); keep > 0 {
		n, err := s.store.Prune(ctx, now.Add(-keep), now)
		if err != nil {
			s.log.Warn("pruning failed", zap.Error(err))
		} else if n > 0 {
			s.log.Info("pruned incidents", zap.Int("count", n))
		}
	}
	return s.store.Finish(ctx, j, now.Add(pruneEvery))
}

// watchChat asks the chat for signs of life until ctx ends.
func (s *Server) watchChat(ctx context.Context) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		s.pingChat(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// DoDue does all work and delivers all news that are due by the service's clock, one piece after the other, and returns how
// many pieces there were. Run does the same in the background; DoDue is for programs that move the clock themselves.
func (s *Server) DoDue(ctx context.Context) (int, error) {
	s.pingChat(ctx)
	for n := 0; ; n++ {
		worked, err := s.workOnce(ctx)
		if err != nil {
			return n, err
		}
		delivered, err := s.deliverOnce(ctx)
		if err != nil {
			return n, err
		}
		if !worked && !delivered {
			return n, ctx.Err()
		}
	}
}
