package fakeslack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits of response URLs and triggers.
const (
	responseUses     = 5
	responseLifetime = 30 * time.Minute
	triggerLifetime  = 3 * time.Second
)

// Sign returns the headers that Slack signs a request body with.
func Sign(secret string, at time.Time, body []byte) http.Header {
	ts := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("v0:" + ts + ":")) // A hash never fails.
	_, _ = mac.Write(body)
	h := http.Header{}
	h.Set("X-Slack-Request-Timestamp", ts)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	h.Set("Content-Type", "application/x-www-form-urlencoded")
	return h
}

// SlashRequest is the request that Slack makes when somebody types a slash command. Base is where this server is
// reached, for the response URL.
func (s *Server) SlashRequest(ctx context.Context, target, secret, base, channel, user, command, text string) (*http.Request, error) {
	form := url.Values{
		"team_id": {"T0EXAMPLE"}, "channel_id": {channel}, "user_id": {user}, "command": {command}, "text": {text},
		"response_url": {s.NewResponseURL(base, channel, user, "")}, "trigger_id": {s.NewTrigger()},
	}
	return signed(ctx, target, secret, s.now(), form)
}

// Press is what somebody does with an element of a message.
type Press struct {
	Channel, TS, User string
	ActionID, Value   string
	// Option is the value of the option that was chosen in a menu.
	Option string
}

// InteractionRequest is the request that Slack makes when somebody presses a button or chooses from a menu.
func (s *Server) InteractionRequest(ctx context.Context, target, secret, base string, p Press) (*http.Request, error) {
	s.mu.Lock()
	m := s.message(p.Channel, p.TS)
	var message answer
	if m != nil {
		message = shape(m, true)
	}
	s.mu.Unlock()
	action := answer{"action_id": p.ActionID, "block_id": "b", "type": "button", "value": p.Value, "action_ts": p.TS}
	if p.Option != "" {
		action = answer{
			"action_id": p.ActionID, "block_id": "b", "type": "static_select", "action_ts": p.TS,
			"selected_option": answer{"value": p.Option, "text": answer{"type": "plain_text", "text": p.Option}},
		}
	}
	payload := answer{
		"type":       "block_actions",
		"user":       answer{"id": p.User, "username": p.User, "team_id": "T0EXAMPLE"},
		"team":       answer{"id": "T0EXAMPLE"},
		"channel":    answer{"id": p.Channel, "name": "channel"},
		"container":  answer{"type": "message", "message_ts": p.TS, "channel_id": p.Channel},
		"message":    message,
		"trigger_id": s.NewTrigger(), "response_url": s.NewResponseURL(base, p.Channel, p.User, p.TS),
		"actions": []answer{action},
	}
	return payloadRequest(ctx, target, secret, s.now(), payload)
}

// SubmitRequest is the request that Slack makes when somebody submits a modal. Values is the state of its inputs:
// block id, action id, and the element's state.
func (s *Server) SubmitRequest(
	ctx context.Context, target, secret, user string, v View, values map[string]map[string]any,
) (*http.Request, error) {
	payload := answer{
		"type": "view_submission",
		"user": answer{"id": user, "username": user, "team_id": "T0EXAMPLE"},
		"team": answer{"id": "T0EXAMPLE"},
		"view": answer{
			"id": v.ID, "type": "modal", "callback_id": v.CallbackID, "private_metadata": v.PrivateMetadata, "hash": v.Hash,
			"state": answer{"values": values},
		},
	}
	return payloadRequest(ctx, target, secret, s.now(), payload)
}

func payloadRequest(ctx context.Context, target, secret string, at time.Time, payload answer) (*http.Request, error) {
	b, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return signed(ctx, target, secret, at, url.Values{"payload": {string(b)}})
}

func signed(ctx context.Context, target, secret string, at time.Time, form url.Values) (*http.Request, error) {
	body := []byte(form.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header = Sign(secret, at, body)
	return req, nil
}

// response is a response URL that was handed out.
type response struct {
	channel, user, ts string
	uses              int
	expires           time.Time
}

// NewResponseURL hands out a response URL, good for 5 uses within 30 minutes. ts is the message that an interaction
// came from, or empty.
func (s *Server) NewResponseURL(base, channel, user, ts string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	id := "R" + strconv.Itoa(s.serial)
	s.responses[id] = &response{channel: channel, user: user, ts: ts, expires: s.now().Add(responseLifetime)}
	return strings.TrimRight(base, "/") + "/response/" + id
}

func (s *Server) respond(w http.ResponseWriter, r *http.Request, id string) {
	call := Call{Method: "response_url", At: s.now()}
	if f := s.fault("response_url"); f != nil && f.before(w, r, s.closed) {
		s.record(call, f.label())
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "read body", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	code := s.useResponse(id, body)
	s.mu.Unlock()
	s.record(call, code)
	if code != "" {
		w.WriteHeader(http.StatusNotFound)
		writeJSON(w, fail(code))
		return
	}
	_, _ = io.WriteString(w, "ok") // The message is there already.
}

func (s *Server) useResponse(id string, body []byte) string {
	u := s.responses[id]
	switch {
	case u == nil:
		return "invalid_url"
	case s.now().After(u.expires):
		return "expired_url"
	case u.uses >= responseUses:
		return "used_url"
	}
	var in struct {
		Text         string          `json:"text"`
		Blocks       json.RawMessage `json:"blocks"`
		ResponseType string          `json:"response_type"`
		Replace      bool            `json:"replace_original"`
		Delete       bool            `json:"delete_original"`
		ThreadTS     string          `json:"thread_ts"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return "invalid_payload"
	}
	if len(in.Blocks) > 0 && string(in.Blocks) != "null" {
		// The sum of texts does not count here (slackapi/bolt-js#2509).
		if code, _ := Validate(in.Blocks); code != "" && code != "msg_blocks_too_long" {
			return code
		}
	}
	for _, v := range ReadMarkup(in.Text, in.Blocks).Violations {
		s.violation = append(s.violation, "response_url: "+v)
	}
	u.uses++
	original := s.message(u.channel, u.ts)
	switch {
	case in.Delete && original != nil:
		original.Deleted = true
		return ""
	case in.Replace && original != nil:
		original.Edits = append(original.Edits, Edit{At: s.now(), Text: original.Text, Blocks: original.Blocks})
		original.Text, original.Blocks = in.Text, in.Blocks
		return ""
	}
	c := s.channel(u.channel)
	if c == nil {
		return "channel_not_found"
	}
	m := &Message{Channel: c.ID, TS: s.nextTS(), User: BotUser, Text: in.Text, Blocks: in.Blocks, ThreadTS: in.ThreadTS}
	if in.ResponseType != "in_channel" {
		m.To = u.user
	}
	c.messages = append(c.messages, m)
	return ""
}

// NewTrigger hands out a trigger id, good for 3 seconds.
func (s *Server) NewTrigger() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	id := "trigger." + strconv.Itoa(s.serial)
	s.triggers[id] = s.now().Add(triggerLifetime)
	return id
}
