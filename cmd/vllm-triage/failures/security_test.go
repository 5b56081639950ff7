package failures_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/store"
)

// get asks for an address with some headers and returns status, headers and body.
func (s *service) get(t *testing.T, address string, headers ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http.URL+address, http.NoBody)
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(body)
}

func TestWebhookNeedsCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = "webhook: {bearer_token: " + token + ", basic_auth: {username: am, password: " + token + "}}"
	s := w.startWith(t, "webhook")
	body := payload(alert{name: "A", model: "demo", start: ago(time.Minute)})
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for authorization, want := range map[string]int{
		"":                           http.StatusUnauthorized,
		"Bearer ":                    http.StatusUnauthorized,
		"Bearer wrong":               http.StatusUnauthorized,
		"Bearer " + token + "x":      http.StatusUnauthorized,
		"bearer":                     http.StatusUnauthorized,
		basic("am", "wrong"):         http.StatusUnauthorized,
		basic("other", token):        http.StatusUnauthorized,
		basic("", ""):                http.StatusUnauthorized,
		"Basic !!!":                  http.StatusUnauthorized,
		"Bearer " + token:            http.StatusOK,
		basic("am", token):           http.StatusOK,
		"Digest username=\"am\"":     http.StatusUnauthorized,
		"Bearer " + token + " extra": http.StatusUnauthorized,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+"/webhook/alertmanager", bytes.NewReader(body))
		require.NoError(t, err)
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, authorization)
	}
	all, err := s.store.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	require.Len(t, all, 1)
}

// The file with the token is changed: the new one counts at once, the old one no more; an empty or missing file lets nobody in.
func TestWebhookTokenIsReadOnEachUse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("first-0123456789"), 0o600))
	w := newWorld(t)
	w.settings = "webhook: {bearer_token_file: " + file + "}"
	s := w.startWith(t, "webhook")
	may := func(token string) bool {
		status, _, _ := s.get(t, "/api/v1/incidents", "Authorization", "Bearer "+token)
		return status == http.StatusOK
	}
	require.True(t, may("first-0123456789"))
	require.NoError(t, os.WriteFile(file, []byte("second-0123456789\n"), 0o600))
	require.True(t, may("second-0123456789"))
	require.False(t, may("first-0123456789"))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.False(t, may(""))
	require.NoError(t, os.Remove(file))
	require.False(t, may("second-0123456789"))
}

func TestBadBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	good := string(payload(alert{name: "A", model: "demo", start: ago(time.Minute)}))
	many := make([]alert, 10_001)
	for i := range many {
		many[i] = alert{name: "A", model: "m", start: ago(time.Minute)}
	}
	for name, tc := range map[string]struct {
		body   string
		status int
		answer string
	}{
		"empty":        {"", http.StatusBadRequest, "not JSON"},
		"no JSON":      {"<html>", http.StatusBadRequest, "not JSON"},
		"version":      {strings.Replace(good, `"version":"4"`, `"version":"1"`, 1), http.StatusBadRequest, `version is "1", want "4"`},
		"trailing":     {good + "x", http.StatusBadRequest, "after top-level value"},
		"deep":         {strings.Repeat("[", 100_000), http.StatusBadRequest, "nests deeper"},
		"too large":    {good + strings.Repeat(" ", 3<<20), http.StatusRequestEntityTooLarge, "larger than 2MiB"},
		"many alerts":  {string(payload(many...)), http.StatusRequestEntityTooLarge, "larger than 2MiB"},
		"no alerts":    {strings.Replace(good, `"alerts":[`, `"alerts":[],"x":[`, 1), http.StatusBadRequest, "has no alerts"},
		"wrong status": {strings.Replace(good, `"status":"firing"`, `"status":"on"`, 1), http.StatusBadRequest, `status is "on"`},
	} {
		status, answer := s.post(t, []byte(tc.body))
		require.Equal(t, tc.status, status, "%s: %s", name, answer)
		require.Contains(t, answer, tc.answer, name)
		require.Less(t, len(answer), 1000, name)
	}
	require.InDelta(t, 7, s.metric(t, `vllm_triage_webhook_requests_total{result="invalid"}`), 0)
	require.InDelta(t, 2, s.metric(t, `vllm_triage_webhook_requests_total{result="too_large"}`), 0)
}

