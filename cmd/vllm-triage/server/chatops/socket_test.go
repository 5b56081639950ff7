package chatops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
	"vllm-triage/notify/slack/fakeslack"
)

// socket is Slack's end of Socket Mode.
type socket struct {
	w      *world
	server *httptest.Server
	mu     sync.Mutex
	conns  []*websocket.Conn
	acks   map[string]json.RawMessage
	opened int
	token  string
	// refuse answers apps.connections.open with errors, one each.
	refuse []string
}

// newSocket makes the workspace speak Socket Mode, and runs the service's end until the test ends.
func newSocket(t *testing.T, w *world) *socket {
	t.Helper()
	s := &socket{w: w, acks: map[string]json.RawMessage{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	w.change(func() { w.connect = s.openConnection })
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.service.RunSocket(ctx) }()
	t.Cleanup(func() {
		stop()
		require.ErrorIs(t, <-done, context.Canceled)
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close() // The other end may have done so.
		}
		s.mu.Unlock()
		s.server.Close()
	})
	return s
}

// openConnection answers apps.connections.open.
func (s *socket) openConnection(r *http.Request) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	s.token = r.Header.Get("Authorization")
	if len(s.refuse) > 0 {
		code := s.refuse[0]
		s.refuse = s.refuse[1:]
		return map[string]any{"ok": false, "error": code}
	}
	return map[string]any{"ok": true, "url": strings.Replace(s.server.URL, "http://", "ws://", 1)}
}

func (s *socket) serve(w http.ResponseWriter, r *http.Request) {
	c, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.conns = append(s.conns, c)
	_ = c.WriteMessage(websocket.PingMessage, nil)
	_ = c.WriteJSON(map[string]any{"type": "hello", "num_connections": 1})
	s.mu.Unlock()
	for {
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		if err := c.ReadJSON(&ack); err != nil {
			return
		}
		s.mu.Lock()
		s.acks[ack.EnvelopeID] = ack.Payload
		s.mu.Unlock()
	}
}

// send sends an envelope over the newest connection and returns what it is acknowledged with.
func (s *socket) send(id, kind string, payload any, more ...map[string]any) string {
	s.w.t.Helper()
	envelope := map[string]any{"type": kind, "envelope_id": id, "payload": payload, "accepts_response_payload": true}
	for _, m := range more {
		maps.Copy(envelope, m)
	}
	began := time.Now()
	s.mu.Lock()
	err := s.conns[len(s.conns)-1].WriteJSON(envelope)
	s.mu.Unlock()
	require.NoError(s.w.t, err)
	var ack json.RawMessage
	s.w.eventually("acknowledged "+id, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		var ok bool
		ack, ok = s.acks[id]
		return ok
	})
	require.Less(s.w.t, time.Since(began), 3*time.Second)
	require.Less(s.w.t, len(ack), 20<<10)
	return string(ack)
}

func (s *socket) up() {
	s.w.t.Helper()
	s.w.eventually("the socket is up", func() bool { return time.Since(s.w.service.LastAlive()) < time.Second })
}

func (s *socket) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func socketWorld(t *testing.T) (*world, *socket) {
	t.Helper()
	w := newWorld(t, func(_ *chatops.Settings, c *chatops.Config) {
		c.SigningSecret = nil // Not needed.
		c.AppToken = func() (string, error) { return "xapp-canary", nil }
	})
	require.True(t, w.service.LastAlive().IsZero())
	s := newSocket(t, w)
	s.up()
	return w, s
}

func (s *socket) slashPayload(text string) map[string]any {
	return map[string]any{
		"team_id": "T0EXAMPLE", "channel_id": channel, "user_id": ann, "command": "/vllm-triage", "text": text,
		"response_url": s.w.fake.NewResponseURL(s.w.slack.URL, channel, ann, ""),
	}
}

