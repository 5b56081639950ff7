package web

import (
	"io"
	"net/http"
	"strconv"

	"vllm-triage/notify"
)

// ErrorView is what the reader gets instead of a page.
type ErrorView struct {
	Site   Site
	Status int // The HTTP status: 401, 403, 404, 410, 429, 500 or 503; others are told as 4xx or 5xx.
	// Thing is what was asked for, such as "incident 9f3a1c". Reason and Next replace the texts of the status; all three
	// may be empty.
	Thing, Reason, Next string
	// RequestID finds the request in the log; may be empty.
	RequestID string
}

// Error writes the page of an error. It names the thing, the reason and the next step, and nothing of the inside.
func Error(w io.Writer, v ErrorView) error {
	p := errorPage{
		page: newPage(v.Site, "", ""), Status: strconv.Itoa(v.Status), Thing: clean(v.Thing),
		Reason: notify.Clean(v.Reason, maxText), Next: notify.Clean(v.Next, maxText), RequestID: clean(v.RequestID),
	}
	key := "error." + known(v.Status)
	p.Title = p.T(key + ".title")
	if p.Reason == "" {
		p.Reason = p.T(key + ".reason")
	}
	if p.Next == "" {
		p.Next = p.T(key + ".next")
	}
	p.Tone = toneUnsure
	if v.Status >= http.StatusInternalServerError {
		p.Tone = toneBad
	}
	return render(w, "error", p)
}

// errorPage is what error.html shows.
type errorPage struct {
	page
	Status, Thing, Reason, Next, RequestID string
}

// known is the status whose words fit.
func known(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable:
		return strconv.Itoa(status)
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return strconv.Itoa(http.StatusServiceUnavailable)
	default:
		if status >= http.StatusInternalServerError {
			return strconv.Itoa(http.StatusInternalServerError)
		}
		return strconv.Itoa(http.StatusBadRequest)
	}
}
