package server

import (
	"context"
	"time"

	"go.uber.org/zap"

	"vllm-triage/triage/store"
)

const (
	// lease is how long a claim holds without being renewed: a replica that is killed is taken over after this time.
	lease = 20 * time.Second
	// renewal is how often a holder renews its lease.
	renewal = 5 * time.Second
	// poll is how long a loop sleeps at most: news from other replicas arrive by polling.
	poll = time.Second
	// taken is how long a loop sleeps when others had what was due.
	taken = 10 * time.Millisecond
	// deliverers is how many conversations are delivered at once; a channel's pace is kept by the notifier.
	deliverers = 4
)

// line is a kind of work: how to do a piece of it, and when the next one becomes due.
type line struct {
	news <-chan struct{}
	due  func(context.Context) (time.Time, error)
	once func(context.Context) (bool, error)
}

// loop does the work of a line until ctx ends; what has begun then goes on with work, which ends later. When there is
// nothing to do it sleeps until something happens here, until something becomes due, or for poll. It looks before it claims:
// looking is a read, claiming a transaction that webhooks would have to wait for.
func (s *Server) loop(ctx, work context.Context, l line) {
	failures := 0
	for ctx.Err() == nil {
		pause, err := s.until(ctx, l.due)
		if err == nil && pause == 0 {
			var did bool
			if did, err = l.once(work); did && err == nil {
				failures = 0
				continue
			}
			pause = taken
		}
		if err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			s.log.Warn("background work failed", zap.Error(err), zap.String("kind", string(store.KindOf(err))))
			pause = min(poll<<min(failures, 5), 30*time.Second)
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-l.news:
		case <-t.C:
		}
		t.Stop()
	}
}

// until is how long until the next piece of work is due, at most poll; 0 when it is.
func (s *Server) until(ctx context.Context, due func(context.Context) (time.Time, error)) (time.Duration, error) {
	at, err := due(ctx)
	if err != nil || at.IsZero() {
		return poll, err
	}
	return min(max(at.Sub(s.now()), 0), poll), nil
}

// signal wakes a loop without waiting for it.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// keepLease renews a lease until the work ends; when the lease is lost, the work is cancelled: another has taken over.
func (s *Server) keepLease(ctx context.Context, renew func(context.Context, time.Time) error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(renewal)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if err := renew(ctx, s.now().Add(lease)); err != nil && ctx.Err() == nil {
					cancel(err)
					return
				}
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
