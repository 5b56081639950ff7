package promq

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
)

// exchange is what the transport saw of one request and client_golang does not report. The body may still be read by
// another goroutine after the request was given up, so the fields are atomic or locked.
type exchange struct {
	status   atomic.Int32 // HTTP status of the last response; 0 if there was none
	partial  atomic.Bool  // the body said isPartial: true
	success  atomic.Bool  // the body said status: success
	tooLarge atomic.Bool  // the body was over the cap

	mu       sync.Mutex
	left     *atomic.Int64 // the budget of all bodies; nil before there is one
	held     int64         // bytes taken from it
	over     bool          // the request is over: nothing may be taken any more
	sent     http.Header   // the headers of the last request as it went out, credentials included
	location string        // scheme, host and path of a redirect that was not followed
}

type exchangeKey struct{}

func withExchange(ctx context.Context) (context.Context, *exchange) {
	x := &exchange{}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// details returns the headers sent and the redirect seen.
func (x *exchange) details() (http.Header, string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent, x.location
}

// done gives the bytes of the request's bodies back, once they are decoded.
func (x *exchange) done() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.left != nil {
		x.left.Add(x.held)
	}
}

// take says whether n bytes more fit into the budget.
func (x *exchange) take(n int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	x.held += int64(n)
	return x.left.Add(-int64(n)) >= 0
}

// transport caps the bodies and notes what client_golang drops. The cap is needed because api.Client.Do buffers the whole
// body before it decodes. All requests share it: as many of them run at once, each with a cap of its own would add up.
type transport struct {
	next http.RoundTripper
	left *atomic.Int64 // bytes that bodies may still hold
}

func newBudget(n int64) *atomic.Int64 {
	var b atomic.Int64
	b.Store(n)
	return &b
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if err != nil || !ok {
		return resp, err
	}
	x.status.Store(int32(resp.StatusCode)) //nolint:gosec // A status has three digits.
	x.mu.Lock()
	if resp.Request != nil {
		x.sent = resp.Request.Header
	}
	if loc, locErr := resp.Location(); locErr == nil {
		x.location = target(loc)
	}
	x.left = t.left
	x.mu.Unlock()
	resp.Body = &body{ReadCloser: resp.Body, x: x}
	return resp, nil
}

// CloseIdleConnections lets http.Client close the connections of the wrapped transport.
func (t *transport) CloseIdleConnections() {
	type idler interface{ CloseIdleConnections() }
	if c, ok := t.next.(idler); ok {
		c.CloseIdleConnections()
	}
}

// errTooLarge ends the reading of a body over the cap.
var errTooLarge = errors.New("response body over the size limit")

// partialPattern finds VictoriaMetrics' mark of a partial answer, which client_golang's decoder drops. Inside a JSON string
// the quotes would be escaped, and a label of that name has a string for its value, so the bytes cannot occur elsewhere.
var partialPattern = regexp.MustCompile(`"isPartial"\s*:\s*true`)

// successPattern finds the mark that every answer of the API has. client_golang asks only whether the status is "error".
var successPattern = regexp.MustCompile(`"status"\s*:\s*"success"`)

// carryBytes is how much of the previous read is looked at again, for a mark that straddles two reads.
const carryBytes = 32

// body counts and looks at the bytes that pass.
type body struct {
	io.ReadCloser
	carry []byte
	x     *exchange
}

func (b *body) Read(p []byte) (int, error) {
	if b.x.tooLarge.Load() {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p)
	if !b.x.take(n) {
		b.x.tooLarge.Store(true)
		return 0, errTooLarge
	}
	if n > 0 {
		b.look(p[:n])
	}
	return n, err
}

// look searches what was read for the marks, across the border to what was read before.
func (b *body) look(p []byte) {
	seam := slices.Concat(b.carry, p[:min(len(p), carryBytes)])
	for _, m := range []struct {
		pattern *regexp.Regexp
		seen    *atomic.Bool
	}{{partialPattern, &b.x.partial}, {successPattern, &b.x.success}} {
		if !m.seen.Load() && (m.pattern.Match(seam) || m.pattern.Match(p)) {
			m.seen.Store(true)
		}
	}
	b.carry = append(b.carry, p[max(0, len(p)-carryBytes):]...)
	b.carry = append([]byte(nil), b.carry[max(0, len(b.carry)-carryBytes):]...)
}

// addParams puts static parameters into the query of a URL; client_golang carries them into every request and body.
func addParams(u *url.URL, params url.Values) {
	q := u.Query()
	for k, vs := range params {
		q[k] = append(q[k], vs...)
	}
	u.RawQuery = q.Encode()
}
