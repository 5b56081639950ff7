package alertmanager

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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"
)

// Defaults of Config.
const (
	DefaultTimeout          = 10 * time.Second
	DefaultMaxSilence       = 24 * time.Hour
	DefaultMaxResponseBytes = 16 << 20
)

// shun is how long a peer that failed is tried last instead of in its place.
const shun = 30 * time.Second

// Config says which Alertmanager to ask and how.
type Config struct {
	// URLs are the bases of the peers, without /api/v2, in the order in which they are tried. They may hold a path prefix,
	// userinfo and parameters.
	URLs []string
	// HTTP holds authorization, TLS, proxy and headers as in Prometheus' own configuration.
	HTTP config.HTTPClientConfig
	// Timeout bounds each request to one peer; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxSilence is the longest silence that CreateSilence makes; 0 is DefaultMaxSilence.
	MaxSilence time.Duration
	// MaxResponseBytes bounds one answer; 0 is DefaultMaxResponseBytes.
	MaxResponseBytes int64
}

// Client asks one Alertmanager, or the peers of one cluster. It is safe for concurrent use.
type Client struct {
	peers      []*peer
	http       *http.Client
	timeout    time.Duration
	maxSilence time.Duration
	maxBytes   int64
	redact     redactor
}

// peer is one member of the cluster.
type peer struct {
	base   *url.URL
	failed atomic.Int64 // When it last failed, in Unix nanoseconds.
}

// New returns a client. It asks nobody.
func New(c Config) (*Client, error) {
	if len(c.URLs) == 0 {
		return nil, errors.New("configure alertmanager client: no url")
	}
	if c.Timeout < 0 || c.MaxSilence < 0 || c.MaxResponseBytes < 0 {
		return nil, errors.New("configure alertmanager client: limits must not be negative")
	}
	out := &Client{
		timeout: c.Timeout, maxSilence: c.MaxSilence, maxBytes: c.MaxResponseBytes,
	}
	if out.timeout == 0 {
		out.timeout = DefaultTimeout
	}
	if out.maxSilence == 0 {
		out.maxSilence = DefaultMaxSilence
	}
	if out.maxBytes == 0 {
		out.maxBytes = DefaultMaxResponseBytes
	}
	var bases []*url.URL
	for _, raw := range c.URLs {
		u, err := parseURL(raw)
		if err != nil {
			return nil, fmt.Errorf("configure alertmanager client: %w", err)
		}
		bases = append(bases, u)
		out.peers = append(out.peers, &peer{base: u})
	}
	out.redact = newRedactor(bases, c.HTTP)
	if err := c.HTTP.Validate(); err != nil {
		return nil, fmt.Errorf("configure alertmanager client: %w", out.redact.wrap(err))
	}
	hc, err := config.NewClientFromConfig(c.HTTP, "alertmanager", config.WithUserAgent("vllm-triage"))
	if err != nil {
		return nil, fmt.Errorf("configure alertmanager client: %w", out.redact.wrap(err))
	}
	hc.CheckRedirect = checkRedirect(c.HTTP.FollowRedirects)
	out.http = hc
	return out, nil
}

// parseURL checks a base URL. Its errors do not quote it: it may hold a password.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil:
		return nil, errors.New("url cannot be parsed; write it as http://alertmanager:9093")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("url must be http or https with a host, such as http://alertmanager:9093")
	case u.Fragment != "":
		return nil, errors.New("url must not hold a fragment (#…)")
	case strings.Contains(u.Path+"/", "/api/v"):
		return nil, errors.New("url must be the base, without /api/v2")
	}
	return u, nil
}

// checkRedirect lets redirects lead to the same host only, and those of requests that change nothing: credentials and a
// silence must not go where nobody configured them to.
func checkRedirect(follow bool) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		first := via[0]
		if !follow || len(via) > 5 || first.Method != http.MethodGet || next.URL.Host != first.URL.Host ||
			next.URL.Scheme != first.URL.Scheme {
			return http.ErrUseLastResponse
		}
		return nil
	}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Targets lists the peers without userinfo and parameters, fit to be shown.
func (c *Client) Targets() []string {
	out := make([]string, 0, len(c.peers))
	for _, p := range c.peers {
		out = append(out, target(p.base))
	}
	return out
}

// Version asks for Alertmanager's version.
func (c *Client) Version(ctx context.Context) (string, error) {
	var status struct {
		VersionInfo struct {
			Version string `json:"version"`
		} `json:"versionInfo"`
	}
	err := c.any(ctx, request{op: "read status", method: http.MethodGet, path: "/status", out: &status})
	return status.VersionInfo.Version, err
}

