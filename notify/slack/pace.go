package slack

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"vllm-triage/notify"
)

// maxPaced is how many channels are remembered; beyond it those that are quiet are forgotten.
const maxPaced = 1000

// pacer spaces the messages of each channel and keeps a channel quiet for as long as Slack asked for.
type pacer struct {
	every time.Duration

	mu       sync.Mutex
	channels map[string]*lane
}

type lane struct {
	limiter *rate.Limiter
	quiet   time.Time // Until then Slack wants no call.
}

func newPacer(every time.Duration) *pacer {
	return &pacer{every: every, channels: map[string]*lane{}}
}

func (p *pacer) lane(channel string) *lane {
	l, ok := p.channels[channel]
	if !ok {
		if len(p.channels) >= maxPaced {
			p.forget()
		}
		l = &lane{limiter: rate.NewLimiter(rate.Every(p.every), 1)}
		p.channels[channel] = l
	}
	return l
}

func (p *pacer) forget() {
	now := time.Now()
	for name, l := range p.channels {
		if l.limiter.TokensAt(now) >= 1 && now.After(l.quiet) {
			delete(p.channels, name)
		}
	}
}

// wait blocks until the channel's turn has come. It does not wait for a quiet time to end: that can be long, and the
// caller has other channels to serve. Its errors mean that nothing was sent.
func (p *pacer) wait(ctx context.Context, channel string) *notify.Error {
	p.mu.Lock()
	l := p.lane(channel)
	quiet := time.Until(l.quiet)
	p.mu.Unlock()
	if quiet > 0 {
		return &notify.Error{
			Reason: notify.RateLimited, Retryable: true, After: quiet,
			Err: errors.New("slack asked to wait before the next message to this channel"),
		}
	}
	if err := l.limiter.Wait(ctx); err != nil {
		e := &notify.Error{Reason: notify.RateLimited, Retryable: true, After: p.every, Err: err}
		if errors.Is(err, context.Canceled) {
			e.Reason = notify.OtherReason
		}
		return e
	}
	return nil
}

// block keeps the channel quiet.
func (p *pacer) block(channel string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lane(channel)
	if until := time.Now().Add(d); until.After(l.quiet) {
		l.quiet = until
	}
}
