package recording_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
	"vllm-triage/promq/memstore"
	"vllm-triage/promq/recording"
)

// small is a recording whose every answer can be worked out by hand.
func small() *recording.Recording {
	return recording.FromStore(memstore.New([]memstore.Series{
		{Labels: metric("up", "pod", "a"), Samples: floats(0, 15_000, 1, 1, 0, 1)},
		{Labels: metric("up", "pod", `b"\é`), Samples: floats(0, 15_000, 1, 1)},
		{Labels: metric("x_total", "pod", "a"), Samples: floats(0, 15_000, 0, 15, 30, 45)},
		{Labels: metric("h"), Samples: []memstore.Sample{{At: 0, Hist: &histogram.FloatHistogram{
			Count: 7.5, Sum: 12, ZeroCount: 1.5, ZeroThreshold: 0.5,
			PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}}, PositiveBuckets: []float64{2, 4},
		}}}},
	}))
}

func get(t *testing.T, h http.Handler, method, target, form string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	return w.Code, w.Body.String()
}

func TestAPI(t *testing.T) {
	t.Parallel()
	h := small().Handler(time.Time{})
	ok := func(data string) string { return `{"status":"success","data":` + data + `}` }
	bad := func(typ, msg string) string {
		return `{"status":"error","errorType":"` + typ + `","error":"` + msg + `"}`
	}
	query := func(expr string, more ...string) string {
		return "/api/v1/query?query=" + url.QueryEscape(expr) + "&" + strings.Join(more, "&")
	}
	ranged := func(expr, rest string) string {
		return "/api/v1/query_range?query=" + url.QueryEscape(expr) + "&" + rest
	}
	for name, tt := range map[string]struct {
		target string
		status int
		want   string
	}{
		"vector": {
			query("up", "time=15"), 200,
			ok(`{"resultType":"vector","result":[{"metric":{"__name__":"up","pod":"a"},"value":[15,"1"]},` +
				`{"metric":{"__name__":"up","pod":"b\"\\é"},"value":[15,"1"]}]}`),
		},
		"time in RFC 3339": {
			query(`up{pod="a"}`, "time=1970-01-01T00:00:31.250Z"), 200,
			ok(`{"resultType":"vector","result":[{"metric":{"__name__":"up","pod":"a"},"value":[31.250,"0"]}]}`),
		},
		"without a time: the last sample's": {
			query(`x_total`), 200,
			ok(`{"resultType":"vector","result":[{"metric":{"__name__":"x_total","pod":"a"},"value":[45,"45"]}]}`),
		},
		"nothing":  {query("nope", "time=0"), 200, ok(`{"resultType":"vector","result":[]}`)},
		"scalar":   {query("1/0", "time=1.5"), 200, ok(`{"resultType":"scalar","result":[1.500,"+Inf"]}`)},
		"small":    {query("vector(1e-7)", "time=-1.007"), 200, ok(`{"resultType":"vector","result":[{"metric":{},"value":[-1.007,"1e-07"]}]}`)},
		"string":   {query(`"a\nb"`, "time=0"), 200, ok(`{"resultType":"string","result":[0,"a\nb"]}`)},
		"raw data": {query(`up{pod="a"}[30s]`, "time=30"), 200, ok(`{"resultType":"matrix","result":[{"metric":{"__name__":"up","pod":"a"},"values":[[15,"1"],[30,"0"]]}]}`)},
		"histogram": {
			query("h", "time=0"), 200,
			ok(`{"resultType":"vector","result":[{"metric":{"__name__":"h"},"histogram":[0,{"count":"7.5","sum":"12","buckets":[` +
				`[3,"-0.5","0.5","1.5"],[0,"0.5","1","2"],[0,"1","2","4"]]}]}]}`),
		},
		"limit": {
			query("up", "time=0", "limit=1"), 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","pod":"a"},"value":[0,"1"]}]},` +
				`"warnings":["results truncated due to limit"]}`,
		},
		"infos": {
			query(`rate(up{pod="a"}[1m])`, "time=15"), 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"a"},"value":[15,"0"]}]},` +
				`"infos":["PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: \"up\" (1:6)"]}`,
		},
		"range": {
			ranged("rate(x_total[30s])", "start=0&end=45&step=15s"), 200,
			ok(`{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[15,"0.5"],[30,"1"],[45,"1"]]}]}`),
		},
		"range of histograms": {
			ranged("h", "start=0&end=0&step=1"), 200,
			ok(`{"resultType":"matrix","result":[{"metric":{"__name__":"h"},"histograms":[[0,{"count":"7.5","sum":"12","buckets":[` +
				`[3,"-0.5","0.5","1.5"],[0,"0.5","1","2"],[0,"1","2","4"]]}]]}]}`),
		},
		"lookback": {query(`up{pod="b\"\\é"}`, "time=45", "lookback_delta=20s"), 200, ok(`{"resultType":"vector","result":[]}`)},
		"series": {
			"/api/v1/series?match[]=x_total&match[]=" + url.QueryEscape(`{pod="a"}`), 200,
			ok(`[{"__name__":"up","pod":"a"},{"__name__":"x_total","pod":"a"}]`),
		},
		"series in a window": {"/api/v1/series?match[]=up&start=30&end=40", 200, ok(`[{"__name__":"up","pod":"a"}]`)},
		"labels":             {"/api/v1/labels", 200, ok(`["__name__","pod"]`)},
		"values":             {"/api/v1/label/__name__/values", 200, ok(`["h","up","x_total"]`)},
		"values of matched":  {"/api/v1/label/pod/values?match[]=x_total", 200, ok(`["a"]`)},
		"values, escaped":    {"/api/v1/label/U__pod/values?match[]=x_total", 200, ok(`["a"]`)},
		"values, cut":        {"/api/v1/label/__name__/values?limit=1", 200, `{"status":"success","data":["h"],"warnings":["results truncated due to limit"]}`},
		"no such label":      {"/api/v1/label/nope/values", 200, ok(`[]`)},
		"rules":              {"/api/v1/rules", 200, ok(`{"groups":[]}`)},
		"alerts":             {"/api/v1/alerts", 200, ok(`{"alerts":[]}`)},

		"parse error":    {query("up{", "time=0"), 400, bad("bad_data", `invalid parameter \"query\": 1:4: parse error: unexpected end of input inside braces`)},
		"no query":       {"/api/v1/query", 400, bad("bad_data", `invalid parameter \"query\": unknown position: parse error: no expression found in input`)},
		"bad time":       {query("up", "time=x"), 400, bad("bad_data", `invalid parameter \"time\": cannot parse \"x\" to a valid timestamp`)},
		"huge time":      {query("up", "time=1e300"), 400, bad("bad_data", `invalid parameter \"time\": cannot parse \"1e300\" to a valid timestamp`)},
		"bad step":       {ranged("up", "start=0&end=1&step=x"), 400, bad("bad_data", `invalid parameter \"step\": cannot parse \"x\" to a valid duration`)},
		"zero step":      {ranged("up", "start=0&end=1&step=0"), 400, bad("bad_data", `invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer`)},
		"no start":       {ranged("up", "end=1&step=1"), 400, bad("bad_data", `invalid parameter \"start\": cannot parse \"\" to a valid timestamp`)},
		"end too early":  {ranged("up", "start=2&end=1&step=1"), 400, bad("bad_data", `invalid parameter \"end\": end timestamp must not be before start time`)},
		"too many steps": {ranged("up", "start=0&end=11001&step=1"), 400, bad("bad_data", `exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)`)},
		"matrix in a range query": {
			ranged("up[1m]", "start=0&end=1&step=1"), 400,
			bad("bad_data", `invalid parameter \"query\": invalid expression type \"range vector\" for range query, must be Scalar or instant Vector`),
		},
		"execution":      {query("up * on () up", "time=0"), 422, ""},
		"time is up":     {query("up", "time=0", "timeout=1ns"), 400, bad("bad_data", `invalid parameter \"timeout\": cannot parse \"1ns\" to a valid duration`)},
		"no match":       {"/api/v1/series", 400, bad("bad_data", "no match[] parameter provided")},
		"empty match":    {"/api/v1/series?match[]={pod=~\".*\"}", 400, bad("bad_data", "match[] must contain at least one non-empty matcher")},
		"bad label":      {"/api/v1/label/%FF/values", 400, ""},
		"bad limit":      {"/api/v1/labels?limit=-1", 400, bad("bad_data", `invalid parameter \"limit\": limit must be non-negative`)},
		"wrong endpoint": {"/api/v1/targets", 404, bad("not_found", "a recording has no GET /api/v1/targets")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := get(t, h, http.MethodGet, tt.target, "")
			require.Equal(t, tt.status, status, body)
			if tt.want != "" {
				require.Equal(t, tt.want, body)
			}
			path, form, _ := strings.Cut(tt.target, "?")
			if strings.HasPrefix(path, "/api/v1/query") || path == "/api/v1/series" || path == "/api/v1/labels" {
				status, posted := get(t, h, http.MethodPost, path, form)
				require.Equal(t, tt.status, status, posted)
				require.Equal(t, body, posted, "POST answers like GET")
			}
		})
	}
}

