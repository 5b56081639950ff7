package web

import (
	"net/url"
	"strings"
)

// maxURL is the longest address that a page links to.
const maxURL = 4000

// outside returns an address from a label or annotation if it is an absolute http or https address without credentials,
// else nothing: javascript:, data: and their like never become links.
func outside(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	if out := u.String(); len(out) <= maxURL {
		return out
	}
	return ""
}
