package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// maxAnswer bounds what is read of an answer; Slack's are far smaller, except for pages of history.
const maxAnswer = 8 << 20

// transport bounds answers and makes those of the rate limit readable for slack-go, which only understands a
// Retry-After in seconds and never looks into the body.
type transport struct {
	next http.RoundTripper
	seen func(http.Header) // Is told the headers of each answer; may be nil.
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Client wraps it with method and address.
	}
	if t.seen != nil {
		t.seen(resp.Header)
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		readLimit(resp)
	}
	resp.Body = &limited{Reader: io.LimitReader(resp.Body, maxAnswer), Closer: resp.Body}
	return resp, nil
}

type limited struct {
	io.Reader
	io.Closer
}

// readLimit normalises Retry-After and puts the error code of the body, if it has one, into the status.
func readLimit(resp *http.Response) {
	if after := resp.Header.Get("Retry-After"); after != "" {
		if seconds, ok := retryAfter(after, time.Now()); ok {
			resp.Header.Set("Retry-After", strconv.Itoa(seconds))
		} else {
			resp.Header.Del("Retry-After")
		}
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return // The status alone tells enough.
	}
	resp.Body = &limited{Reader: io.MultiReader(bytes.NewReader(head), resp.Body), Closer: resp.Body}
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(head, &body) == nil && isCode(body.Error) {
		resp.Status = fmt.Sprintf("%d %s", resp.StatusCode, body.Error)
	}
}

// isCode says whether a word looks like one of Slack's error codes, so that nothing else of a body gets into errors.
func isCode(s string) bool {
	return s != "" && len(s) < 60 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// retryAfter reads a Retry-After header, which is seconds or a date.
func retryAfter(s string, now time.Time) (seconds int, ok bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return min(max(n, 0), 3600), true
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && n >= 0 && n < 3600 {
		return int(n) + 1, true
	}
	if at, err := http.ParseTime(s); err == nil {
		return int(min(max(at.Sub(now), 0), time.Hour)/time.Second) + 1, true
	}
	return 0, false
}

// sent knows whether a request has left the process: only then can an error leave a message behind.
type sent struct{ headers atomic.Bool }

// watch returns a context whose requests are observed.
func watch(ctx context.Context) (context.Context, *sent) {
	s := &sent{}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { s.headers.Store(true) },
	}), s
}