func TestAsOf(t *testing.T) {
	t.Parallel()
	r := small()
	for _, tt := range []struct {
		asOf time.Time
		want string
	}{
		{time.Time{}, `"values":[[0,"1"],[15,"1"],[30,"0"],[45,"1"]]`},
		{time.Unix(45, 0), `"values":[[0,"1"],[15,"1"],[30,"0"],[45,"1"]]`},
		{time.Unix(44, 0), `"values":[[0,"1"],[15,"1"],[30,"0"]]`},
		{time.Unix(-1, 0), `"result":[]`},
	} {
		h := r.Handler(tt.asOf)
		_, body := get(t, h, http.MethodGet, "/api/v1/query?time=60&query="+url.QueryEscape(`up{pod="a"}[2m]`), "")
		require.Contains(t, body, tt.want, tt.asOf)
	}
	h := r.Handler(time.Unix(20, 0))
	_, body := get(t, h, http.MethodGet, "/api/v1/query?query="+url.QueryEscape(`up{pod="a"} offset -1h`), "")
	require.Contains(t, body, `"result":[]`, "not even by a negative offset")
	_, body = get(t, h, http.MethodGet, "/api/v1/series?match[]=up&start=25", "")
	require.JSONEq(t, `{"status":"success","data":[]}`, body)
}

