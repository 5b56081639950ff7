package promq

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// Defaults of Config.
const (
	DefaultTimeout          = 10 * time.Second
	DefaultConcurrency      = 8
	DefaultMaxResponseBytes = 16 << 20
)

// partialWarning stands in for VictoriaMetrics' isPartial flag.
const partialWarning = "the answer is partial: some storage nodes did not respond (isPartial)"

// Result is the answer to a query.
type Result struct {
	// Value is a model.Matrix for a range query, and a model.Vector, *model.Scalar or *model.String for an instant one.
	Value model.Value
	// Warnings say that the answer may be incomplete; a reader must trust it less.
	Warnings []string
	// Infos are the engine's remarks about the query, such as a rate of something that is no counter.
	Infos []string
}

// Config says which server to ask and how.
type Config struct {
	// URL is the base of the API, without /api/v1. It may hold a path prefix, userinfo and parameters.
	URL string
	// HTTP holds authorization, TLS, proxy and headers as in Prometheus' own configuration. Its zero value follows no
	// redirects and speaks HTTP/1.1; DefaultHTTP is the recommended start.
	HTTP config.HTTPClientConfig
	// Timeout bounds each request, once it has its turn. It is also sent to the server. 0 means DefaultTimeout.
	Timeout time.Duration
	// Concurrency is the number of requests in flight at once; the others wait. 0 means DefaultConcurrency.
	Concurrency int
	// MaxResponseBytes bounds one response body, and together all that are read at once, so that a server that lies cannot
	// use up the memory of this process. 0 means DefaultMaxResponseBytes.
	MaxResponseBytes int64
	// Params are sent with every request, such as dedup=true for Thanos or extra_label for VictoriaMetrics.
	Params url.Values
	// RoundTripper, if set, carries the requests instead of a transport made from HTTP, which is then not used at all.
	RoundTripper http.RoundTripper
}

// DefaultHTTP returns the HTTP settings to decode configuration over: those of Prometheus, except that redirects are not
// followed. A redirect is nearly always a login page, which must be seen as an error and must not receive credentials.
func DefaultHTTP() config.HTTPClientConfig {
	c := config.DefaultHTTPClientConfig
	c.FollowRedirects = false
	return c
}

// Client asks one server. It keeps no state between requests and is safe for use by several goroutines.
type Client struct {
	api     v1.API
	http    *http.Client
	target  string
	timeout time.Duration
	slots   chan struct{}
	redact  redactor
}

// NewClient returns a client for c. It does not talk to the server.
func NewClient(c Config) (*Client, error) {
	u, err := parseURL(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Timeout < 0 || c.Concurrency < 0 || c.MaxResponseBytes < 0 {
		return nil, errors.New("configure prometheus client: timeout, concurrency and size limit must not be negative")
	}
	red := newRedactor(u, c.Params, c.HTTP)
	hc, err := httpClient(c)
	if err != nil {
		return nil, fmt.Errorf("configure prometheus client: %w", red.wrap(err, ""))
	}
	addParams(u, c.Params)
	ac, err := api.NewClient(api.Config{Address: u.String(), Client: hc})
	if err != nil {
		return nil, fmt.Errorf("configure prometheus client: %w", red.wrap(err, ""))
	}
	return &Client{
		api:     v1.NewAPI(ac),
		http:    hc,
		target:  target(u),
		timeout: orDefault(c.Timeout, DefaultTimeout),
		slots:   make(chan struct{}, orDefault(c.Concurrency, DefaultConcurrency)),
		redact:  red,
	}, nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// parseURL checks the base URL. Its errors do not quote the URL, which may hold a password.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil:
		return nil, errors.New("prometheus url: cannot be parsed; write it as http://host:9090")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("prometheus url: must start with http:// or https://")
	case u.Host == "":
		return nil, errors.New("prometheus url: has no host; write it as http://host:9090")
	case u.Fragment != "":
		return nil, errors.New("prometheus url: must not hold a fragment (#…)")
	case strings.Contains(u.Path+"/", "/api/v1/"):
		return nil, errors.New("prometheus url: must be the base, without /api/v1")
	}
	return u, nil
}

func httpClient(c Config) (*http.Client, error) {
	maxBytes := orDefault(c.MaxResponseBytes, int64(DefaultMaxResponseBytes))
	if c.RoundTripper != nil {
		return &http.Client{
			Transport:     &transport{next: c.RoundTripper, left: newBudget(maxBytes)},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}, nil
	}
	if err := c.HTTP.Validate(); err != nil {
		return nil, err
	}
	hc, err := config.NewClientFromConfig(c.HTTP, "prometheus", config.WithUserAgent("vllm-triage"))
	if err != nil {
		return nil, err
	}
	hc.Transport = &transport{next: hc.Transport, left: newBudget(maxBytes)}
	return hc, nil
}

// Close drops idle connections. Requests in flight go on, and the client may still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Target returns the server's address without userinfo and parameters, fit to be shown.
func (c *Client) Target() string { return c.target }

