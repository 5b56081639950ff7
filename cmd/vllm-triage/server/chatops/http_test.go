package chatops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack/fakeslack"
)

// signed makes a request with a body, signed now.
func signed(t testing.TB, target string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header = fakeslack.Sign(secret, time.Now(), body)
	return r
}

func signedForm(t testing.TB, target string, form url.Values) *http.Request {
	t.Helper()
	return signed(t, target, []byte(form.Encode()))
}

func slashForm(text string) url.Values {
	return url.Values{"team_id": {"T1"}, "channel_id": {channel}, "user_id": {ann}, "text": {text}}
}

func TestRequestsThatAreNotSlacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Now().Unix()
	form := []byte(slashForm("help").Encode())
	target := w.app.URL + "/slack/commands"
	change := func(f func(*http.Request)) *http.Request {
		r := signed(t, target, form)
		f(r)
		return r
	}
	other := fakeslack.Sign("another-secret", time.Now(), form)
	for name, tc := range map[string]struct {
		r      *http.Request
		status int
		reason chatops.Rejection
	}{
		"unsigned": {change(func(r *http.Request) { r.Header = http.Header{} }), 401, chatops.RejectedHeaders},
		"no time":  {change(func(r *http.Request) { r.Header.Del("X-Slack-Request-Timestamp") }), 401, chatops.RejectedHeaders},
		"another secret": {
			change(func(r *http.Request) { r.Header = other }), 401, chatops.RejectedSignature,
		},
		"a changed body": {
			change(func(r *http.Request) {
				r.Body = io.NopCloser(bytes.NewReader(append(form, '1')))
				r.ContentLength++
			}), 401, chatops.RejectedSignature,
		},
		"garbage": {change(func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v0=zz") }), 401, chatops.RejectedSignature},
		"another scheme": {
			change(func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v1=00") }), 401, chatops.RejectedSignature,
		},
		"a time that is none": {
			change(func(r *http.Request) { r.Header.Set("X-Slack-Request-Timestamp", "soon") }), 401, chatops.RejectedSignature,
		},
		"another time": {
			change(func(r *http.Request) {
				r.Header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(time.Now().Unix()-10, 10))
			}), 401, chatops.RejectedSignature,
		},
		"old": {
			change(func(r *http.Request) { r.Header = fakeslack.Sign(secret, time.Now().Add(-6*time.Minute), form) }), 401,
			chatops.RejectedClock,
		},
		"from the future": {
			change(func(r *http.Request) { r.Header = fakeslack.Sign(secret, time.Now().Add(6*time.Minute), form) }), 401,
			chatops.RejectedClock,
		},
		"old and forged": {
			change(func(r *http.Request) { r.Header = fakeslack.Sign("another", time.Now().Add(-6*time.Minute), form) }), 401,
			chatops.RejectedSignature,
		},
		"a GET": {change(func(r *http.Request) { r.Method = http.MethodGet }), 405, chatops.RejectedMethod},
		"too large": {
			signed(t, target, bytes.Repeat([]byte("a"), 256<<10+1)), 413, chatops.RejectedTooLarge,
		},
		"no command": {signed(t, target, []byte("a=b")), 400, chatops.RejectedPayload},
		"no form":    {signed(t, target, []byte("a=%zz")), 400, chatops.RejectedPayload},
	} {
		before := w.counts.get("slash/" + string(tc.reason))
		status, body := w.do(tc.r, nil)
		require.Equal(t, tc.status, status, name)
		require.NotContains(t, body, "models", name)
		require.Less(t, len(body), 100, name)
		require.Equal(t, before+1, w.counts.get("slash/"+string(tc.reason)), name)
	}
	require.Len(t, chatops.Rejections(), 12)
	require.NotEmpty(t, chatops.Endpoints())
	require.NotEmpty(t, chatops.Outcomes())

	logs := fmt.Sprint(w.logs.FilterMessage("request of slack not handled").All())
	// Six minutes off, and as many seconds more as began between the signature and its check.
	passed := time.Now().Unix() - began
	said := regexp.MustCompile(`this server's clock differs by (-?\d+) s from Slack's`).FindAllStringSubmatch(logs, -1)
	require.Len(t, said, 2, logs)
	differs := []int64{}
	for _, m := range said {
		n, err := strconv.ParseInt(m[1], 10, 64)
		require.NoError(t, err)
		differs = append(differs, n)
	}
	slices.Sort(differs)
	for i, want := range []int64{-360, 360} {
		require.GreaterOrEqual(t, differs[i], want)
		require.LessOrEqual(t, differs[i], want+passed)
	}
	require.Contains(t, logs, "time synchronisation")

	// Within five minutes a clock may be off.
	r := signed(t, target, form)
	r.Header = fakeslack.Sign(secret, time.Now().Add(-4*time.Minute), form)
	status, body := w.do(r, nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "What I can do")
}

func TestFloodsAreLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 50 {
		r := signed(t, w.app.URL+"/slack/commands", nil)
		r.Header = http.Header{}
		status, _ := w.do(r, nil)
		require.Equal(t, http.StatusUnauthorized, status)
	}
	w.counted("slash/missing_headers", 50)
	require.Less(t, w.logs.FilterMessage("request of slack not handled").Len(), 6)
}

