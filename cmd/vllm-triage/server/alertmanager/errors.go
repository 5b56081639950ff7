package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Kind says what went wrong with a request. It is a closed set, fit for a metric label.
type Kind string

// The kinds of failure.
const (
	Unavailable Kind = "unavailable"  // No peer could be reached or served: asking later may help.
	Timeout     Kind = "timeout"      // A peer took too long.
	Canceled    Kind = "canceled"     // The caller gave up.
	Auth        Kind = "auth"         // The credentials were refused (401, 403, 407).
	Refused     Kind = "refused"      // Alertmanager understood the request and refused it (400, 422).
	NotFound    Kind = "not_found"    // There is no such silence, on any peer.
	Expired     Kind = "expired"      // The silence is over already.
	BadResponse Kind = "bad_response" // What answered is not Alertmanager's v2 API: a login page, a redirect, a wrong path.
	TooLarge    Kind = "too_large"    // The answer is larger than the limit.
	TooBroad    Kind = "too_broad"    // The silence would hide too much; nothing was sent.
)

// Kinds lists all kinds, for counters that exist from the start.
func Kinds() []Kind {
	return []Kind{
		Unavailable, Timeout, Canceled, Auth, Refused, NotFound, Expired, BadResponse, TooLarge, TooBroad,
	}
}

// Error is a failed request. Its text never holds credentials or the parameters of a URL.
type Error struct {
	Kind Kind
	// Op is what was wanted, for example "create silence".
	Op string
	// Target is the peer's scheme, host and path; empty when nothing was sent.
	Target string
	// Others are the peers that failed too, each with its kind of failure.
	Others []string
	// Maybe is true when the request may have been carried out although no answer came.
	Maybe bool
	// Err is the cause with secrets removed.
	Err error
}

// Error implements error; it names the next step where there is one.
func (e *Error) Error() string {
	s := e.Op
	if e.Target != "" {
		s += " at " + e.Target
	}
	s = fmt.Sprintf("%s: %s: %v", s, e.Kind, e.Err)
	switch e.Kind {
	case Auth:
		s += " (check the authorization in alertmanager.http_config)"
	case BadResponse:
		s += " (check alertmanager.url: it is the base, without /api/v2)"
	default:
	}
	if len(e.Others) > 0 {
		s += "; others: " + strings.Join(e.Others, ", ")
	}
	return s
}

// beside adds the failures of other peers.
func (e *Error) beside(all []*Error) *Error {
	for _, other := range all {
		if other != e {
			e.Others = append(e.Others, other.Target+" "+string(other.Kind))
		}
	}
	return e
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of a failure of this package, or empty.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// elsewhere says whether another peer may do better.
func (e *Error) elsewhere() bool {
	switch e.Kind {
	case Unavailable, Timeout, BadResponse, NotFound:
		return true
	default:
		return false
	}
}

// ofTransport classes an error that came instead of an answer.
func ofTransport(ctx context.Context, err error) Kind {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Canceled
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return Timeout
	}
	return Unavailable
}

// ofStatus classes the status of an answer that is not 2xx.
func ofStatus(status int) Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return Auth
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return Refused
	case status == http.StatusNotFound:
		return NotFound
	case status == http.StatusTooManyRequests, status >= 500:
		return Unavailable
	default: // Redirects that are not followed, methods that are not known.
		return BadResponse
	}
}