// Query evaluates expr at an instant.
func (c *Client) Query(ctx context.Context, expr string, at time.Time) (Result, error) {
	return c.query(ctx, expr, func(ctx context.Context, opts ...v1.Option) (model.Value, v1.Warnings, v1.Infos, error) {
		return c.api.Query(ctx, expr, at, opts...)
	})
}

// QueryRange evaluates expr at start, start+step, … up to and including end. The caller aligns start to step: some servers
// do so by themselves, and then the points of two queries fall together only if both were aligned. The server refuses more
// than 11,000 points.
func (c *Client) QueryRange(ctx context.Context, expr string, start, end time.Time, step time.Duration) (Result, error) {
	r := v1.Range{Start: start, End: end, Step: step}
	return c.query(ctx, expr, func(ctx context.Context, opts ...v1.Option) (model.Value, v1.Warnings, v1.Infos, error) {
		return c.api.QueryRange(ctx, expr, r, opts...)
	})
}

type queryFunc func(ctx context.Context, opts ...v1.Option) (model.Value, v1.Warnings, v1.Infos, error)

func (c *Client) query(ctx context.Context, expr string, ask queryFunc) (Result, error) {
	var res Result
	err := c.do(ctx, expr, func(ctx context.Context) (v1.Warnings, error) {
		value, warnings, infos, err := ask(ctx, serverTimeout(ctx)...)
		res.Infos = infos
		if err == nil && value == nil {
			err = noAnswer("the answer holds no result")
		}
		res.Value = value
		return warnings, err
	}, &res.Warnings)
	if err != nil {
		res.Value = nil // It may be half filled.
	}
	return res, err
}

// LabelValues returns the sorted values of a label among the series that any of the matchers (series selectors) selects in
// the window, and the server's warnings. Zero times leave the window to the server.
func (c *Client) LabelValues(
	ctx context.Context, label string, matchers []string, start, end time.Time,
) (values, warnings []string, err error) {
	err = c.do(ctx, "label values of "+label, func(ctx context.Context) (v1.Warnings, error) {
		got, warnings, _, err := c.api.LabelValues(ctx, label, matchers, start, end)
		if err == nil {
			for _, v := range got {
				values = append(values, string(v))
			}
		}
		return warnings, err
	}, &warnings)
	slices.Sort(values)
	return values, warnings, err
}

// Rules returns the rule groups that the server evaluates. Servers without a ruler answer with an error.
func (c *Client) Rules(ctx context.Context) (v1.RulesResult, error) {
	var res v1.RulesResult
	err := c.do(ctx, "rules", func(ctx context.Context) (v1.Warnings, error) {
		var err error
		res, err = c.api.Rules(ctx, nil)
		return nil, err
	}, nil)
	if err != nil {
		return v1.RulesResult{}, err
	}
	return res, nil
}

// BuildInfo returns the version that the server reports. It is the cheapest question that proves address and credentials.
func (c *Client) BuildInfo(ctx context.Context) (version string, err error) {
	err = c.do(ctx, "build info", func(ctx context.Context) (v1.Warnings, error) {
		res, err := c.api.Buildinfo(ctx)
		version = res.Version
		return nil, err
	}, nil)
	return version, err
}

// do waits for a turn, runs ask within the timeout and turns its error into an *Error. Warnings are kept on errors too.
func (c *Client) do(ctx context.Context, query string, ask func(context.Context) (v1.Warnings, error), warnings *[]string) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return c.fail(ctx, query, ctx.Err(), &exchange{})
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ctx, x := withExchange(ctx)
	defer x.done()
	got, err := ask(ctx)
	if err == nil && !x.success.Load() {
		err = noAnswer(`the answer does not say "status": "success"`)
	}
	if warnings != nil {
		*warnings = got
		if x.partial.Load() {
			*warnings = append(*warnings, partialWarning)
		}
	}
	if err != nil {
		return c.fail(ctx, query, err, x)
	}
	return nil
}

// noAnswer is a body that decodes without an error, such as null, and yet answers nothing: it must not pass for "no data".
func noAnswer(why string) error { return &v1.Error{Type: v1.ErrBadResponse, Msg: why} }

func (c *Client) fail(ctx context.Context, query string, err error, x *exchange) error {
	sent, location := x.details()
	note := ""
	if location != "" {
		note = "redirected to " + location
	}
	return &Error{
		Kind:   classify(ctx, err, x),
		Query:  query,
		Target: c.target,
		Err:    c.redact.with(sent).wrap(err, note),
	}
}

// serverTimeout tells the server when we stop listening. Prometheus parses durations without fractions of a unit and Go
// prints 9.5s, so the value is cut to whole seconds, below a second to whole milliseconds.
func serverTimeout(ctx context.Context) []v1.Option {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	left := time.Until(deadline)
	unit := time.Second
	if left < time.Second {
		unit = time.Millisecond
	}
	if left = left.Truncate(unit); left <= 0 {
		return nil
	}
	return []v1.Option{v1.WithTimeout(left)}
}
