package promq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
)

const emptyMatrix = `{"status":"success","data":{"resultType":"matrix","result":[]}}`

// serve starts a server and a client that asks it; change may alter the client's settings.
func serve(t *testing.T, h http.HandlerFunc, change func(*promq.Config)) *promq.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c := promq.Config{URL: server.URL, HTTP: promq.DefaultHTTP()}
	if change != nil {
		change(&c)
	}
	client, err := promq.NewClient(c)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// answer is a handler with one status and body.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func askRange(t *testing.T, c *promq.Client) (promq.Result, error) {
	t.Helper()
	return c.QueryRange(t.Context(), "up", t0, t0.Add(time.Minute), 15*time.Second)
}

func TestQueryRange(t *testing.T) {
	t.Parallel()
	var form url.Values
	var method, path, tenant string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		method, path, tenant = r.Method, r.URL.Path, r.Header.Get("X-Scope-OrgID")
		if err := r.ParseForm(); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		form = r.Form
		answer(http.StatusOK, `{"status":"success","warnings":["w1"],"infos":["i1"],"data":{"resultType":"matrix","result":[
			{"metric":{"pod":"a"},"values":[[1000,"1.5"],[1015,"NaN"]]}]}}`)(w, r)
	}, func(c *promq.Config) {
		c.URL += "/prom/?dedup=true"
		c.Params = url.Values{"extra_label": {"team=ml"}}
		c.HTTP.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{"X-Scope-OrgID": {Values: []string{"team-a"}}}}
	})
	res, err := askRange(t, c)
	require.NoError(t, err)
	require.Equal(t, []string{"w1"}, res.Warnings)
	require.Equal(t, []string{"i1"}, res.Infos)
	matrix, ok := res.Value.(model.Matrix)
	require.True(t, ok)
	require.Len(t, matrix, 1)
	require.Equal(t, "15", form.Get("step"))
	require.Equal(t, "1000", form.Get("start"))
	require.Equal(t, "1060", form.Get("end"))
	require.Equal(t, "9s", form.Get("timeout"), "the server gives up first")
	require.Contains(t, form["dedup"], "true")
	require.Contains(t, form["extra_label"], "team=ml")
	require.Equal(t, http.MethodPost, method)
	require.Equal(t, "/prom/api/v1/query_range", path)
	require.Equal(t, "team-a", tenant)
}

func TestServerTimeoutIsADurationOfPrometheus(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]string{
		90 * time.Second:        "1m29s",
		9500 * time.Millisecond: "9s",
		800 * time.Millisecond:  "ms",
	} {
		var got atomic.Value
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got.Store(r.FormValue("timeout"))
			answer(http.StatusOK, emptyMatrix)(w, r)
		}, func(c *promq.Config) { c.Timeout = timeout })
		_, err := askRange(t, c)
		require.NoError(t, err)
		sent, ok := got.Load().(string)
		require.True(t, ok)
		require.Contains(t, sent, want)
		_, err = model.ParseDuration(sent)
		require.NoError(t, err)
	}
}

func TestFallsBackToGet(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answer(http.StatusOK, emptyMatrix)(w, r)
	}, nil)
	_, err := askRange(t, c)
	require.NoError(t, err)
}