func TestDeadlineIsATimeout(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	w := httptest.NewRecorder()
	small().Handler(time.Time{}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/query?query=up", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), `"errorType":"timeout"`)

	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	w = httptest.NewRecorder()
	small().Handler(time.Time{}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/query?query=up", nil))
	require.Equal(t, 499, w.Code)
	require.Contains(t, w.Body.String(), `"errorType":"canceled"`)
}

func TestClientReadsTheRecording(t *testing.T) {
	t.Parallel()
	r := open(t)
	first, last := r.Bounds()
	inProcess, err := promq.NewClient(promq.Config{URL: "http://recording", RoundTripper: r.RoundTripper(time.Time{})})
	require.NoError(t, err)
	base, stop, err := r.Start(time.Time{})
	require.NoError(t, err)
	t.Cleanup(stop)
	overSocket, err := promq.NewClient(promq.Config{URL: base})
	require.NoError(t, err)
	t.Cleanup(overSocket.Close)

	const expr = `sum by (instance) (rate(vllm:generation_tokens_total[30s]))`
	var answers []string
	for _, c := range []*promq.Client{inProcess, overSocket} {
		res, err := c.QueryRange(t.Context(), expr, first, last, 5*time.Second)
		require.NoError(t, err)
		answers = append(answers, res.Value.String())
		series, err := promq.FromMatrix(res.Value, first, last, 5*time.Second)
		require.NoError(t, err)
		require.Len(t, series, 1)
		require.Greater(t, series[0].Coverage(), .9)
		require.Positive(t, promq.Median(series[0].Values))

		_, err = c.QueryRange(t.Context(), expr, first, first.Add(time.Hour), 100*time.Millisecond)
		require.True(t, promq.IsTooExpensive(err), err)
		_, err = c.Query(t.Context(), `up{`, last)
		require.True(t, promq.IsBadQuery(err), err)
		names, _, err := c.LabelValues(t.Context(), "__name__", []string{`{__name__=~"vllm:num_.*"}`}, time.Time{}, time.Time{})
		require.NoError(t, err)
		require.Contains(t, names, "vllm:num_requests_running")
		rules, err := c.Rules(t.Context())
		require.NoError(t, err)
		require.Empty(t, rules.Groups)
	}
	require.Equal(t, answers[0], answers[1])
	require.NotEmpty(t, answers[0])
}

func TestConcurrentQueriesAgree(t *testing.T) {
	t.Parallel()
	r := open(t)
	_, last := r.Bounds()
	c, err := promq.NewClient(promq.Config{URL: "http://recording", RoundTripper: r.RoundTripper(last)})
	require.NoError(t, err)
	var wg sync.WaitGroup
	got := make([]model.Value, 16)
	for i := range got {
		wg.Go(func() {
			res, err := c.Query(t.Context(), `sum by (__name__) ({__name__=~"vllm:.*"})`, last)
			if err == nil {
				got[i] = res.Value
			}
		})
	}
	wg.Wait()
	for _, v := range got {
		require.NotNil(t, v)
		require.Equal(t, got[0].String(), v.String())
	}
}

func TestInProcess(t *testing.T) {
	t.Parallel()
	ask := func(ctx context.Context, h http.HandlerFunc) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://h/p?q=1", strings.NewReader("body"))
		require.NoError(t, err)
		return recording.InProcess(h).RoundTrip(req)
	}
	resp, err := ask(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.RequestURI+" "+string(body))
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK) // Too late, as on the network.
		_, _ = io.WriteString(w, "short")
	})
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "short", string(body))
	require.Equal(t, http.StatusTeapot, resp.StatusCode)
	require.Equal(t, "/p?q=1 body", resp.Header.Get("X-Seen"))

	_, err = ask(t.Context(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }) //nolint:bodyclose // No response.
	require.ErrorContains(t, err, "connection closed")

	ctx, cancel := context.WithCancel(t.Context())
	_, err = ask(ctx, func(http.ResponseWriter, *http.Request) { cancel() }) //nolint:bodyclose // No response.
	require.ErrorIs(t, err, context.Canceled)
	_, err = ask(ctx, func(http.ResponseWriter, *http.Request) { panic("not reached") }) //nolint:bodyclose // No response.
	require.ErrorIs(t, err, context.Canceled)
}

// BenchmarkOpen is the start of a demo or a replay.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		_, err := recording.Open(healthy)
		require.NoError(b, err)
	}
}

// BenchmarkQueryRange is one query of a triage, through the client.
func BenchmarkQueryRange(b *testing.B) {
	r := open(b)
	first, last := r.Bounds()
	c, err := promq.NewClient(promq.Config{URL: "http://recording", RoundTripper: r.RoundTripper(last)})
	require.NoError(b, err)
	for b.Loop() {
		_, err := c.QueryRange(b.Context(), `sum by (instance) (rate(vllm:generation_tokens_total[30s]))`, first, last, 5*time.Second)
		require.NoError(b, err)
	}
}
