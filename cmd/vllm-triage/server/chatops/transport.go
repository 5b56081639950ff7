package chatops

import (
	"io"
	"net/http"
)

// maxAnswer bounds what is read of an answer of Slack, in bytes. A user group's members are the largest.
const maxAnswer = 4 << 20

// capped bounds answers.
type capped struct{ next *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t *capped) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Client wraps it.
	}
	resp.Body = &cappedBody{Reader: io.LimitReader(resp.Body, maxAnswer), Closer: resp.Body}
	return resp, nil
}

// CloseIdleConnections lets http.Client close the connections.
func (t *capped) CloseIdleConnections() { t.next.CloseIdleConnections() }

type cappedBody struct {
	io.Reader
	io.Closer
}
