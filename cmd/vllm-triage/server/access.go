package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"vllm-triage/notify"
)

// reader is who asks for a page, and how far they may go.
type reader struct {
	name  string // Empty: not known.
	full  bool   // May read every incident and answer forms.
	grant string // Query of the signed link that let them in, for one incident.
}

// The parameters of a signed link.
const (
	paramExpires   = "expires"
	paramSignature = "signature"
)

// readerOf tells who asks: the holder of the webhook's credentials, a user that a trusted proxy vouches for, or the holder
// of a signed link to one incident. ok is false when it is none of them.
func (s *Server) readerOf(c echo.Context, incident string) (reader, bool) {
	cfg := s.Parts().Config
	r := c.Request()
	if s.open {
		return reader{name: "local", full: true}, true
	}
	if (cfg.Webhook.BearerToken.IsSet() || cfg.Webhook.BasicAuth != nil || cfg.Webhook.ByWebConfig) && s.mayPost(r, cfg.Webhook) {
		user, _, _ := r.BasicAuth()
		return reader{name: user, full: true}, true
	}
	if h := cfg.Pages.UserHeader; h != "" && s.trusted(r) {
		if user := r.Header.Get(h); user != "" {
			return reader{name: notify.Clean(user, 80), full: true}, true
		}
	}
	if incident == "" || !cfg.Pages.Links {
		return reader{}, false
	}
	q := r.URL.Query()
	expires, err := strconv.ParseInt(q.Get(paramExpires), 10, 64)
	if err != nil || s.now().Unix() > expires || !same(q.Get(paramSignature), s.linkSignature(incident, expires)) {
		return reader{}, false
	}
	return reader{grant: grantQuery(expires, q.Get(paramSignature))}, true
}

func grantQuery(expires int64, signature string) string {
	return url.Values{paramExpires: {strconv.FormatInt(expires, 10)}, paramSignature: {signature}}.Encode()
}

func (s *Server) linkSignature(incident string, expires int64) string {
	return s.sign("link", incident+"\x00"+strconv.FormatInt(expires, 10))
}

// sourceOf is the address that asks, for the rate limit: the last one of X-Forwarded-For that is no proxy of ours when the
// request comes from one, else the other end of the connection.
func (s *Server) sourceOf(r *http.Request) string {
	source := echo.ExtractIPDirect()(r)
	if !s.trusted(r) {
		return source
	}
	hops := strings.Split(strings.Join(r.Header.Values(echo.HeaderXForwardedFor), ","), ",")
	for _, hop := range slices.Backward(hops) {
		addr, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return source
		}
		source = addr.Unmap().String()
		if !s.ours(addr) {
			return source
		}
	}
	return source
}

// trusted says whether the request comes directly from a configured proxy.
func (s *Server) trusted(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return s.ours(addr)
}

// ours says whether an address is one of the configured proxies'.
func (s *Server) ours(addr netip.Addr) bool {
	for _, cidr := range s.Parts().Config.Server.TrustedProxies {
		if p, err := netip.ParsePrefix(cidr); err == nil && p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// signLinks adds a signature to the links that lead to this service, so that whoever sees the message can open them.
func (s *Server) signLinks(p *Parts, m *notify.Message) {
	for _, link := range []*string{&m.Links.Incident, &m.Links.Runbook} {
		if *link != "" {
			*link = s.signLink(p, m.IncidentID, *link)
		}
	}
}

// formToken binds a form to the incident and to what let its reader in.
func (s *Server) formToken(r reader, incident string) string {
	return s.sign("form", incident+"\x00"+r.name+"\x00"+r.grant)
}
