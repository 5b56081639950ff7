package web

import (
	"net/url"
	"time"

	"vllm-triage/notify/locale"
)

// Site is what every page needs to know beside its own content.
type Site struct {
	// Prefix is the path below which the service is reached, without a slash at its end: "" or "/triage".
	Prefix string
	// Language is the reader's, "en" or "ko"; anything else is English. Default is the language that the service uses
	// when an address says nothing; empty is English.
	Language, Default string
	// Location is the reader's time zone; nil is UTC.
	Location *time.Location
	// Now is the time of the request. Ages are counted up to it.
	Now time.Time
	// User is the reader's name, when it is known.
	User string
	// CSRF is the token of the forms. Without one the reader may only look: pages have no forms.
	CSRF string
	// Grant is the query of the signed link that let the reader in. Links to the same incident repeat it.
	Grant string
	// Version is the service's.
	Version string
}

// language is the language of the page: one that has a catalogue.
func (s Site) language() string { return locale.For(s.Language).Language() }

// link makes the address of a page of ours. Pairs are name, value, name, value; pairs without a value are left out.
func (s Site) link(path string, pairs ...string) string {
	return s.linkIn(s.language(), path, pairs...)
}

// linkIn is link for a page in another language.
func (s Site) linkIn(language, path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if language != locale.For(s.Default).Language() {
		q.Set("lang", language)
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return s.Prefix + path
}

// granted adds the signed link's parameters to an address that stays within the incident.
func (s Site) granted(address string) string {
	grant, err := url.ParseQuery(s.Grant)
	if err != nil || len(grant) == 0 {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	q := u.Query()
	for name, values := range grant {
		if !q.Has(name) {
			q[name] = values
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// action is the address of a form about an incident.
func (s Site) action(incident, what string) string {
	return s.granted(s.link(IncidentPath(incident) + "/" + what))
}

// IncidentPath is the address of an incident's page below Site.Prefix.
func IncidentPath(id string) string { return "/incidents/" + url.PathEscape(id) }

// RunbookPath is the address of a runbook below Site.Prefix.
func RunbookPath(id string) string { return "/runbooks/" + url.PathEscape(id) }
