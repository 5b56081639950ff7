package alertmanager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func newClient(t *testing.T, c alertmanager.Config) *alertmanager.Client {
	t.Helper()
	out, err := alertmanager.New(c)
	require.NoError(t, err)
	t.Cleanup(out.Close)
	return out
}

func kind(t *testing.T, want alertmanager.Kind, err error) {
	t.Helper()
	_ = failure(t, want, err)
}

func failure(t *testing.T, want alertmanager.Kind, err error) *alertmanager.Error {
	t.Helper()
	require.Error(t, err)
	var e *alertmanager.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Kind, "%v", err)
	require.Equal(t, want, alertmanager.KindOf(err))
	return e
}

// fake is an Alertmanager that does as it is told. It counts what it was asked.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	silences []map[string]any
	// answer, when set, answers first; it returns false to let the fake do its work.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func newFake(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool) *fake {
	t.Helper()
	f := &fake{answer: answer}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	if f.answer != nil && f.answer(w, r) {
		return
	}
	f.work(w, r)
}

func (f *fake) work(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/api/v2/silences":
		var s map[string]any
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id := fmt.Sprintf("id-%d", len(f.silences)+1)
		s["id"], s["status"] = id, map[string]string{"state": "active"}
		f.silences = append(f.silences, s)
		_ = json.NewEncoder(w).Encode(map[string]string{"silenceID": id})
	case r.URL.Path == "/api/v2/silences":
		_ = json.NewEncoder(w).Encode(f.silences)
	default:
		http.NotFound(w, r)
	}
}

func (f *fake) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.requests...)
}

func (f *fake) made() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.silences)
}

func status(code int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
		return true
	}
}

func hang(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body) // Only a request that was read tells when its client leaves.
	<-r.Context().Done()
	return true
}

var one = []alertmanager.Matcher{alertmanager.Equal("model_name", "m")}

func create(c *alertmanager.Client, ctx context.Context) (string, error) { //nolint:revive // Reads as a method.
	start := time.Now()
	return c.CreateSilence(ctx, one, start, start.Add(time.Hour), "Kim", "why")
}

func TestBroadSilencesAreRefused(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	c := newClient(t, alertmanager.Config{URLs: []string{f.URL}})
	eq, start := alertmanager.Equal, time.Now()
	re := func(name, value string) alertmanager.Matcher {
		return alertmanager.Matcher{Name: name, Value: value, Regex: true}
	}
	not := func(name, value string) alertmanager.Matcher {
		return alertmanager.Matcher{Name: name, Value: value, Negated: true}
	}
	many := []alertmanager.Matcher{eq("model_name", "m")}
	for i := range 25 {
		many = append(many, eq(fmt.Sprintf("l%d", i), "v"))
	}
	for name, ms := range map[string][]alertmanager.Matcher{
		"nothing":                    nil,
		"a namespace alone":          {eq("namespace", "prod")},
		"an alert alone":             {eq("alertname", "VLLMHighTTFT")},
		"an empty model":             {eq("model_name", "")},
		"an empty namespace":         {eq("alertname", "A"), eq("namespace", "")},
		"not a model":                {not("model_name", "m")},
		"a model by expression":      {re("model_name", "m.*")},
		"any model":                  {re("model_name", ".*")},
		"any other label":            {eq("model_name", "m"), re("pod", ".*")},
		"any other label, not empty": {eq("model_name", "m"), re("pod", ".+")},
		"any, disguised":             {eq("model_name", "m"), re("pod", "(?s:.)*|x")},
		"a bad expression":           {eq("model_name", "m"), re("pod", "(")},
		"a bad name":                 {eq("model_name", "m"), eq("a b", "c")},
		"a huge value":               {eq("model_name", strings.Repeat("m", 2000))},
		"bytes":                      {eq("model_name", "\xff")},
		"one label twice":            {eq("model_name", "m"), eq("model_name", "n")},
		"too many":                   many,
	} {
		_, err := c.CreateSilence(t.Context(), ms, start, start.Add(time.Hour), "Kim", "why")
		kind(t, alertmanager.TooBroad, err)
		require.NotEmpty(t, err.Error(), name)
	}
	for name, ms := range map[string][]alertmanager.Matcher{
		"a model":                     one,
		"an older label of models":    {eq("model_id", "m")},
		"an alert in a namespace":     {eq("alertname", "A"), eq("namespace", "prod")},
		"an expression on top":        {eq("model_name", "m"), re("pod", "vllm-0|vllm-1")},
		"an exception on top":         {eq("model_name", "m"), not("severity", "critical")},
		"a negated expression on top": {eq("model_name", "m"), {Name: "pod", Value: ".*-canary", Regex: true, Negated: true}},
	} {
		_, err := c.CreateSilence(t.Context(), ms, start, start.Add(24*time.Hour), "Kim", "why")
		require.NoError(t, err, name)
	}
	require.Equal(t, 6, f.made(), "what is refused is never sent")
}

