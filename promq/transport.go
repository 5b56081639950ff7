package promq

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
)

// exchange is what the transport saw of one request and client_golang does not report. The body may still be read by
// another goroutine after the request was given up, so the fields are atomic or locked.
type exchange struct {
	status   atomic.Int32 // HTTP status of the last response; 0 if there was none
	partial  atomic.Bool  // the body said isPartial: true
	tooLarge atomic.Bool  // the body was over the cap

	mu       sync.Mutex
	sent     http.Header // the headers of the last request as it went out, credentials included
	location string      // scheme, host and path of a redirect that was not followed
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

// transport caps the body and notes what client_golang drops. The cap is needed because api.Client.Do buffers the whole
// body before it decodes.
type transport struct {
	next     http.RoundTripper
	maxBytes int64
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
	x.mu.Unlock()
	resp.Body = &body{ReadCloser: resp.Body, left: t.maxBytes, x: x}
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

// carryBytes is how much of the previous read is looked at again, for a mark that straddles two reads.
const carryBytes = 32

// body counts and looks at the bytes that pass.
type body struct {
	io.ReadCloser
	left  int64
	carry []byte
	x     *exchange
}

func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		b.x.tooLarge.Store(true)
		return 0, errTooLarge
	}
	if n > 0 && !b.x.partial.Load() {
		b.look(p[:n])
	}
	return n, err
}

func (b *body) look(p []byte) {
	head := p[:min(len(p), carryBytes)]
	if partialPattern.Match(append(b.carry, head...)) || partialPattern.Match(p) {
		b.x.partial.Store(true)
		return
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
