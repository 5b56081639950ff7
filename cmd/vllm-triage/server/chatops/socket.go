package chatops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"go.uber.org/zap"
)

const (
	// firstPause and longestPause bound the wait between two attempts to connect.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// authPause is the wait after Slack refused the token: only a person can mend that.
	authPause = time.Minute
	// maxFrame bounds a message from Slack, in bytes.
	maxFrame = 1 << 20
	// maxAck is Slack's limit for an answer through the socket; larger ones it drops without a word.
	maxAck = 20_000
)

// RunSocket keeps a Socket Mode connection until ctx ends: it connects, answers, and connects again, with longer waits as
// long as it fails. It returns ctx's error.
func (s *Service) RunSocket(ctx context.Context) error {
	pause := firstPause
	for {
		began := s.now()
		err := s.socketOnce(ctx)
		s.unlink()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.now().Sub(began) > time.Minute {
			pause = firstPause // It had worked.
		}
		wait := pause/2 + rand.N(pause) //nolint:gosec // Jitter needs no secrecy.
		limited, isLimit := errors.AsType[*slackgo.RateLimitedError](err)
		switch {
		case isLimit:
			wait = max(wait, limited.RetryAfter)
		case isAuth(err):
			wait = authPause
			s.log.Error("slack refused the app token: renew slack.app_token (xapp-…, scope connections:write)", zap.Error(err))
		}
		s.log.Warn("socket to slack is down", zap.Error(err), zap.Duration("next_attempt_in", wait))
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		pause = min(2*pause, longestPause)
	}
}

// isAuth says whether an error is Slack's no to a token.
func isAuth(err error) bool {
	if err == nil {
		return false
	}
	switch err.Error() {
	case "invalid_auth", "account_inactive", "not_authed", "token_revoked", "not_allowed_token_type", "missing_scope":
		return true
	}
	return false
}

func (s *Service) unlink() {
	if s.linked.Swap(false) {
		s.isAlive() // It was, until a moment ago.
	}
}

// socketOnce holds one connection, and those that Slack asks to replace it with.
func (s *Service) socketOnce(ctx context.Context) error {
	token, err := read(s.c.AppToken)
	if err != nil {
		return fmt.Errorf("read app token: %w", err)
	}
	api, err := s.api(slackgo.OptionAppLevelToken(token))
	if err != nil {
		return err
	}
	// The library waits up to five minutes between attempts of its own; ours are shorter, so its first failure ends it.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := socketmode.New(api, socketmode.OptionReadLimit(maxFrame),
		socketmode.OptionLog(log.New(discard{}, "", 0))) // Its debug lines hold what people write.
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-client.Events:
				s.onSocket(ctx, cancel, client, e)
			}
		}
	}()
	err = client.RunContext(ctx)
	cancel(err)
	<-drained
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// onSocket takes one event of the library. It must not wait: the library's own work does.
func (s *Service) onSocket(ctx context.Context, cancel context.CancelCauseFunc, client *socketmode.Client, e socketmode.Event) {
	switch e.Type {
	case socketmode.EventTypeConnecting:
		s.unlink()
	case socketmode.EventTypeHello:
		s.linked.Store(true)
		s.isAlive()
		s.log.Info("socket to slack is up")
	case socketmode.EventTypeConnectionError:
		if failed, ok := e.Data.(*slackgo.ConnectionErrorEvent); ok {
			cancel(failed.ErrorObj)
		}
	case socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive, socketmode.EventTypeEventsAPI:
		if e.Request != nil {
			s.envelope(ctx, client, *e.Request)
		}
	case socketmode.EventTypeErrorBadMessage:
		// What the library could not decode, such as a message with a block that it does not know, is decoded here.
		if bad, ok := e.Data.(*socketmode.ErrorBadMessage); ok {
			var r socketmode.Request
			if err := json.Unmarshal(bad.Message, &r); err == nil && r.EnvelopeID != "" {
				s.envelope(ctx, client, r)
				return
			}
		}
		s.reject(EndpointSocket, RejectedPayload, errors.New("not a message of Socket Mode"))
	case socketmode.EventTypeIncomingError, socketmode.EventTypeErrorWriteFailed:
		s.log.Warn("socket to slack failed", zap.String("event", string(e.Type)))
	default:
	}
}

// envelope answers one request in a goroutine of its own.
func (s *Service) envelope(ctx context.Context, client *socketmode.Client, r socketmode.Request) {
	s.isAlive()
	started := s.run(func(work context.Context) {
		o, err := s.handle(work, r)
		if err != nil {
			s.reject(EndpointSocket, RejectedPayload, err)
		}
		// An envelope that is not acknowledged comes again: also one that could not be read is.
		if !r.AcceptsResponsePayload {
			s.lateBody(work, r, o)
			o.body = nil
		}
		if data, err := json.Marshal(o.body); err != nil || len(data) > maxAck {
			s.lateBody(work, r, o)
			o.body = nil
		}
		acking, cancel := context.WithTimeout(ctx, prompt)
		defer cancel()
		if err := client.AckCtx(acking, r.EnvelopeID, o.body); err != nil {
			s.log.Warn("slack's request not acknowledged", zap.Error(err))
		}
		s.follow(EndpointSocket, o)
	})
	if !started {
		s.reject(EndpointSocket, RejectedClosing, errors.New("shutting down"))
	}
}

// handle finds the handler for an envelope; they are those of HTTP.
func (s *Service) handle(ctx context.Context, r socketmode.Request) (outcome, error) {
	switch {
	case r.RetryAttempt > 0:
		s.reject(EndpointSocket, RejectedRetry, errors.New(r.RetryReason))
		return outcome{}, nil
	case r.Type == socketmode.RequestTypeSlashCommands:
		var in slash
		if err := json.Unmarshal(r.Payload, &in); err != nil || !in.valid() {
			return outcome{}, errors.New("not a slash command")
		}
		return s.onSlash(ctx, in), nil
	case r.Type == socketmode.RequestTypeInteractive:
		return s.onInteraction(ctx, r.Payload)
	case r.Type == socketmode.RequestTypeEventsAPI:
		return s.onEvent(r.Payload)
	default:
		return outcome{}, fmt.Errorf("unknown envelope %q", r.Type)
	}
}

// lateBody sends an answer that the socket does not take to the response URL.
func (s *Service) lateBody(ctx context.Context, r socketmode.Request, o outcome) {
	body, ok := o.body.(map[string]any)
	if !ok {
		return
	}
	var in slash
	if err := json.Unmarshal(r.Payload, &in); err != nil {
		return
	}
	text, _ := body["text"].(string)
	blocks, _ := body["blocks"].([]slackgo.Block)
	s.tell(ctx, s.place(in.ResponseURL, in.Channel, in.User, ""), answer{text: text, plain: text, blocks: blocks})
}