func TestWithoutASecretNothingIsTaken(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func() (string, error){
		"empty":      func() (string, error) { return "", nil },
		"blank":      func() (string, error) { return " \n", nil },
		"unreadable": func() (string, error) { return "", errors.New("no such file") },
		"none":       nil,
	} {
		w := newWorld(t, func(_ *chatops.Settings, c *chatops.Config) { c.SigningSecret = read })
		for _, sign := range []string{"", " ", secret} {
			form := []byte(slashForm("help").Encode())
			r := signed(t, w.app.URL+"/slack/commands", form)
			r.Header = fakeslack.Sign(sign, time.Now(), form)
			status, _ := w.do(r, nil)
			require.Equal(t, http.StatusServiceUnavailable, status, name)
		}
		w.counted("slash/no_secret", 3)
	}
}

func TestSecretsMayChange(t *testing.T) {
	t.Parallel()
	now := "old"
	w := newWorld(t, func(_ *chatops.Settings, c *chatops.Config) {
		c.SigningSecret = func() (string, error) { return now, nil }
	})
	form := []byte(slashForm("help").Encode())
	for _, s := range []string{"old", "new"} {
		now = s
		r := signed(t, w.app.URL+"/slack/commands", form)
		r.Header = fakeslack.Sign(s, time.Now(), form)
		status, _ := w.do(r, nil)
		require.Equal(t, http.StatusOK, status)
	}
}

// TestNothingIsHandledTwice covers what Slack sends again and what somebody recorded.
func TestNothingIsHandledTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	form := []byte(slashForm("models").Encode())
	r := signed(t, w.app.URL+"/slack/commands", form)
	header := r.Header.Clone()
	status, _ := w.do(r, nil)
	require.Equal(t, http.StatusOK, status)
	w.counted("models/done", 1)
	again := signed(t, w.app.URL+"/slack/commands", form)
	again.Header = header
	w.ahead.Store(int64(time.Minute)) // The guard against repeated commands is over by then.
	status, body := w.do(again, nil)
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, body)
	w.counted("slash/replayed", 1)

	for _, path := range []string{"commands", "interactions", "events"} {
		r := signed(t, w.app.URL+"/slack/"+path, []byte(slashForm("incidents "+path).Encode()))
		r.Header.Set("X-Slack-Retry-Num", "1")
		r.Header.Set("X-Slack-Retry-Reason", "http_timeout")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, "1", resp.Header.Get("X-Slack-No-Retry"))
	}
	require.Equal(t, 1, w.counts.get("slash/retry"))
	require.Equal(t, 1, w.counts.get("interactivity/retry"))
	require.Equal(t, 1, w.counts.get("events/retry"))
	require.Zero(t, w.counts.get("incidents/done"))
}

func TestNothingInTheAddressCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status, _ := w.do(signed(t, w.app.URL+"/slack/commands?"+slashForm("help").Encode(), []byte("x=y")), nil)
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = w.do(signed(t, w.app.URL+"/slack/interactions?payload=%7B%22type%22%3A%22view_closed%22%7D", nil), nil)
	require.Equal(t, http.StatusBadRequest, status)
	status, body := w.do(signed(t, w.app.URL+"/slack/commands", []byte("ssl_check=1&token=x")), nil)
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, body)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	target := w.app.URL + "/slack/events"
	status, body := w.do(signed(t, target, []byte(`{"type":"url_verification","challenge":"3eZbrw1aB"}`)), nil)
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"challenge":"3eZbrw1aB"}`, body)
	status, body = w.do(signed(t, target, []byte(`{"type":"event_callback","event":{"type":"tokens_revoked"}}`)), nil)
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, body)
	require.Contains(t, fmt.Sprint(w.logs.All()), "renew slack.bot_token")
	status, _ = w.do(signed(t, target, []byte(`{"type":"event_callback","event":{"type":"message"}}`)), nil)
	require.Equal(t, http.StatusOK, status)
	for _, bad := range []string{"", "{", "[]", "{}", "null"} {
		status, _ = w.do(signed(t, target, []byte(bad)), nil)
		require.Equal(t, http.StatusBadRequest, status, bad)
	}
}

// TestPayloadsWithUnknownBlocks has a message with a block that no library decodes yet.
func TestPayloadsWithUnknownBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	payload, err := json.Marshal(map[string]any{
		"type": "block_actions", "user": map[string]any{"id": ann}, "channel": map[string]any{"id": channel},
		"container": map[string]any{"message_ts": ts, "channel_id": channel}, "response_url": w.fake.NewResponseURL(w.slack.URL, channel, ann, ts),
		"message": map[string]any{"blocks": []any{
			map[string]any{"type": "hologram", "elements": 7},
			map[string]any{"type": "table", "rows": []any{[]any{map[string]any{"type": "raw_vector", "text": 5}}}},
			"not even an object",
		}},
		"actions": []any{map[string]any{"action_id": "right", "value": incID, "type": []int{1}}},
	})
	require.NoError(t, err)
	status, body := w.do(signedForm(t, w.app.URL+"/slack/interactions", url.Values{"payload": {string(payload)}}), nil)
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, body)
	w.counted("feedback/done", 1)
}

func TestPayloadsThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, bad := range []string{
		"", "{", "null", "[]", `{"type":"block_actions"}`, `{"type":"block_actions","user":{"id":"U0ANN"}}`,
		`{"type":"block_actions","user":{"id":"U0ANN"},"actions":[{},{},{},{},{},{},{}]}`, `{"type":7,"user":{"id":"U0ANN"}}`,
		`{"type":"view_submission","user":{"id":"<!here>"}}`,
	} {
		status, _ := w.do(signedForm(t, w.app.URL+"/slack/interactions", url.Values{"payload": {bad}}), nil)
		require.Equal(t, http.StatusBadRequest, status, bad)
	}
	for _, other := range []string{"view_closed", "shortcut", "message_action", "something_new"} {
		status, body := w.do(signedForm(t, w.app.URL+"/slack/interactions",
			url.Values{"payload": {`{"type":"` + other + `","user":{"id":"U0ANN"}}`}}), nil)
		require.Equal(t, http.StatusOK, status, other)
		require.Empty(t, body)
	}
}

func TestClosing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := make(chan struct{})
	w.engine.set(func(e *engine) { e.hold = hold })
	w.slash(ann, "llama")
	w.eventually("it is under way", func() bool { return len(w.engine.questions()) == 1 })
	closed := make(chan error, 1)
	go func() { closed <- w.service.Close(t.Context()) }()
	w.eventually("it refuses", func() bool {
		w.ahead.Add(int64(time.Minute))
		return strings.Contains(w.slash(ann, "help"), "busy or restarting")
	})
	require.Empty(t, closed, "what was begun is finished first")
	close(hold)
	require.NoError(t, <-closed)
	require.Contains(t, w.private(1, ann).Text, "KV cache full")
	ts := w.fake.Say(channel, fakeslack.BotUser, "card")
	w.press(ann, ts, "right", incID, "")
	require.Contains(t, w.private(2, ann).Text, "busy or restarting")
}

func TestTooMuchAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := make(chan struct{})
	w.engine.set(func(e *engine) { e.hold = hold })
	refused := 0
	for i := range 80 {
		if strings.Contains(w.slash(bob, fmt.Sprintf("llama for %dm", i+1)), "busy") {
			refused++
		}
	}
	require.Equal(t, 80-64, refused)
	require.LessOrEqual(t, len(w.engine.questions()), 4, "a few at a time")
	close(hold)
	w.counted("triage/done", 64)
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	_, err := chatops.New(chatops.Config{})
	require.Error(t, err)
	_, err = chatops.New(chatops.Config{Settings: func() chatops.Settings { return chatops.Settings{} }, Store: &faulty{}})
	require.ErrorContains(t, err, "bot token")
}

// FuzzInteraction feeds signed payloads: none may bring it down.
func FuzzInteraction(f *testing.F) {
	for _, s := range []string{
		`{"type":"block_actions","user":{"id":"U0ANN"},"actions":[{"action_id":"silence","selected_option":{"value":"silence_1h:x"}}]}`,
		`{"type":"block_actions","user":{"id":"U0ANN"},"channel":{"id":"C1"},"actions":[{"action_id":"recheck","value":"x"}]}`,
		`{"type":"block_actions","user":{"id":"U0ANN"},"actions":[{"action_id":"expire_silence_0","value":"a,b|c"}]}`,
		`{"type":"block_actions","user":{"id":"U0ANN"},"actions":[{"action_id":"adhoc_share","value":"{\"t\":\"2026-11-29T00:00:00Z\"}"}]}`,
		`{"type":"view_submission","user":{"id":"U0ANN"},"view":{"callback_id":"feedback","private_metadata":"{\"i\":\"x\",\"o\":\"wrong\"}"}}`,
		`{"type":"view_submission","user":{"id":"U0ANN"},"view":{"state":{"values":{"cause":{"cause":{"selected_option":null}}}}}}`,
		`{`, `[]`,
	} {
		f.Add([]byte(s))
	}
	w := newFuzzWorld(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		body := []byte(url.Values{"payload": {string(payload)}}.Encode())
		if len(body) > 256<<10 {
			return
		}
		for _, path := range []string{"/slack/interactions", "/slack/events", "/slack/commands"} {
			sent := body
			if path == "/slack/events" {
				sent = payload
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(sent))
			r.Header = fakeslack.Sign(secret, time.Now(), sent)
			rec := httptest.NewRecorder()
			w.ServeHTTP(rec, r)
			require.Contains(t, []int{http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge}, rec.Code)
		}
	})
}
