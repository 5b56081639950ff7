package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"vllm-triage/notify"
	"vllm-triage/triage/store"
)

const (
	// pingEvery is how often the chat is asked for a sign of life while nothing else is said to it. Each replica asks for
	// itself: readiness is a replica's own.
	pingEvery = 30 * time.Second
	// pingTimeout bounds one question.
	pingTimeout = 10 * time.Second
	// chatGrace is how long the chat may be silent, from the start on, before the service is not ready.
	chatGrace = 3 * time.Minute
	// storeFresh is how long an answer of the store counts: the address of readiness has no authentication, and each
	// question is a write.
	storeFresh = time.Second
)

// chatHealth knows when the chat answered last and what is wrong with it.
type chatHealth struct {
	mu       sync.Mutex
	good     time.Time // The last good answer; at first the start of the service.
	pinged   time.Time
	problem  error
	channels map[string]bool // Channels that refused a message.
	revive   bool            // Work was given up and the chat has not answered well since.
}

// chatAnswered notes what a call to the chat says about the chat. An answer that refuses a channel or a message is a sign of
// life too.
func (s *Server) chatAnswered(err error) {
	e, failed := errors.AsType[*notify.Error](err)
	if err != nil && !failed {
		return
	}
	h := &s.chat
	h.mu.Lock()
	defer h.mu.Unlock()
	if failed {
		switch e.Reason {
		case notify.Auth, notify.Unavailable, notify.TimedOut, notify.OtherReason:
			h.problem = err
			s.metrics.slackOK.Set(0)
			return
		case notify.RateLimited, notify.ChannelGone, notify.MessageGone, notify.Rejected:
		}
	}
	h.good, h.problem = s.now(), nil
	s.metrics.slackOK.Set(1)
}

// chatProblem says why the chat makes the service not ready; empty when it does not.
func (s *Server) chatProblem() string {
	if s.Parts().Ping == nil {
		return ""
	}
	h := &s.chat
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.now().Sub(h.good) <= chatGrace {
		return ""
	}
	if e, ok := errors.AsType[*notify.Error](h.problem); ok {
		return "the chat has not answered well for " + s.now().Sub(h.good).Round(time.Second).String() + ": " + string(e.Reason)
	}
	return "the chat has not answered for " + s.now().Sub(h.good).Round(time.Second).String()
}

// pingChat asks the chat for a sign of life when nothing was heard of it for a while. When it is well again, messages that
// were given up because of it are delivered after all.
func (s *Server) pingChat(ctx context.Context) {
	p := s.Parts()
	if p.Ping == nil {
		return
	}
	h := &s.chat
	now := s.now()
	h.mu.Lock()
	due := now.Sub(h.pinged) >= pingEvery && (h.problem != nil || h.revive || now.Sub(h.good) >= pingEvery)
	if due {
		h.pinged = now
	}
	h.mu.Unlock()
	if !due {
		return
	}
	limited, cancel := context.WithTimeout(ctx, pingTimeout)
	err := p.Ping(limited)
	cancel()
	if ctx.Err() != nil {
		return
	}
	s.chatAnswered(err)
	if err != nil {
		s.log.Error("the chat does not answer as it should; messages are kept", zap.Error(err))
		return
	}
	h.mu.Lock()
	revive := h.revive
	h.revive = false
	h.mu.Unlock()
	if revive {
		s.reviveMessages(ctx, func(c store.Conversation) bool { return c.Reason == string(notify.Auth) })
	}
}

// gaveUp notes that a conversation was given up, so that it is taken up again when the cause is gone.
func (s *Server) gaveUp(channel string, reason notify.Reason) {
	s.chat.mu.Lock()
	defer s.chat.mu.Unlock()
	switch reason {
	case notify.Auth:
		s.chat.revive = true
	case notify.ChannelGone:
		s.chat.channels[channel] = true
	default:
	}
}

// tookMessage notes that a channel takes messages. Those that it refused before are delivered after all.
func (s *Server) tookMessage(ctx context.Context, channel string) {
	s.chat.mu.Lock()
	refused := s.chat.channels[channel]
	delete(s.chat.channels, channel)
	s.chat.mu.Unlock()
	if refused {
		s.reviveMessages(ctx, func(c store.Conversation) bool {
			return c.Channel == channel && c.Reason == string(notify.ChannelGone)
		})
	}
}

// reviveMessages takes up what was given up and fits.
func (s *Server) reviveMessages(ctx context.Context, fits func(store.Conversation) bool) {
	dead, err := s.store.DeadConversations(ctx)
	if err != nil {
		s.log.Warn("messages that were given up not read", zap.Error(err))
		return
	}
	n := 0
	for _, c := range dead {
		if c.State != store.Dead || !fits(c) {
			continue
		}
		if _, err := s.store.ReviveConversation(ctx, c.ID, s.now()); err != nil && !errors.Is(err, store.ErrNotFound) {
			s.log.Warn("message not taken up again", zap.String("incident_id", c.IncidentID), zap.Error(err))
			continue
		}
		n++
	}
	if n > 0 {
		s.log.Info("messages that were given up are delivered after all", zap.Int("count", n))
		signal(s.tell)
	}
}

// Revive takes up all messages that were given up: after a start and after a reload the cause may be gone.
func (s *Server) Revive(ctx context.Context) {
	s.reviveMessages(ctx, func(store.Conversation) bool { return true })
}

// storeHealth remembers the store's last answer for a moment.
type storeHealth struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// pingStore asks the store whether it takes writes, at most once a moment.
func (s *Server) pingStore(ctx context.Context) error {
	h := &s.disk
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); h.at.IsZero() || now.Sub(h.at) >= storeFresh {
		h.err, h.at = s.store.Ping(ctx), now
	}
	return h.err
}