// Without credentials nothing tells anything, health, assets and public runbooks apart.
func TestNothingIsReadWithoutCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	s.deliver(t, alert{name: "A", model: "private-model", start: ago(time.Minute)})
	s.settled(t)
	all, err := s.store.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	id := all[0].ID
	for _, address := range []string{
		"/", "/incidents", "/incidents/" + id, "/incidents/" + id + ".json", "/incidents/" + id + "/chart.png", "/metrics",
		"/runbooks/decode_bound?incident=" + id, "/api/v1/incidents", "/api/v1/incidents/" + id, "/incidents/nope",
		"/incidents/" + id + "?expires=99999999999&signature=00", "/incidents/" + id + "?expires=99999999999&signature=",
	} {
		status, header, body := s.get(t, address)
		require.Equal(t, http.StatusUnauthorized, status, address)
		require.NotContains(t, body, "private-model", address)
		require.NotContains(t, header.Get("Content-Security-Policy"), "unsafe")
		status, _, body = s.get(t, address, "Accept", "text/html", "X-Auth-Request-User", "root", "X-Forwarded-For", "127.0.0.1")
		require.Equal(t, http.StatusUnauthorized, status, address)
		require.NotContains(t, body, "private-model", address)
	}
	for _, address := range []string{"/-/healthy", "/-/ready", "/runbooks/decode_bound"} {
		status, _, body := s.get(t, address, "Accept", "text/html")
		require.Equal(t, http.StatusOK, status, address)
		require.NotContains(t, body, "private-model", address)
	}
	for _, path := range []string{"/-/reload", "/incidents/" + id + "/feedback", "/incidents/" + id + "/recheck"} {
		resp, err := http.Post(s.http.URL+path, "application/x-www-form-urlencoded", strings.NewReader("state=done")) //nolint:noctx // A test.
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode, path)
	}
	status, header, body := s.get(t, "/incidents", "Authorization", "Bearer "+token, "Accept", "text/html")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "private-model")
	require.Contains(t, header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
	require.Equal(t, "no-store", header.Get("Cache-Control"))
}

// The link in a message opens its incident, no other one, and not for ever.
func TestSignedLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	s.deliver(t, alert{name: "A", model: "demo", start: ago(time.Minute)})
	s.deliver(t, alert{name: "A", model: "other", start: ago(time.Minute)})
	s.settled(t)
	all, err := s.store.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	link := ""
	for _, root := range w.roots() {
		for _, l := range root.Markup().Links {
			if strings.Contains(l, "/incidents/"+all[0].ID) {
				link = strings.TrimPrefix(l, "https://triage.example.org")
			}
		}
	}
	if link == "" {
		link = buttonLink(t, w.roots(), "/incidents/"+all[0].ID)
	}
	status, _, body := s.get(t, link, "Accept", "text/html")
	require.Equal(t, http.StatusOK, status, body)
	u, err := url.Parse(link)
	require.NoError(t, err)
	for _, address := range []string{
		"/incidents/" + all[1].ID + "?" + u.RawQuery,
		"/incidents?" + u.RawQuery,
		"/api/v1/incidents?" + u.RawQuery,
		u.Path + "?expires=99999999999&signature=" + u.Query().Get("signature"),
	} {
		status, _, _ = s.get(t, address)
		require.Equal(t, http.StatusUnauthorized, status, address)
	}
	w.clock.skip(31 * 24 * time.Hour)
	status, _, _ = s.get(t, link)
	require.Equal(t, http.StatusUnauthorized, status, "it has expired")
}

// buttonLink finds the address of a button that leads to a path.
func buttonLink(t *testing.T, messages []fakeslack.Message, path string) string {
	t.Helper()
	for _, m := range messages {
		for part := range strings.SplitSeq(string(m.Blocks), `"url":"`) {
			address, _, _ := strings.Cut(part, `"`)
			address = strings.ReplaceAll(address, `\u0026`, "&")
			if rest, ok := strings.CutPrefix(address, "https://triage.example.org"+path); ok {
				return path + rest
			}
		}
	}
	t.Fatalf("no button leads to %s", path)
	return ""
}