// order is the peers in order, those that failed a moment ago at the end.
func (c *Client) order() []*peer {
	now := time.Now()
	var well, ill []*peer
	for _, p := range c.peers {
		if at := p.failed.Load(); at != 0 && now.Sub(time.Unix(0, at)) < shun {
			ill = append(ill, p)
			continue
		}
		well = append(well, p)
	}
	return append(well, ill...)
}

// request is one call of the API.
type request struct {
	op     string
	method string
	path   string // Below /api/v2.
	query  url.Values
	body   any // Sent as JSON; nil: no body.
	out    any // Decoded from JSON; nil: the body is not read.
}

// any asks the peers in order until one answers. It returns the first failure that another peer cannot mend, or the last.
func (c *Client) any(ctx context.Context, r request) error {
	var last *Error
	var failed []*Error
	for _, p := range c.order() {
		e := c.ask(ctx, p, r)
		if e == nil {
			return nil
		}
		failed = append(failed, e)
		// What a peer said counts for more than that another could not be asked.
		if last == nil || last.Kind != NotFound {
			last = e
		}
		if !e.elsewhere() {
			break
		}
	}
	return last.beside(failed)
}

// ask sends a request to one peer.
func (c *Client) ask(ctx context.Context, p *peer, r request) *Error {
	e := c.try(ctx, p, r)
	switch {
	case e == nil:
		p.failed.Store(0)
	case e.Kind == Unavailable, e.Kind == Timeout, e.Kind == BadResponse:
		p.failed.Store(time.Now().UnixNano())
	}
	return e
}

func (c *Client) try(ctx context.Context, p *peer, r request) *Error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	fail := func(k Kind, maybe bool, err error) *Error {
		return &Error{Kind: k, Op: r.op, Target: target(p.base), Maybe: maybe && r.method != http.MethodGet, Err: err}
	}
	var sent atomic.Bool
	var headers sync.Map // Of the request as it went out: credentials from files are among them.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaderField: func(name string, values []string) { headers.Store(name, values) },
		WroteRequest:     func(info httptrace.WroteRequestInfo) { sent.Store(info.Err == nil) },
	})
	redact := func() redactor {
		h := http.Header{}
		headers.Range(func(k, v any) bool {
			name, _ := k.(string)
			values, _ := v.([]string)
			h[http.CanonicalHeaderKey(name)] = values
			return true
		})
		return c.redact.with(h)
	}
	req, err := c.newRequest(ctx, p, r)
	if err != nil {
		return fail(Refused, false, c.redact.wrap(err))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fail(ofTransport(caller, err), sent.Load(), redact().wrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		kind := ofStatus(resp.StatusCode)
		if kind == NotFound && !strings.HasPrefix(r.path, silencePath) {
			kind = BadResponse // The address itself is not known: a wrong base.
		}
		return fail(kind, resp.StatusCode >= 500, errors.New(redact().text(words(resp))))
	}
	if r.out == nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.maxBytes+1))
	switch {
	case err != nil:
		return fail(ofTransport(caller, err), true, redact().wrap(err))
	case int64(len(data)) > c.maxBytes:
		return fail(TooLarge, false, fmt.Errorf("the answer is larger than %d bytes", c.maxBytes))
	}
	if err := json.Unmarshal(data, r.out); err != nil {
		// The decoder's words can quote the answer, which is not trusted to be free of secrets.
		return fail(BadResponse, true, errors.New("the answer is not the JSON of the v2 API"))
	}
	return nil
}

func (c *Client) newRequest(ctx context.Context, p *peer, r request) (*http.Request, error) {
	u := *p.base
	u.Path = strings.TrimRight(u.Path, "/") + "/api/v2" + r.path
	q := u.Query()
	for name, values := range r.query {
		q[name] = append(q[name], values...)
	}
	u.RawQuery = q.Encode()
	var body io.Reader = http.NoBody
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// words is what an answer says about a failure: a JSON string, an object with a message, or text.
func words(resp *http.Response) string {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	status := fmt.Sprintf("status %d", resp.StatusCode)
	text := strings.TrimSpace(string(data))
	if location := resp.Header.Get("Location"); location != "" {
		return status + ", a redirect to " + location
	}
	if err != nil || text == "" || strings.HasPrefix(text, "<") {
		return status
	}
	var message string
	var object struct {
		Message string `json:"message"`
		Error   string `json:"error"`
	}
	switch {
	case json.Unmarshal(data, &message) == nil:
	case json.Unmarshal(data, &object) == nil && object.Message+object.Error != "":
		message = object.Message + object.Error
	default:
		message = text
	}
	return status + ": " + message
}
