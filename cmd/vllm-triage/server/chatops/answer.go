package chatops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"
)

// outcome is what a request is answered with at once, and what is done then.
type outcome struct {
	body  any // JSON; nil: an empty answer, which Slack takes as seen.
	after []task
}

// Limits of a response URL.
const (
	responseUses = 5
	// responseLifetime is a little less than Slack's 30 minutes, for the way.
	responseLifetime = 29 * time.Minute
)

// slackHosts are where Slack's response URLs lead.
var slackHosts = []string{"hooks.slack.com", "hooks.slack-gov.com"}

// place is where answers to one request go.
type place struct {
	url     string
	channel string
	user    string
	thread  string // Of the message that a button was pressed on; empty for commands.
	issued  time.Time

	mu   sync.Mutex
	uses int
	dead bool // The URL does not work any more.
}

// take takes one use of the response URL.
func (p *place) take(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.url == "" || p.dead || p.uses >= responseUses || now.Sub(p.issued) > responseLifetime {
		return false
	}
	p.uses++
	return true
}

func (p *place) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// pinned says whether a URL leads to Slack.
func (s *Service) pinned(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return false
	}
	return u.Scheme == "https" && slices.Contains(slackHosts, u.Host) ||
		(u.Scheme == "http" || u.Scheme == "https") && s.hosts[u.Host]
}

// place makes where to answer a request. A response URL that does not lead to Slack is not used.
func (s *Service) place(responseURL, channel, user, thread string) *place {
	p := &place{channel: channel, user: user, thread: thread, issued: s.now()}
	if s.pinned(responseURL) {
		p.url = responseURL
	} else if responseURL != "" {
		s.log.Warn("response URL does not lead to Slack and is not used")
	}
	return p
}

// ephemeral is an immediate answer that only the person sees.
func ephemeral(r reply) map[string]any {
	text, blocks := r.content()
	return map[string]any{"response_type": "ephemeral", "text": text, "blocks": blocks}
}

// private tells the person something that nobody else sees.
func (s *Service) private(ctx context.Context, p *place, r reply) {
	text, blocks := r.content()
	s.tell(ctx, p, answer{text: text, plain: text, blocks: blocks})
}

// answer is what is told after a request was answered.
type answer struct {
	text   string // For notifications.
	plain  string // The whole without blocks, for when they are refused.
	blocks []slackgo.Block
	public bool
}

// errDead says that a response URL cannot be used any more.
var errDead = errors.New("the response URL is used up or expired")

// tell delivers an answer: by the response URL as long as it works, then by a message to the channel, and what is private
// at last by a direct message.
func (s *Service) tell(ctx context.Context, p *place, a answer) {
	err := errDead
	if p.take(s.now()) {
		err = s.respond(ctx, p.url, a)
		if errors.Is(err, errDead) {
			p.kill()
		}
	}
	if err != nil && !errors.Is(err, errMaybe) {
		err = s.message(ctx, p, a)
	}
	s.metrics.Answered(err == nil)
	if err != nil {
		s.log.Warn("answer not delivered", zap.String("channel", p.channel), zap.String("user", p.user), zap.Error(err))
		return
	}
	s.isAlive()
}

// errMaybe says that an answer may have arrived although nobody confirmed it; for one that all see, once is enough.
var errMaybe = errors.New("the answer may have arrived")

// respond posts to a response URL. When Slack refuses the blocks it posts the text.
func (s *Service) respond(ctx context.Context, address string, a answer) error {
	kind := slackgo.ResponseTypeEphemeral
	if a.public {
		kind = slackgo.ResponseTypeInChannel
	}
	body := map[string]any{"response_type": kind, "replace_original": false, "text": a.text, "blocks": a.blocks}
	err := s.post(ctx, address, body, a.public)
	if refused, ok := errors.AsType[*refusedError](err); ok && strings.Contains(refused.code, "block") {
		s.log.Warn("blocks of an answer were refused", zap.String("code", refused.code))
		delete(body, "blocks")
		body["text"] = a.plain
		err = s.post(ctx, address, body, a.public)
	}
	return err
}