// A client that sends its request byte by byte is cut off, and does not keep others from being served.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.start(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := contextWithStop(t)
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, l) }()
	for range 50 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = c.Write([]byte("POST /webhook/alertmanager HTTP/1.1\r\nHost: x\r\nX-"))
		require.NoError(t, err)
	}
	first, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	_, err = first.Write([]byte("GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
	require.NoError(t, err)
	answer, err := io.ReadAll(first)
	require.NoError(t, err)
	require.Contains(t, string(answer), "200 OK")
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	_, err = slow.Write([]byte("GET / HTTP/1.1\r\n"))
	require.NoError(t, err)
	require.NoError(t, slow.SetReadDeadline(time.Now().Add(15*time.Second)))
	_, err = io.ReadAll(slow)
	require.NoError(t, err, "the service closes the connection before the client's patience ends")
	stop()
	require.NoError(t, <-done)
}

// Canary secrets stand everywhere a secret can; none may appear in what the service says to anyone.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	canary := func() string {
		var b [24]byte
		_, err := rand.Read(b[:])
		require.NoError(t, err)
		return "canary" + base64.RawURLEncoding.EncodeToString(b[:]) + "canary"
	}
	secrets := map[string]string{}
	for _, name := range []string{"webhook", "password", "link", "signing", "app", "prometheus user", "prometheus token", "bot"} {
		secrets[name] = canary()
	}
	w := newWorld(t)
	w.slack = fakeslack.New(fakeslack.Options{Token: "xoxb-" + secrets["bot"]})
	api, stopSlack, err := w.slack.Listen(t.Context())
	require.NoError(t, err)
	t.Cleanup(stopSlack)
	w.api = api
	w.settings = fmt.Sprintf(`
webhook: {bearer_token: %s, basic_auth: {username: am, password: %s}}
pages: {link_key: %s}
slack: {bot_token: xoxb-%s, api_url: %q, channel: %s, timeout: 2s, signing_secret: %s, app_token: xapp-%s}
prometheus: {url: "http://user:%s@127.0.0.1:1/?token=%s"}
`, secrets["webhook"], secrets["password"], secrets["link"], secrets["bot"], api+"/api/", fakeslack.DefaultChannel,
		secrets["signing"], secrets["app"], secrets["prometheus user"], secrets["prometheus token"])
	client, err := promq.NewClient(promq.Config{
		URL: "http://user:" + secrets["prometheus user"] + "@127.0.0.1:1/?token=" + secrets["prometheus token"],
	})
	require.NoError(t, err)
	w.engine = triage.NewEngine(kb.Default(), client, triage.Options{})
	s := w.startWith(t, "webhook", "slack", "prometheus")

	body := payload(alert{name: "A", model: "demo", start: ago(time.Minute)})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+"/webhook/alertmanager", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+secrets["webhook"])
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	w.slack.Inject(fakeslack.Fault{Method: "chat.update", Status: http.StatusInternalServerError})
	s.settled(t)

	all, err := s.store.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	var said bytes.Buffer
	for _, address := range []string{
		"/", "/incidents/" + all[0].ID, "/api/v1/incidents", "/api/v1/incidents/" + all[0].ID, "/metrics", "/-/ready", "/none",
		"/runbooks/decode_bound?incident=" + all[0].ID,
	} {
		for _, accept := range []string{"text/html", "application/json"} {
			for _, authorization := range []string{"Bearer " + secrets["webhook"], "Bearer wrong"} {
				_, header, answer := s.get(t, address, "Accept", accept, "Authorization", authorization)
				fmt.Fprint(&said, header, answer)
			}
		}
	}
	for _, entry := range s.logs.All() {
		fmt.Fprintln(&said, entry.Message, entry.ContextMap())
	}
	for _, m := range w.roots() {
		fmt.Fprintln(&said, m.Text, string(m.Blocks), m.Metadata)
		for _, reply := range w.slack.Thread(fakeslack.DefaultChannel, m.TS) {
			fmt.Fprintln(&said, reply.Text, string(reply.Blocks))
		}
	}
	fmt.Fprintf(&said, "%v %+v %#v", s.server.Parts().Config, s.server.Parts(), *s.server.Parts().Config)
	require.Greater(t, said.Len(), 10_000)
	for name, secret := range secrets {
		require.NotContains(t, said.String(), secret, name)
	}
	s.stop()
	data, err := os.ReadFile(strings.TrimPrefix(w.storage, "sqlite:"))
	require.NoError(t, err)
	for name, secret := range secrets {
		require.False(t, bytes.Contains(data, []byte(secret)), "the database holds the secret %s", name)
	}
}