func TestPartialAnswer(t *testing.T) {
	t.Parallel()
	const warning = "partial"
	padding := strings.Repeat(" ", 700)
	for name, tt := range map[string]struct {
		body string
		want bool
	}{
		"victoria metrics": {`{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]}}`, true},
		"complete":         {`{"status":"success","isPartial":false,"data":{"resultType":"matrix","result":[]}}`, false},
		"spaces, at the end": {
			`{"status":"success","data":{"resultType":"matrix","result":[]},` + padding + `"isPartial" : true}`, true,
		},
		"a label of that name": {
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"isPartial":"true","a":"\"isPartial\":true"},"values":[]}]}}`,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for i := range len(tt.body) { // A byte at a time, so that reads end anywhere.
					_, _ = io.WriteString(w, tt.body[i:i+1])
					if i%7 == 0 {
						_ = http.NewResponseController(w).Flush()
					}
				}
			}, nil)
			res, err := askRange(t, c)
			require.NoError(t, err)
			if tt.want {
				require.Len(t, res.Warnings, 1)
				require.Contains(t, res.Warnings[0], warning)
			} else {
				require.Empty(t, res.Warnings)
			}
		})
	}
}

// The bodies are those that the servers send; contracts of Prometheus 3.16, Thanos, Mimir and VictoriaMetrics.
func TestErrorKinds(t *testing.T) {
	t.Parallel()
	api := func(typ, msg string) string {
		return fmt.Sprintf(`{"status":"error","errorType":%q,"error":%q}`, typ, msg)
	}
	for name, tt := range map[string]struct {
		status int
		body   string
		want   promq.Kind
		text   string
	}{
		"prometheus: parse error": {400, api("bad_data", `invalid parameter "query": 1:5: parse error`), promq.KindBadQuery, "parse error"},
		"prometheus: too many points": {
			400, api("bad_data", "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"),
			promq.KindTooExpensive, "11,000 points",
		},
		"prometheus: too many samples": {
			422, api("execution", "query processing would load too many samples into memory in query execution"),
			promq.KindTooExpensive, "too many samples",
		},
		"prometheus: many-to-many": {
			422, api("execution", "found duplicate series for the match group {} on the right hand-side of the operation"),
			promq.KindBadQuery, "duplicate series",
		},
		"prometheus: timeout":       {503, api("timeout", "query timed out in expression evaluation"), promq.KindTimeout, "timed out"},
		"prometheus: shutting down": {503, "Service Unavailable", promq.KindUnavailable, "Service Unavailable"},
		"prometheus: storage":       {500, api("internal", "expanding series: read block"), promq.KindUnavailable, "expanding series"},
		"thanos: store limit": {
			422, api("execution", "expanding series: rpc error: code = ResourceExhausted desc = exceeded series limit: limit 10 violated (got 11)"),
			promq.KindTooExpensive, "exceeded series limit",
		},
		"mimir: tenant missing":  {401, "no org id", promq.KindUnauthorized, "no org id"},
		"mimir: too many chunks": {422, api("execution", "the query exceeded the maximum number of chunks (err-mimir-max-chunks-per-query)"), promq.KindTooExpensive, "chunks"},
		"mimir: rate limit":      {429, "the request has been rejected because the tenant exceeded the request rate limit", promq.KindUnavailable, "rate limit"},
		"victoria metrics: parse error": {
			422, api("422", `error when executing query="up{": unparsed data left`), promq.KindBadQuery, "unparsed data",
		},
		"victoria metrics: points": {
			422, api("422", "too many points for the given step=1: 90000; the maximum allowed points is 30000 (see -search.maxPointsPerTimeseries)"),
			promq.KindTooExpensive, "too many points",
		},
		"victoria metrics: series": {
			422, api("422", "the number of matching timeseries exceeds 300000; either narrow down the search or increase -search.max* command-line flag"),
			promq.KindTooExpensive, "narrow down",
		},
		"victoria metrics: time":  {503, api("503", "timeout exceeded during query execution: 30.000 seconds (-search.maxQueryDuration)"), promq.KindTimeout, "30.000 seconds"},
		"victoria metrics: queue": {503, api("503", "couldn't start executing the request in 10 seconds, since 8 concurrent requests are executed"), promq.KindUnavailable, "concurrent"},
		"proxy: gateway timeout":  {504, "<html>504</html>", promq.KindTimeout, "504"},
		"proxy: bad gateway":      {502, "<html>502</html>", promq.KindUnavailable, "502"},
		"proxy: forbidden":        {403, "RBAC: access denied", promq.KindUnauthorized, "RBAC"},
		"login page":              {200, "<html>please log in</html>", promq.KindBadResponse, "invalid character"},
		"wrong path":              {404, "404 page not found", promq.KindBadResponse, "404 page not found"},
		"error in a 200":          {200, api("bad_data", "wrong"), promq.KindBadQuery, "wrong"},
		"empty body":              {200, "", promq.KindBadResponse, "unexpected end"},
		"cut body":                {200, emptyMatrix[:40], promq.KindBadResponse, "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answer(tt.status, tt.body), nil)
			res, err := askRange(t, c)
			var e *promq.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tt.want.String(), e.Kind.String(), err)
			require.Equal(t, "up", e.Query)
			require.ErrorContains(t, err, tt.text)
			require.ErrorContains(t, err, c.Target())
			require.Nil(t, res.Value)
			checkPredicates(t, err, tt.want)
		})
	}
}

func checkPredicates(t *testing.T, err error, want promq.Kind) {
	t.Helper()
	for kind, is := range map[promq.Kind]func(error) bool{
		promq.KindUnavailable: promq.IsUnavailable, promq.KindTimeout: promq.IsTimeout, promq.KindTooExpensive: promq.IsTooExpensive,
		promq.KindBadQuery: promq.IsBadQuery, promq.KindCanceled: promq.IsCanceled, promq.KindUnauthorized: promq.IsUnauthorized,
		promq.KindBadResponse: promq.IsBadResponse,
	} {
		require.Equal(t, kind == want, is(fmt.Errorf("wrapped: %w", err)), kind)
		require.False(t, is(errors.New("other")))
		require.False(t, is(nil))
	}
}

func TestWarningsComeWithErrors(t *testing.T) {
	t.Parallel()
	c := serve(t, answer(422, `{"status":"error","errorType":"execution","error":"x","warnings":["w"]}`), nil)
	res, err := askRange(t, c)
	require.Error(t, err)
	require.Equal(t, []string{"w"}, res.Warnings)
}

func TestRedirectIsAnError(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	login := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	t.Cleanup(login.Close)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, login.URL+"/login?state=canary-state", http.StatusFound)
	}, nil)
	_, err := askRange(t, c)
	require.True(t, promq.IsBadResponse(err), err)
	require.ErrorContains(t, err, "redirected to "+login.URL+"/login")
	require.NotContains(t, err.Error(), "canary")
	require.False(t, followed.Load())
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(answer(200, ""))
	server.Close()
	c, err := promq.NewClient(promq.Config{URL: server.URL})
	require.NoError(t, err)
	_, err = askRange(t, c)
	require.True(t, promq.IsUnavailable(err), err)
	require.ErrorContains(t, err, "connection refused")

	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, emptyMatrix)
		panic(http.ErrAbortHandler)
	}, nil)
	_, err = askRange(t, broken)
	require.True(t, promq.IsUnavailable(err), err)
}

func TestTimeoutAndCancel(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // The server sees the client leave only once the body is read.
		<-r.Context().Done()
	}
	_, err := askRange(t, serve(t, hang, func(c *promq.Config) { c.Timeout = 20 * time.Millisecond }))
	require.True(t, promq.IsTimeout(err), err)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	entered := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		hang(w, r)
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err = c.Query(ctx, "up", t0)
	require.True(t, promq.IsCanceled(err), err)
	require.ErrorIs(t, err, context.Canceled)

	_, err = c.Query(ctx, "up", t0)
	require.True(t, promq.IsCanceled(err), "a context that is over: %v", err)
}

func TestBodyCap(t *testing.T) {
	t.Parallel()
	body := `{"status":"success","data":{"resultType":"matrix","result":[]},"x":"` + strings.Repeat("x", 1000) + `"}`
	c := serve(t, answer(200, body), func(c *promq.Config) { c.MaxResponseBytes = int64(len(body)) })
	_, err := askRange(t, c)
	require.NoError(t, err, "exactly the limit")
	c = serve(t, answer(200, body), func(c *promq.Config) { c.MaxResponseBytes = int64(len(body)) - 1 })
	_, err = askRange(t, c)
	require.True(t, promq.IsTooExpensive(err), err)
	require.ErrorContains(t, err, "over the size limit")
}

// halves is a body whose second half is held back until meet is closed; arrive is called when the first half was read.
type halves struct {
	parts        []string
	arrive, done func()
	meet         <-chan struct{}
}

func (h *halves) Read(p []byte) (int, error) {
	switch len(h.parts) {
	case 0:
		return 0, io.EOF
	case 1:
		h.arrive()
		<-h.meet
	}
	n := copy(p, h.parts[0])
	if h.parts[0] = h.parts[0][n:]; h.parts[0] == "" {
		h.parts = h.parts[1:]
	}
	return n, nil
}

func (h *halves) Close() error {
	h.done()
	return nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAnswersAtOnceShareTheLimit(t *testing.T) {
	t.Parallel()
	const cut = len(emptyMatrix) * 3 / 4
	meet := make(chan struct{})
	open := sync.OnceFunc(func() { close(meet) })
	var half atomic.Int32
	c, err := promq.NewClient(promq.Config{
		URL: "http://h", MaxResponseBytes: int64(len(emptyMatrix)),
		RoundTripper: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{}, Body: &halves{
				parts: []string{emptyMatrix[:cut], emptyMatrix[cut:]}, meet: meet, done: open,
				arrive: func() {
					if half.Add(1) == 2 {
						open()
					}
				},
			}}, nil
		}),
	})
	require.NoError(t, err)
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := askRange(t, c)
			errs <- err
		}()
	}
	refused := 0
	for range 2 {
		if err := <-errs; err != nil {
			require.True(t, promq.IsTooExpensive(err), err)
			refused++
		}
	}
	require.NotZero(t, refused, "two answers that are too large together")
	_, err = askRange(t, c)
	require.NoError(t, err, "what they held is given back")
}

// TestAnswersThatAnswerNothing: each decodes without an error, and none may pass for "no data".
func TestAnswersThatAnswerNothing(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`null`, `{}`, `{"data":{"resultType":"matrix","result":[]}}`, `{"status":"success"}`, `{"status":"success","data":null}`,
		`{"status":"ok","data":{"resultType":"matrix","result":[]}}`,
	} {
		c := serve(t, answer(http.StatusOK, body), nil)
		res, err := askRange(t, c)
		require.True(t, promq.IsBadResponse(err), "%s: %v", body, err)
		require.Nil(t, res.Value)
		require.ErrorContains(t, err, "check the URL")
	}
	for _, body := range []string{`null`, `{}`, `{"data":[]}`, `{"message":"not found"}`} {
		c := serve(t, answer(http.StatusOK, body), nil)
		_, _, err := c.LabelValues(t.Context(), "a", nil, t0, t0)
		require.True(t, promq.IsBadResponse(err), "%s: %v", body, err)
	}
	c := serve(t, answer(http.StatusOK, `{"status" : "success","data":null}`), nil)
	_, _, err := c.LabelValues(t.Context(), "a", nil, t0, t0)
	require.NoError(t, err, "old servers say null where there is no value")
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	const limit, queries = 3, 30
	var now, most atomic.Int32
	release := make(chan struct{})
	open := sync.OnceFunc(func() { close(release) }) // Later requests reach the limit again.
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			seen := most.Load()
			if n <= seen || most.CompareAndSwap(seen, n) {
				break
			}
		}
		if n == limit {
			open() // All slots are taken; nobody leaves before.
		}
		<-release
		answer(200, emptyMatrix)(w, r)
	}, func(c *promq.Config) { c.Concurrency = limit })
	var wg sync.WaitGroup
	errs := make([]error, queries)
	for i := range queries {
		wg.Go(func() {
			_, errs[i] = c.Query(t.Context(), "up", t0)
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, int32(limit), most.Load())
}

func TestLabelValuesRulesBuildInfo(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/label/pod/values":
			if r.FormValue("match[]") != "up" || r.FormValue("start") != "1000" || r.FormValue("end") != "" {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			answer(200, `{"status":"success","data":["b","a"],"warnings":["cut"]}`)(w, r)
		case "/api/v1/rules":
			answer(200, `{"status":"success","data":{"groups":[{"name":"g","rules":[{"type":"alerting","name":"A","duration":300,"query":"up == 0"}]}]}}`)(w, r)
		case "/api/v1/status/buildinfo":
			answer(200, `{"status":"success","data":{"version":"3.16.0"}}`)(w, r)
		}
	}, nil)
	values, warnings, err := c.LabelValues(t.Context(), "pod", []string{"up"}, t0, time.Time{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, values)
	require.Equal(t, []string{"cut"}, warnings)
	rules, err := c.Rules(t.Context())
	require.NoError(t, err)
	require.Len(t, rules.Groups, 1)
	version, err := c.BuildInfo(t.Context())
	require.NoError(t, err)
	require.Equal(t, "3.16.0", version)

	down := serve(t, answer(502, ""), nil)
	_, _, err = down.LabelValues(t.Context(), "pod", nil, t0, t0)
	require.True(t, promq.IsUnavailable(err), err)
	_, err = down.Rules(t.Context())
	require.True(t, promq.IsUnavailable(err), err)
	_, err = down.BuildInfo(t.Context())
	require.True(t, promq.IsUnavailable(err), err)
}

func TestNewClientErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*promq.Config)
		want   string
	}{
		"no url":         {func(c *promq.Config) { c.URL = "" }, "must start with http"},
		"scheme":         {func(c *promq.Config) { c.URL = "prometheus:9090" }, "must start with http"},
		"host":           {func(c *promq.Config) { c.URL = "http:///x" }, "has no host"},
		"unparsable":     {func(c *promq.Config) { c.URL = "http://user:canary-pw@h:x" }, "cannot be parsed"},
		"fragment":       {func(c *promq.Config) { c.URL = "http://h/#x" }, "fragment"},
		"api path":       {func(c *promq.Config) { c.URL = "http://h/prom/api/v1" }, "without /api/v1"},
		"negative limit": {func(c *promq.Config) { c.Concurrency = -1 }, "must not be negative"},
		"two auth methods": {func(c *promq.Config) {
			c.HTTP.BasicAuth = &config.BasicAuth{Username: "u", Password: "canary-pw"}
			c.HTTP.BearerToken = "canary-token"
		}, "at most one"},
		"missing ca": {func(c *promq.Config) { c.HTTP.TLSConfig.CAFile = "/does/not/exist" }, "/does/not/exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := promq.Config{URL: "http://h:9090"}
			tt.change(&c)
			_, err := promq.NewClient(c)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "canary")
		})
	}
}

// No error may show a credential, wherever it was configured, even if the server echoes the request.
func TestSecretsNeverPrint(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		w.WriteHeader(http.StatusInternalServerError)
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s http://canary-user:canary-pw@h/?token=canary-param %v %v %s %s", r.URL, r.Header, r.Form, user, password)
	}
	for name, change := range map[string]func(*promq.Config){
		"userinfo": func(c *promq.Config) {
			c.URL = strings.Replace(c.URL, "http://", "http://canary-user:canary-pw@", 1)
		},
		"url parameter": func(c *promq.Config) { c.URL += "/?token=canary-param" },
		"parameter":     func(c *promq.Config) { c.Params = url.Values{"token": {"canary-param"}} },
		"bearer token":  func(c *promq.Config) { c.HTTP.BearerToken = "canary-token" },
		"authorization": func(c *promq.Config) {
			c.HTTP.Authorization = &config.Authorization{Type: "Token", Credentials: "canary-token"}
		},
		"basic auth": func(c *promq.Config) {
			c.HTTP.BasicAuth = &config.BasicAuth{Username: "reader", Password: "canary-pw"}
		},
		"basic auth file": func(c *promq.Config) {
			c.HTTP.BasicAuth = &config.BasicAuth{Username: "reader", PasswordFile: "testdata/password"}
		},
		"header": func(c *promq.Config) {
			c.HTTP.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{"X-Key": {Secrets: []config.Secret{"canary-key"}}}}
		},
		"header file": func(c *promq.Config) {
			c.HTTP.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{"X-Key": {Files: []string{"testdata/password"}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients := []*promq.Client{serve(t, echo, change)}
			gone := httptest.NewServer(http.HandlerFunc(echo))
			gone.Close()
			clients = append(clients, serve(t, echo, func(c *promq.Config) {
				c.URL = gone.URL
				change(c)
			}))
			for _, c := range clients {
				_, err := askRange(t, c)
				require.Error(t, err)
				for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), c.Target()} {
					require.NotContains(t, text, "canary")
				}
				require.NoError(t, errors.Unwrap(errors.Unwrap(err)), "the chain ends before the URL")
				_, err = c.Rules(t.Context())
				require.NotContains(t, err.Error(), "canary")
			}
		})
	}
}

func TestErrorTextIsOneShortLine(t *testing.T) {
	t.Parallel()
	c := serve(t, answer(500, "first\nlevel=error msg=forged\x1b[31m\xff"+strings.Repeat("é", 5000)), nil)
	_, err := askRange(t, c)
	require.Less(t, len(err.Error()), 500)
	quoted := strconv.Quote(err.Error())
	for _, bad := range []string{`\n`, `\x1b`, `\xff`, `\ufffd`} {
		require.NotContains(t, quoted, bad)
	}
}

func TestRoundTripperReplacesTheTransport(t *testing.T) {
	t.Parallel()
	rt := roundTripper(func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		answer(200, emptyMatrix)(rec, r)
		return rec.Result(), nil
	})
	c, err := promq.NewClient(promq.Config{URL: "http://nowhere.invalid", RoundTripper: rt})
	require.NoError(t, err)
	_, err = askRange(t, c)
	require.NoError(t, err)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzResponse feeds arbitrary answers through the client onto a grid: no panic, no endless loop, and what comes out is either
// an *Error or finite numbers and holes.
func FuzzResponse(f *testing.F) {
	matrix := func(values string) string {
		return `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[` + values + `]}]}}`
	}
	for _, body := range []string{
		emptyMatrix, matrix(`[1000,"1"],[1015,"NaN"],[1030,"+Inf"],[1045,"1e308"]`), matrix(`[1030,"1"],[1000,"2"],[1000,"3"]`),
		matrix(`[1e300,"1"],[-9223372036854775808,"1"],[9223372036854775.807,"1"]`), matrix(`[1000,1]`), matrix(`[`), matrix(`[1000]`),
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1000,{"count":"1","sum":"2","buckets":[[0,"1","2","1"]]}]]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[null]}}`,
		`{"status":"success","isPartial":true,"data":null}`, `{"status":"error","errorType":"bad_data","error":"x"}`, `{}`, ``, `[]`, `<html>`,
	} {
		f.Add(200, body)
		f.Add(422, body)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			t.Skip()
		}
		rt := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})
		c, err := promq.NewClient(promq.Config{URL: "http://h", RoundTripper: rt, MaxResponseBytes: 1 << 16})
		require.NoError(t, err)
		res, err := askRange(t, c)
		if err != nil {
			var e *promq.Error
			require.ErrorAs(t, err, &e)
			require.NotEqual(t, "unknown", e.Kind.String())
			require.Nil(t, res.Value)
			return
		}
		series, err := promq.FromMatrix(res.Value, t0, t0.Add(time.Minute), 15*time.Second)
		if err != nil {
			return
		}
		for _, s := range series {
			require.Len(t, s.Values, 5)
			require.LessOrEqual(t, s.Coverage(), 1.0)
			promq.Onset(s.Values, s.Values, 0)
			promq.Split(s.Values)
			promq.TheilSen(s.Series)
		}
	})
}
