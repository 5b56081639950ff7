package alertmanager

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/config"

	"vllm-triage/notify"
)

const (
	// maxErrorText bounds what is kept of a server's words, in runes.
	maxErrorText = 240
	// minSecret is the length below which a value is not searched for: replacing "1" would garble texts.
	minSecret = 6
	redacted  = "<redacted>"
)

var urlPattern = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+`)

// redactor removes the secrets that the client was configured with, and those of a request as it went out, which may come
// from files.
type redactor struct{ secrets []string }

func newRedactor(urls []*url.URL, h config.HTTPClientConfig) redactor {
	var r redactor
	for _, u := range urls {
		if pw, ok := u.User.Password(); ok {
			r.add(pw, url.QueryEscape(pw))
		}
		for _, vs := range u.Query() {
			r.add(vs...)
		}
	}
	r.add(string(h.BearerToken))
	if h.BasicAuth != nil {
		r.add(string(h.BasicAuth.Password))
	}
	if h.Authorization != nil {
		r.add(string(h.Authorization.Credentials))
	}
	if h.OAuth2 != nil {
		r.add(string(h.OAuth2.ClientSecret))
	}
	if h.HTTPHeaders != nil {
		for _, header := range h.HTTPHeaders.Headers {
			for _, s := range header.Secrets {
				r.add(string(s))
			}
		}
	}
	return r
}

func (r *redactor) add(secrets ...string) {
	for _, s := range secrets {
		if len(s) >= minSecret && !slices.Contains(r.secrets, s) {
			r.secrets = append(r.secrets, s)
		}
	}
	// The longest first, so that none survives inside a longer one.
	slices.SortStableFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
}

// with returns a redactor that knows the credentials in the headers of a request too.
func (r redactor) with(h http.Header) redactor {
	out := redactor{secrets: slices.Clone(r.secrets)}
	for name, values := range h {
		switch http.CanonicalHeaderKey(name) {
		case "Accept", "Accept-Encoding", "Content-Type", "Content-Length", "User-Agent", "X-Scope-Orgid":
			continue // Set by the libraries, or needed by whoever reads the error.
		}
		for _, v := range values {
			out.add(v)
			if _, credentials, ok := strings.Cut(v, " "); ok {
				out.add(credentials)
				if plain, err := base64.StdEncoding.DecodeString(credentials); err == nil {
					_, password, _ := strings.Cut(string(plain), ":")
					out.add(password)
				}
			}
		}
	}
	return out
}

// text makes foreign words safe to print: no secrets, no URL beyond scheme, host and path, one line, bounded.
func (r redactor) text(s string) string {
	s = urlPattern.ReplaceAllStringFunc(s, func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			return "<url>"
		}
		return target(u)
	})
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, redacted)
	}
	return notify.Clean(s, maxErrorText)
}

// wrap returns an error with a printable text that errors.Is sees through but no encoder can unwrap: the original's own
// text may hold the whole URL.
func (r redactor) wrap(err error) error {
	text := err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok {
		text = u.Err.Error()
	}
	return &cause{text: r.text(text), orig: err}
}

type cause struct {
	text string
	orig error
}

func (c *cause) Error() string        { return c.text }
func (c *cause) Is(target error) bool { return errors.Is(c.orig, target) }

// target is what may be shown of a URL.
func target(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