func TestSocketMode(t *testing.T) {
	t.Parallel()
	w, s := socketWorld(t)
	require.Equal(t, "Bearer xapp-canary", s.token)
	ack := s.send("1", "slash_commands", s.slashPayload("llama for 30m"))
	require.Contains(t, ack, "Looking at llama")
	require.Contains(t, ack, `"response_type":"ephemeral"`)
	require.Contains(t, w.private(1, ann).Text, "KV cache full")

	ts := w.open(incID, notifytest.KVLongerOutputs())
	press := func(action, value string, message any) map[string]any {
		return map[string]any{
			"type": "block_actions", "user": map[string]any{"id": kim}, "channel": map[string]any{"id": channel},
			"container": map[string]any{"message_ts": ts, "channel_id": channel}, "trigger_id": w.fake.NewTrigger(),
			"response_url": w.fake.NewResponseURL(w.slack.URL, channel, kim, ts), "message": message,
			"actions": []any{map[string]any{"action_id": action, "value": value, "type": "button"}},
		}
	}
	require.Empty(t, s.send("2", "interactive", press(slack.ActionRight, incID, nil)))
	require.Contains(t, w.private(2, kim).Text, "스레드에 기록했습니다")

	// The library cannot decode this message; it is answered nevertheless.
	strange := map[string]any{"blocks": []any{map[string]any{"type": "table", "rows": 7}, "no block"}}
	require.Empty(t, s.send("3", "interactive", press(slack.ActionWrong, incID, strange)))
	w.eventually("a modal", func() bool { return len(w.fake.Views()) == 1 })
	v := w.fake.Views()[0]
	submit := map[string]any{
		"type": "view_submission", "user": map[string]any{"id": kim},
		"view": map[string]any{"callback_id": v.CallbackID, "private_metadata": v.PrivateMetadata, "state": map[string]any{"values": map[string]any{}}},
	}
	require.Contains(t, s.send("4", "interactive", submit), `"response_action":"errors"`)
	require.Empty(t, s.send("5", "events_api", map[string]any{
		"type": "event_callback", "event": map[string]any{"type": "app_uninstalled"},
	}, map[string]any{"accepts_response_payload": false}))
	require.Contains(t, fmt.Sprint(w.logs.All()), "renew slack.bot_token")

	require.Empty(t, s.send("6", "slash_commands", s.slashPayload("models"), map[string]any{"retry_attempt": 1, "retry_reason": "timeout"}))
	require.Equal(t, 1, w.counts.get("socket/retry"))
	require.Zero(t, w.counts.get("models/done"))
	require.Empty(t, s.send("7", "slash_commands", map[string]any{"text": "help"}), "acknowledged, or it would come again")
	require.Equal(t, 1, w.counts.get("socket/bad_payload"))

	// An answer that the socket does not take goes to the response URL.
	require.Empty(t, s.send("8", "slash_commands", s.slashPayload("help"), map[string]any{"accepts_response_payload": false}))
	require.Contains(t, w.private(3, ann).Text, "What I can do")
}

func TestSocketReconnects(t *testing.T) {
	t.Parallel()
	w, s := socketWorld(t)
	s.mu.Lock()
	require.NoError(t, s.conns[0].WriteJSON(map[string]any{"type": "disconnect", "reason": "refresh_requested"}))
	s.mu.Unlock()
	w.eventually("a new connection", func() bool { return s.connections() == 2 })
	s.up()
	require.Contains(t, s.send("1", "slash_commands", s.slashPayload("help")), "What I can do")

	s.mu.Lock()
	s.refuse = []string{"internal_error"}
	require.NoError(t, s.conns[1].Close()) // The line is cut, and the first attempt to connect again fails.
	s.mu.Unlock()
	w.eventually("another one", func() bool { return s.connections() == 3 })
	s.up()
	require.NotEmpty(t, w.logs.FilterMessage("socket to slack is down").All())
	require.Contains(t, s.send("2", "slash_commands", s.slashPayload("help")), "What I can do")
}

func TestASocketThatIsDownIsNotAlive(t *testing.T) {
	t.Parallel()
	w, s := socketWorld(t)
	w.ahead.Store(int64(time.Hour))
	require.Less(t, w.now().Sub(w.service.LastAlive()), time.Minute, "a quiet socket that is up is alive")
	s.mu.Lock()
	s.refuse = []string{"invalid_auth", "invalid_auth"}
	require.NoError(t, s.conns[0].Close())
	s.mu.Unlock()
	w.eventually("it is refused", func() bool { return w.logs.FilterMessageSnippet("slack refused the app token").Len() > 0 })
	w.ahead.Store(int64(2 * time.Hour))
	require.Greater(t, w.now().Sub(w.service.LastAlive()), 30*time.Minute)
	for _, l := range w.logs.All() {
		require.NotContains(t, fmt.Sprint(l.ContextMap()), "xapp-")
	}
}

func TestSocketWithoutAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *chatops.Settings, c *chatops.Config) {
		c.AppToken = func() (string, error) { return "", errors.New("no such file") }
	})
	s := newSocket(t, w)
	w.eventually("it is said", func() bool {
		return strings.Contains(fmt.Sprint(w.logs.FilterMessage("socket to slack is down").All()), "read app token")
	})
	require.Zero(t, s.connections())
}

func TestLastAliveOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.True(t, w.service.LastAlive().IsZero())
	r := signed(t, w.app.URL+"/slack/events", []byte(`{"type":"x"}`))
	r.Header = fakeslack.Sign("another", time.Now(), []byte(`{"type":"x"}`))
	w.do(r, nil)
	require.True(t, w.service.LastAlive().IsZero(), "anybody can send what is not signed")
	w.do(signed(t, w.app.URL+"/slack/events", []byte(`{"type":"x"}`)), nil)
	require.WithinDuration(t, w.now(), w.service.LastAlive(), 5*time.Second)
}
