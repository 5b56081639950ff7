package promqtest_test

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
	"vllm-triage/promq/promqtest"
)

const notation = `
# Two replicas.
load 15s
  up{pod="a"}       1x4
  x_total{pod="a"}  0+15x2 _x2 100 stale
  {"k8s.metric"}    1 NaN Inf -3.5

load 1m
  # A later block has its own interval.
  y:z{pod="# not a comment"}  10-1x2
`

// lines writes a store as one line a series: seconds:value.
func lines(s *promqtest.Store) string {
	var b strings.Builder
	for _, one := range s.Series() {
		b.WriteString(one.Labels.String())
		for i := range one.Samples {
			v := fmt.Sprint(one.Samples[i].Value)
			if one.Samples[i].IsStale() {
				v = "stale"
			}
			fmt.Fprintf(&b, " %g:%s", float64(one.Samples[i].At)/1000, v)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestNew(t *testing.T) {
	t.Parallel()
	s, err := promqtest.New(notation)
	require.NoError(t, err)
	require.Equal(t, `{__name__="k8s.metric"} 0:1 15:NaN 30:+Inf 45:-3.5
{__name__="up", pod="a"} 0:1 15:1 30:1 45:1 60:1
{__name__="x_total", pod="a"} 0:0 15:15 30:30 75:100 90:stale
{__name__="y:z", pod="# not a comment"} 0:10 60:9 120:8
`, lines(s))

	start := time.Unix(1_700_000_000, 0)
	s, err = promqtest.New("load 15s\n a 1", promqtest.StartAt(start))
	require.NoError(t, err)
	first, _ := s.Bounds()
	require.Equal(t, start.UnixMilli(), first.UnixMilli())

	s, err = promqtest.New("load 15s\n h {{schema:0 count:3 sum:5 buckets:[1 2]}}x2")
	require.NoError(t, err)
	require.InDelta(t, 3, s.Series()[0].Samples[2].Hist.Count, 0)
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ notation, want string }{
		"no load":       {"a 1", `line 1: a "load <interval>" line must come before`},
		"bad interval":  {"load x", "line 1: load interval"},
		"zero interval": {"load 0s", "line 1: load interval must be above zero"},
		"bad series":    {"load 1s\n\n a{ 1", "line 3: 1:4: parse error"},
		"bad values":    {"load 1s\n a 1 2 three", "line 2: "},
		"no labels":     {"load 1s\n {} 1", "line 2: "},
		"a typo":        {"load 1s\n a 1x10000000", "line 2: more than 99,999 repetitions"},
		"eval":          {"load 1s\n a 1\n eval instant at 0s a", "line 3: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := promqtest.New(tt.notation)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := promqtest.Load(t, notation)
	require.Equal(t, 4, s.Store().Len())
	overSocket, err := promq.NewClient(promq.Config{URL: s.URL()})
	require.NoError(t, err)
	t.Cleanup(overSocket.Close)
	inProcess, err := promq.NewClient(promq.Config{URL: "http://h", RoundTripper: s.RoundTripper()})
	require.NoError(t, err)
	for _, c := range []*promq.Client{s.Client(), overSocket, inProcess} {
		res, err := c.Query(t.Context(), `rate(x_total[30s])`, time.Unix(30, 0))
		require.NoError(t, err)
		vector, ok := res.Value.(model.Vector)
		require.True(t, ok)
		require.Len(t, vector, 1)
		require.InDelta(t, 1, float64(vector[0].Value), 1e-9)
	}
	values, _, err := s.Client().LabelValues(t.Context(), "pod", []string{"up"}, time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, values)
	ask := promqtest.Request{Path: "/api/v1/query", Query: "rate(x_total[30s])"}
	require.Equal(t, []promqtest.Request{{Path: "/api/v1/label/pod/values"}, ask, ask, ask}, s.Requests())
}

func TestServerAsOf(t *testing.T) {
	t.Parallel()
	store, err := promqtest.New("load 15s\n x 1 2 3")
	require.NoError(t, err)
	s, err := promqtest.NewServer(store, time.Unix(20, 0))
	require.NoError(t, err)
	defer s.Close()
	res, err := s.Client().Query(t.Context(), "x", time.Unix(60, 0))
	require.NoError(t, err)
	require.Equal(t, "x => 2 @[60]", res.Value.String())
}

func TestFaults(t *testing.T) {
	t.Parallel()
	one := func(f promqtest.Fault) func(string, string) *promqtest.Fault {
		return func(string, string) *promqtest.Fault { return &f }
	}
	for name, tt := range map[string]struct {
		fault promqtest.Fault
		is    func(error) bool
	}{
		"down":          {promqtest.Fault{Status: 503}, promq.IsUnavailable},
		"timeout":       {promqtest.Fault{Status: 503, Body: `{"status":"error","errorType":"timeout","error":"query timed out"}`}, promq.IsTimeout},
		"bad data":      {promqtest.Fault{Status: 400}, promq.IsBadQuery},
		"no access":     {promqtest.Fault{Status: 401, Body: "no"}, promq.IsUnauthorized},
		"redirect":      {promqtest.Fault{Status: 302, Header: http.Header{"Location": {"http://login/"}}}, promq.IsBadResponse},
		"not an answer": {promqtest.Fault{Status: 200, Body: "<html>"}, promq.IsBadResponse},
		"abort":         {promqtest.Fault{Abort: true}, promq.IsUnavailable},
		"hang":          {promqtest.Fault{Hang: true}, promq.IsTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := promqtest.Load(t, notation)
			s.Intercept(one(tt.fault))
			for _, config := range []promq.Config{{URL: s.URL()}, {URL: s.URL(), RoundTripper: s.RoundTripper()}} {
				config.Timeout = 5 * time.Second
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tt.fault.Hang {
					ctx, cancel = context.WithTimeout(ctx, 30*time.Millisecond)
				}
				c, err := promq.NewClient(config)
				require.NoError(t, err)
				_, err = c.Query(ctx, "up", time.Unix(0, 0))
				require.True(t, tt.is(err), "%v", err)
				cancel()
				c.Close()
			}
		})
	}

	s := promqtest.Load(t, notation)
	s.Intercept(one(promqtest.Fault{Drop: true, Partial: true, Warnings: []string{"store b is down"}}))
	for _, expr := range []string{"up", "up[1m]", "1"} {
		res, err := s.Client().Query(t.Context(), expr, time.Unix(0, 0))
		require.NoError(t, err)
		require.Empty(t, res.Value.String())
		require.Len(t, res.Warnings, 2)
		require.Equal(t, "store b is down", res.Warnings[0])
		require.Contains(t, res.Warnings[1], "partial")
	}
	values, warnings, err := s.Client().LabelValues(t.Context(), "pod", nil, time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Empty(t, values)
	require.Len(t, warnings, 2)
	_, err = s.Client().Query(t.Context(), "up{", time.Unix(0, 0))
	require.True(t, promq.IsBadQuery(err), "an error stays an error: %v", err)

	s.Intercept(func(path, query string) *promqtest.Fault {
		if path == "/api/v1/query" && strings.Contains(query, "x_total") {
			return &promqtest.Fault{Status: 500}
		}
		return nil
	})
	_, err = s.Client().Query(t.Context(), "x_total", time.Unix(0, 0))
	require.True(t, promq.IsUnavailable(err), err)
	_, err = s.Client().Query(t.Context(), "up", time.Unix(0, 0))
	require.NoError(t, err)
	s.Intercept(nil)
	_, err = s.Client().Query(t.Context(), "x_total", time.Unix(0, 0))
	require.NoError(t, err)
}

// tb notes what Load tells a test.
type tb struct {
	failed  string
	cleanup []func()
}

func (*tb) Helper()                          {}
func (b *tb) Fatalf(format string, a ...any) { b.failed = fmt.Sprintf(format, a...) }
func (b *tb) Cleanup(f func())               { b.cleanup = append(b.cleanup, f) }

func TestLoadFailsTheTest(t *testing.T) {
	t.Parallel()
	b := &tb{}
	require.Nil(t, promqtest.Load(b, "a 1"))
	require.Contains(t, b.failed, "line 1")
	require.Empty(t, b.cleanup)
}

// Other folders run examples through this package in the product, so it must not bring the test framework along.
func TestDoesNotImportTesting(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.NotRegexp(t, `(?m)^(testing|github\.com/prometheus/prometheus/tsdb)$`, string(out))
}

// FuzzNew gives arbitrary text to the notation and serves what came of it.
func FuzzNew(f *testing.F) {
	f.Add(notation)
	f.Add("load 5m\n a{b=\"c\"} 1+1x3 stale _ -1-2x2")
	f.Add("load 1s\n h {{schema:1 sum:-0.3 count:3.1 z_bucket:7.1 buckets:[5 10 7] offset:-3}}x3")
	f.Add("load 1s\nload 2s\n{__name__=\"\"} 1")
	f.Add("load 1d\n {\"a.b\",c=\"d\"} 1e308+1e308x2")
	f.Add("load 99999999999y\n a 1")
	repeat := regexp.MustCompile(`\d{4}`)
	f.Fuzz(func(t *testing.T, text string) {
		if repeat.MatchString(text) {
			t.Skip() // Only large.
		}
		store, err := promqtest.New(text)
		if err != nil {
			return
		}
		s, err := promqtest.NewServer(store, time.Time{})
		require.NoError(t, err)
		defer s.Close()
		_, last := store.Bounds()
		res, err := s.Client().Query(t.Context(), `count({__name__=~".+"})`, last)
		require.NoError(t, err)
		require.NotNil(t, res.Value)
	})
}