func TestSilencesAreBounded(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	c := newClient(t, alertmanager.Config{URLs: []string{f.URL}})
	short := newClient(t, alertmanager.Config{URLs: []string{f.URL}, MaxSilence: time.Hour})
	now := time.Now()
	for _, tc := range []struct {
		c          *alertmanager.Client
		end        time.Duration
		by, reason string
		want       alertmanager.Kind
	}{
		{c, 25 * time.Hour, "Kim", "why", alertmanager.TooBroad},
		{short, 61 * time.Minute, "Kim", "why", alertmanager.TooBroad},
		{c, 0, "Kim", "why", alertmanager.Refused},
		{c, -time.Hour, "Kim", "why", alertmanager.Refused},
		{c, time.Hour, " \n", "why", alertmanager.Refused},
		{c, time.Hour, "Kim", "\u202E", alertmanager.Refused},
	} {
		_, err := tc.c.CreateSilence(t.Context(), one, now, now.Add(tc.end), tc.by, tc.reason)
		kind(t, tc.want, err)
	}
	require.Zero(t, f.made())
	_, err := short.CreateSilence(t.Context(), one, now, now.Add(time.Hour), "Kim\nLee", "a\x00b "+strings.Repeat("x", 2000))
	require.NoError(t, err)
	require.Equal(t, "Kim Lee", f.silences[0]["createdBy"])
	comment, ok := f.silences[0]["comment"].(string)
	require.True(t, ok)
	require.Less(t, len(comment), 600, "texts are cut")
	require.True(t, strings.HasPrefix(comment, "a b "), "no control characters")
}

func TestPeersAreTriedInOrder(t *testing.T) {
	t.Parallel()
	dead := newFake(t, nil)
	dead.Close()
	ill := newFake(t, status(http.StatusServiceUnavailable, `"no quorum"`))
	well, spare := newFake(t, nil), newFake(t, nil)
	c := newClient(t, alertmanager.Config{URLs: []string{dead.URL, ill.URL, well.URL, spare.URL}})
	require.Equal(t, []string{dead.URL, ill.URL, well.URL, spare.URL}, c.Targets())
	_, err := c.ListSilences(t.Context(), true, "")
	require.NoError(t, err)
	require.Len(t, ill.asked(), 1)
	require.Len(t, well.asked(), 1)
	_, err = c.ListSilences(t.Context(), true, "")
	require.NoError(t, err)
	require.Len(t, ill.asked(), 1, "a peer that just failed is not asked before those that are well")
	require.Len(t, well.asked(), 2)
	require.Empty(t, spare.asked())

	all := newClient(t, alertmanager.Config{URLs: []string{dead.URL, ill.URL}})
	_, err = all.ListSilences(t.Context(), true, "")
	e := failure(t, alertmanager.Unavailable, err)
	require.ErrorContains(t, e, "list silences at "+ill.URL+": unavailable: status 503: no quorum; others: "+dead.URL+" unavailable",
		"each peer is named")
	_, err = create(all, t.Context())
	require.ErrorContains(t, err, "; others: ")
}

func TestRefusalsAreNotTriedElsewhere(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]alertmanager.Kind{
		http.StatusBadRequest: alertmanager.Refused, http.StatusUnauthorized: alertmanager.Auth,
		http.StatusForbidden: alertmanager.Auth,
	} {
		first, second := newFake(t, status(code, `"no"`)), newFake(t, nil)
		c := newClient(t, alertmanager.Config{URLs: []string{first.URL, second.URL}})
		_, err := create(c, t.Context())
		kind(t, want, err)
		require.Empty(t, second.asked())
	}
}

