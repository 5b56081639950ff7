package promq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// Kind says what went wrong with a request, and so whether asking again or asking for less can help.
type Kind int

// The kinds of failure.
const (
	// KindUnavailable is a server that cannot be reached, is overloaded (429) or answers 5xx. Asking later may help.
	KindUnavailable Kind = iota + 1
	// KindTimeout is a query that took too long, by our clock or the server's.
	KindTimeout
	// KindTooExpensive is a query over a limit: samples, points, series, or the size of the response.
	KindTooExpensive
	// KindBadQuery is a query the server understood to be wrong. Asking again never helps.
	KindBadQuery
	// KindCanceled is a request whose caller gave up.
	KindCanceled
	// KindUnauthorized is a refusal of the credentials (401, 403, 407).
	KindUnauthorized
	// KindBadResponse is an answer that is not one of the Prometheus API: a login page, a redirect, a wrong path, cut JSON.
	KindBadResponse
)

// String returns the kind as a word fit for a metric label.
func (k Kind) String() string {
	switch k {
	case KindUnavailable:
		return "unavailable"
	case KindTimeout:
		return "timeout"
	case KindTooExpensive:
		return "too_expensive"
	case KindBadQuery:
		return "bad_query"
	case KindCanceled:
		return "canceled"
	case KindUnauthorized:
		return "unauthorized"
	case KindBadResponse:
		return "bad_response"
	}
	return "unknown"
}

// sentence is the kind in words, with the next step where there is one.
func (k Kind) sentence() string {
	switch k {
	case KindUnavailable:
		return "server unavailable"
	case KindTimeout:
		return "timed out"
	case KindTooExpensive:
		return "query over a limit of the server or of this client; ask for a shorter range or a longer step"
	case KindBadQuery:
		return "query refused as invalid"
	case KindCanceled:
		return "canceled"
	case KindUnauthorized:
		return "credentials refused; check the authorization and tenant header in http_config"
	case KindBadResponse:
		return "not an answer of the Prometheus API; check the URL and its path"
	}
	return "failed"
}

// Error is a failed request. Its text never holds credentials or the parameters of the URL.
type Error struct {
	// Kind is the class of the failure.
	Kind Kind
	// Query is the PromQL asked, or the name of the endpoint where there is none.
	Query string
	// Target is the server's scheme, host and path.
	Target string
	// Err is the cause with secrets removed; errors.Is sees through it.
	Err error
}

// Error names the server, the class of the failure and the server's own words.
func (e *Error) Error() string {
	return fmt.Sprintf("ask prometheus at %s: %s: %v", e.Target, e.Kind.sentence(), e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsUnavailable reports whether the server could not be reached or could not serve.
func IsUnavailable(err error) bool { return isKind(err, KindUnavailable) }

// IsTimeout reports whether the request took too long.
func IsTimeout(err error) bool { return isKind(err, KindTimeout) }

// IsTooExpensive reports whether the query was over a limit.
func IsTooExpensive(err error) bool { return isKind(err, KindTooExpensive) }

// IsBadQuery reports whether the server refused the query as wrong.
func IsBadQuery(err error) bool { return isKind(err, KindBadQuery) }

// IsCanceled reports whether the caller gave up.
func IsCanceled(err error) bool { return isKind(err, KindCanceled) }

// IsUnauthorized reports whether the server refused the credentials.
func IsUnauthorized(err error) bool { return isKind(err, KindUnauthorized) }

// IsBadResponse reports whether what answered is not a Prometheus API.
func IsBadResponse(err error) bool { return isKind(err, KindBadResponse) }

func isKind(err error, k Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == k
}

// cause carries a text without secrets beside the identity of the original error. It does not unwrap: the original's own
// text (a url.Error prints the whole URL) must not become reachable by a log encoder that walks chains.
type cause struct {
	text string
	orig error
}

func (c *cause) Error() string { return c.text }

// Is lets errors.Is find context.Canceled, context.DeadlineExceeded and syscall errors.
func (c *cause) Is(target error) bool { return errors.Is(c.orig, target) }

// classify decides the kind of a failed request from the error of client_golang and what the transport saw.
func classify(ctx context.Context, err error, x *exchange) Kind {
	status := int(x.status.Load())
	text := strings.ToLower(serverText(err))
	switch {
	case x.tooLarge.Load():
		return KindTooExpensive
	case errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, context.Canceled):
		return KindCanceled
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || isNetTimeout(err):
		return KindTimeout
	}
	switch status {
	case 0:
		return KindUnavailable // No response at all.
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return KindUnauthorized
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return KindTimeout
	case http.StatusRequestEntityTooLarge:
		return KindTooExpensive
	case http.StatusTooManyRequests:
		return KindUnavailable
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		if k, ok := kindOfType(err); ok {
			return k
		}
		return kindOfText(text, KindBadQuery)
	}
	switch {
	case status >= http.StatusInternalServerError:
		return kindOfText(text, KindUnavailable)
	case status/100 == 2 && !isAPIError(err):
		return KindUnavailable // The connection broke inside the body.
	case status/100 == 2:
		if k, ok := kindOfType(err); ok {
			return k
		}
		return kindOfText(text, KindBadQuery) // An error inside a 200.
	}
	return KindBadResponse
}

// kindOfType reads the error type that Prometheus puts beside the message where it alone decides.
func kindOfType(err error) (Kind, bool) {
	api, ok := errors.AsType[*v1.Error](err)
	if !ok {
		return 0, false
	}
	switch api.Type { //nolint:exhaustive // The remaining types say nothing that the status does not.
	case v1.ErrTimeout:
		return KindTimeout, true
	case v1.ErrCanceled:
		return KindTimeout, true // The server gave up on the query, our context is alive: asking for less may help.
	case v1.ErrBadResponse:
		return KindBadResponse, true
	}
	return 0, false
}

// limitTexts are what servers say when a query is over a limit. Prometheus: promql/engine.go and web/api/v1; Thanos:
// store limits; Mimir: error ids; VictoriaMetrics: every limit message names its -search.max flag.
var limitTexts = []string{
	"too many samples", "too many series", "too many points", "11,000 points", "exceeded maximum resolution",
	"-search.max", "query time range exceeds the limit", "exceeded samples limit", "exceeded series limit",
	"exceeded chunks limit", "the query hit the max", "the query exceeded the maximum", "err-mimir-max-",
	"resource exhausted",
}

// kindOfText reads the server's words; fallback is the kind when they say nothing known.
func kindOfText(text string, fallback Kind) Kind {
	for _, timeout := range []string{
		`"errortype":"timeout"`, `"errortype":"canceled"`, "query timed out", "timeout exceeded", "deadline exceeded",
		"maxqueryduration", "context canceled",
	} {
		if strings.Contains(text, timeout) {
			return KindTimeout
		}
	}
	for _, limit := range limitTexts {
		if strings.Contains(text, limit) {
			return KindTooExpensive
		}
	}
	return fallback
}

// serverText is all the words the server sent: for codes other than 400 and 422, client_golang keeps them in Detail only.
func serverText(err error) string {
	if api, ok := errors.AsType[*v1.Error](err); ok {
		return api.Msg + "\n" + api.Detail
	}
	return err.Error()
}

func isAPIError(err error) bool {
	_, ok := errors.AsType[*v1.Error](err)
	return ok
}

func isNetTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}