// refusedError is a response URL's no.
type refusedError struct {
	status int
	code   string
}

func (e *refusedError) Error() string {
	return "response URL: status " + strconv.Itoa(e.status) + " " + e.code
}

// post sends one body, twice when Slack limits the rate and does not ask for a long wait.
func (s *Service) post(ctx context.Context, address string, body map[string]any, public bool) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	for attempt := 0; ; attempt++ {
		wait, sent, err := s.postOnce(ctx, address, data)
		if wait == 0 || attempt > 0 {
			if netErr, ok := errors.AsType[*url.Error](err); ok { // The address is a secret: it stays out of errors.
				err = fmt.Errorf("response URL: %w", netErr.Err)
				if public && sent {
					err = fmt.Errorf("%w: %w", errMaybe, netErr.Err)
				}
			}
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// longestWait is how long to wait for a rate limit; beyond it the answer goes another way.
const longestWait = 10 * time.Second

func (s *Service) postOnce(ctx context.Context, address string, data []byte) (wait time.Duration, sent bool, err error) {
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { wrote.Store(info.Err == nil) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return 0, wrote.Load(), err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, wrote.Load(), err
	}
	defer resp.Body.Close()
	head, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil && resp.StatusCode/100 == 2 {
		return 0, true, nil // It was taken; what it says about it does not matter.
	}
	code := codeOf(head)
	switch {
	case resp.StatusCode/100 == 2 && code == "":
		return 0, true, nil
	case resp.StatusCode == http.StatusTooManyRequests:
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil {
			after = 1
		}
		if d := time.Duration(after) * time.Second; d <= longestWait {
			return max(d, 50*time.Millisecond), true, &refusedError{resp.StatusCode, "ratelimited"}
		}
		return 0, true, &refusedError{resp.StatusCode, "ratelimited"}
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone, slices.Contains(
		[]string{"expired_url", "used_url", "invalid_url"}, code):
		return 0, true, fmt.Errorf("%w: %w", errDead, &refusedError{resp.StatusCode, code})
	default:
		return 0, true, &refusedError{resp.StatusCode, code}
	}
}

// codeOf is the error code in an answer of a response URL: "ok", {"ok":true} and an empty body are none.
func codeOf(body []byte) string {
	text := strings.TrimSpace(string(body))
	var object struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	switch {
	case text == "" || text == "ok":
		return ""
	case json.Unmarshal(body, &object) == nil:
		if object.OK {
			return ""
		}
		text = object.Error
	}
	if len(text) > 60 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") != "" || text == "" {
		return "unknown" // Nothing else of a body gets into logs.
	}
	return text
}

// message delivers an answer as a message to the channel or the person.
func (s *Service) message(ctx context.Context, p *place, a answer) error {
	api, err := s.api()
	if err != nil {
		return err
	}
	options := func(blocks bool) []slackgo.MsgOption {
		out := []slackgo.MsgOption{slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}
		if blocks {
			out = append(out, slackgo.MsgOptionText(a.text, false), slackgo.MsgOptionBlocks(a.blocks...))
		} else {
			out = append(out, slackgo.MsgOptionText(a.plain, false))
		}
		if a.public && p.thread != "" {
			out = append(out, slackgo.MsgOptionTS(p.thread))
		}
		return out
	}
	send := func(blocks bool) error {
		if a.public {
			_, _, err := api.PostMessageContext(ctx, p.channel, options(blocks)...)
			return err
		}
		_, err := api.PostEphemeralContext(ctx, p.channel, p.user, options(blocks)...)
		return err
	}
	err = send(true)
	if refused, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok && strings.Contains(refused.Err, "block") {
		err = send(false)
	}
	if err == nil || a.public || !isUser(p.user) {
		return err
	}
	// The bot is not in that channel: a direct message reaches the person.
	p = &place{channel: p.user}
	if _, _, direct := api.PostMessageContext(ctx, p.channel, options(true)...); direct != nil {
		return errors.Join(err, direct)
	}
	return nil
}