func TestFailuresAreClassed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   alertmanager.Kind
		says   string
	}{
		"overloaded":       {status(http.StatusTooManyRequests, ""), alertmanager.Unavailable, "429"},
		"broken":           {status(http.StatusInternalServerError, `{"error":"disk is full"}`), alertmanager.Unavailable, "disk is full"},
		"a login page":     {status(http.StatusOK, "<html>Log in</html>"), alertmanager.BadResponse, "without /api/v2"},
		"a wrong path":     {status(http.StatusNotFound, "404 page not found"), alertmanager.BadResponse, "404"},
		"an error page":    {status(http.StatusForbidden, "<html>"+strings.Repeat("x", 9000)), alertmanager.Auth, "403"},
		"too much":         {status(http.StatusOK, "["+strings.Repeat(" ", 3000)+"]"), alertmanager.TooLarge, "2048 bytes"},
		"no answer":        {hang, alertmanager.Timeout, "timeout"},
		"forged log lines": {status(http.StatusBadRequest, "a\nlevel=error msg=forged\x1b[31m"), alertmanager.Refused, "a level=error"},
	} {
		f := newFake(t, tc.answer)
		c := newClient(t, alertmanager.Config{URLs: []string{f.URL}, Timeout: 300 * time.Millisecond, MaxResponseBytes: 2048})
		_, err := c.ListSilences(t.Context(), true, "")
		e := failure(t, tc.want, err)
		require.Contains(t, err.Error(), tc.says, name)
		require.NotContains(t, err.Error(), "\n", name)
		require.NotContains(t, err.Error(), "\x1b", name)
		require.Less(t, len(err.Error()), 600, name)
		require.Equal(t, f.URL, e.Target)
		require.False(t, e.Maybe, "a question changes nothing")
	}
	require.Len(t, alertmanager.Kinds(), 10)
	require.Empty(t, alertmanager.KindOf(io.EOF))

	f := newFake(t, hang)
	c := newClient(t, alertmanager.Config{URLs: []string{f.URL, f.URL}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.ListSilences(ctx, true, "")
	kind(t, alertmanager.Canceled, err)
	require.ErrorIs(t, err, context.Canceled)
}

// TestALostAnswerMakesNoSecondSilence covers an answer that is lost after Alertmanager did its work: the silence is found
// again at the same or at another peer.
func TestALostAnswerMakesNoSecondSilence(t *testing.T) {
	t.Parallel()
	for _, peers := range []int{1, 2} {
		f := newFake(t, nil)
		lost := 0
		f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			if lost++; lost > 1 {
				return false
			}
			f.work(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		urls := []string{f.URL, f.URL}[:peers] // The second stands for a peer that has heard of it.
		id, err := create(newClient(t, alertmanager.Config{URLs: urls}), t.Context())
		require.NoError(t, err)
		require.Equal(t, "id-1", id)
		require.Equal(t, 1, f.made())
	}

	never := newFake(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	_, err := create(newClient(t, alertmanager.Config{URLs: []string{never.URL}}), t.Context())
	require.True(t, failure(t, alertmanager.Unavailable, err).Maybe)
	empty := newFake(t, status(http.StatusOK, "{}"))
	_, err = create(newClient(t, alertmanager.Config{URLs: []string{empty.URL}}), t.Context())
	require.True(t, failure(t, alertmanager.BadResponse, err).Maybe)
}

func TestRedirectsLeadNowhereElse(t *testing.T) {
	t.Parallel()
	other := newFake(t, nil)
	f := newFake(t, nil)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/away/api/v2/silences":
			http.Redirect(w, r, other.URL+"/api/v2/silences?session=hush-hush-token", http.StatusFound)
		case "/same/api/v2/silences":
			http.Redirect(w, r, "/api/v2/silences", http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	}
	follow := promconfig.DefaultHTTPClientConfig
	require.True(t, follow.FollowRedirects)
	for _, h := range []promconfig.HTTPClientConfig{follow, {}} {
		c := newClient(t, alertmanager.Config{URLs: []string{f.URL + "/away"}, HTTP: h})
		_, err := c.ListSilences(t.Context(), true, "")
		kind(t, alertmanager.BadResponse, err)
		require.Contains(t, err.Error(), "a redirect to "+other.URL+"/api/v2/silences")
		require.NotContains(t, err.Error(), "hush-hush-token")
	}
	require.Empty(t, other.asked())

	same := newClient(t, alertmanager.Config{URLs: []string{f.URL + "/same"}, HTTP: follow})
	_, err := same.ListSilences(t.Context(), true, "")
	require.NoError(t, err, "the same host may redirect a question")
	_, err = create(same, t.Context())
	kind(t, alertmanager.BadResponse, err)
	require.Zero(t, f.made(), "nothing that changes something follows a redirect")
	stay := newClient(t, alertmanager.Config{URLs: []string{f.URL + "/same"}})
	_, err = stay.ListSilences(t.Context(), true, "")
	kind(t, alertmanager.BadResponse, err)
}

// TestCredentialsAreSentAndNeverPrinted lets servers repeat all they were told.
func TestCredentialsAreSentAndNeverPrinted(t *testing.T) {
	t.Parallel()
	echo := newFake(t, func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusBadRequest)
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%v %v %s %s", r.Header, r.URL, user, password)
		return true
	})
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("canary-in-a-file"), 0o600))
	withHeaders := promconfig.HTTPClientConfig{HTTPHeaders: &promconfig.Headers{Headers: map[string]promconfig.Header{
		"X-Secret":      {Secrets: []promconfig.Secret{"canary-in-header"}},
		"X-Scope-OrgID": {Values: []string{"tenant-1"}},
	}}}
	for name, c := range map[string]alertmanager.Config{
		"userinfo":  {URLs: []string{strings.Replace(echo.URL, "://", "://user:canary-in-url@", 1)}},
		"parameter": {URLs: []string{echo.URL + "/?token=canary-in-parameter"}},
		"bearer": {URLs: []string{echo.URL}, HTTP: promconfig.HTTPClientConfig{
			Authorization: &promconfig.Authorization{Type: "Bearer", Credentials: "canary-in-bearer"},
		}},
		"file": {URLs: []string{echo.URL}, HTTP: promconfig.HTTPClientConfig{
			Authorization: &promconfig.Authorization{Type: "Bearer", CredentialsFile: file},
		}},
		"basic": {URLs: []string{echo.URL}, HTTP: promconfig.HTTPClientConfig{
			BasicAuth: &promconfig.BasicAuth{Username: "user", Password: "canary-in-basic"},
		}},
		"header": {URLs: []string{echo.URL}, HTTP: withHeaders},
	} {
		client := newClient(t, c)
		_, err := client.ListSilences(t.Context(), true, "")
		kind(t, alertmanager.Refused, err)
		require.NotContains(t, err.Error(), "canary", name)
		require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "canary-in", name)
		require.NotContains(t, strings.Join(client.Targets(), " "), "canary", name)
		if name == "header" {
			require.Contains(t, err.Error(), "tenant-1", "the tenant helps to understand a refusal")
		}
		require.Contains(t, err.Error(), "<redacted>", "the server was told the secret")
	}
	dead := newFake(t, nil)
	dead.Close()
	_, err := newClient(t, alertmanager.Config{URLs: []string{strings.Replace(dead.URL, "://", "://u:canary-1@", 1)}}).
		ListSilences(t.Context(), true, "")
	kind(t, alertmanager.Unavailable, err)
	require.NotContains(t, err.Error(), "canary")
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]alertmanager.Config{
		"nothing":        {},
		"not a url":      {URLs: []string{"http://user:canary@[::1"}},
		"no scheme":      {URLs: []string{"alertmanager:9093"}},
		"a full path":    {URLs: []string{"http://a:1/api/v2"}},
		"a fragment":     {URLs: []string{"http://a:1/#/alerts"}},
		"negative limit": {URLs: []string{"http://a:1"}, Timeout: -1},
		"two ways to log in": {URLs: []string{"http://a:1"}, HTTP: promconfig.HTTPClientConfig{
			BasicAuth:   &promconfig.BasicAuth{Username: "u", Password: "canary"},
			BearerToken: "canary",
		}},
		"a missing file": {URLs: []string{"http://a:1"}, HTTP: promconfig.HTTPClientConfig{
			TLSConfig: promconfig.TLSConfig{CAFile: "/does/not/exist"},
		}},
	} {
		_, err := alertmanager.New(c)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "canary", name)
	}
}
