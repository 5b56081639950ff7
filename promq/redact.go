package promq

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
)

// maxErrorText bounds the part of a server's answer that is kept in an error, in bytes.
const maxErrorText = 300

// minSecret is the length below which a value is not searched for in texts: replacing "1" or "true" would garble them.
const minSecret = 6

var urlPattern = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+`)

// redactor removes the secrets that this client was configured with.
type redactor struct {
	secrets []string // longest first, so that no secret survives inside a longer one
}

// newRedactor collects the secrets known at construction. Those in files are seen by the transport, which adds them to the
// exchange.
func newRedactor(u *url.URL, params url.Values, h config.HTTPClientConfig) redactor {
	var r redactor
	if pw, ok := u.User.Password(); ok {
		r.add(pw)
		r.add(url.QueryEscape(pw))
	}
	r.add(u.User.Username())
	for _, values := range []url.Values{u.Query(), params} {
		for _, vs := range values {
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
		for _, hdr := range h.HTTPHeaders.Headers {
			for _, s := range hdr.Secrets {
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
	slices.SortFunc(r.secrets, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
}

// with returns a redactor that also knows the credentials of a request as it went out.
func (r redactor) with(h http.Header) redactor {
	out := redactor{secrets: slices.Clone(r.secrets)}
	for name, values := range h {
		if !carriesSecret(name) {
			continue
		}
		for _, v := range values {
			out.add(v)
			_, credentials, ok := strings.Cut(v, " ")
			if !ok {
				continue
			}
			out.add(credentials)
			if plain, err := base64.StdEncoding.DecodeString(credentials); err == nil {
				_, password, _ := strings.Cut(string(plain), ":")
				out.add(password)
			}
		}
	}
	return out
}

// carriesSecret says which request headers may hold a secret: all but those that the libraries set themselves and the
// tenant, which an operator needs to see in an error.
func carriesSecret(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Accept", "Accept-Encoding", "Content-Type", "Content-Length", "User-Agent", "X-Scope-Orgid", "Thanos-Tenant":
		return false
	}
	return true
}

// text makes a server's or library's words safe to print: no secrets, no URL beyond scheme, host and path, no control
// characters (they would forge log lines), bounded length.
func (r redactor) text(s string) string {
	s = urlPattern.ReplaceAllStringFunc(s, func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			return "<url>"
		}
		return target(u)
	})
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, "<redacted>")
	}
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	s = strings.TrimSpace(s)
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "") + "…"
	}
	return s
}

// wrap returns err with a printable text.
func (r redactor) wrap(err error, note string) error {
	text := err.Error()
	if api, ok := errors.AsType[*v1.Error](err); ok {
		text = api.Msg
		if detail := strings.TrimSpace(api.Detail); detail != "" {
			text += ": " + detail
		}
	} else if ue, ok := errors.AsType[*url.Error](err); ok {
		text = ue.Err.Error() // Without the method and the URL.
	}
	if note != "" {
		text = note + ": " + text
	}
	return &cause{text: r.text(text), orig: err}
}

// target is what may be shown of a URL: scheme, host and path.
func target(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
