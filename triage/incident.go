package triage

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/template"
)

// The states of an Incident.
const (
	StatusFiring   = "firing"
	StatusResolved = "resolved"
	StatusAdhoc    = "adhoc" // Asked by a person; there is no alert behind it.
)

// Incident is one question to the engine: alerts of one scope, or a model and a time that somebody asked about. Now is
// fixed here; nothing after it reads the clock.
type Incident struct {
	ID       string    `json:"id"`
	GroupKey string    `json:"group_key"`
	Receiver string    `json:"receiver,omitempty"`
	Status   string    `json:"status"`
	Now      time.Time `json:"now"`
	Scope    Scope     `json:"scope"`
	Alerts   []Alert   `json:"alerts"`
	// Truncated counts the alerts that Alertmanager left out of the notification (max_alerts).
	Truncated   int    `json:"truncated_alerts,omitempty"`
	Reason      string `json:"notification_reason,omitempty"`
	ExternalURL string `json:"external_url,omitempty"`
	// For is how far an ad-hoc question looks back; 0 lets the data decide.
	For time.Duration `json:"for,omitempty"`
}

// NewIncidents splits a notification into incidents, one for each scope (model, namespace, cluster) that its alerts name.
// Each alert's own status decides; an incident fires while one of its alerts does. now is the time of receipt.
func NewIncidents(p Payload, now time.Time) []Incident {
	byScope := map[Scope][]Alert{}
	for _, a := range p.Alerts {
		alert := newAlert(a)
		s := scopeOf(alert.Labels)
		byScope[s] = append(byScope[s], alert)
	}
	out := make([]Incident, 0, len(byScope))
	for s, alerts := range byScope {
		slices.SortFunc(alerts, compareAlerts)
		in := Incident{
			GroupKey:    p.GroupKey,
			Receiver:    unquoteMeta(p.Receiver),
			Status:      StatusResolved,
			Now:         now.UTC(),
			Scope:       s,
			Alerts:      alerts,
			Truncated:   int(min(p.TruncatedAlerts, 1<<31-1)),
			Reason:      p.NotificationReason,
			ExternalURL: httpURL(p.ExternalURL),
		}
		for _, a := range alerts {
			if a.Status == StatusFiring {
				in.Status = StatusFiring
			}
		}
		in.ID = incidentID(s, in.StartsAt())
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b Incident) int { return cmp.Compare(a.Scope.Key(), b.Scope.Key()) })
	return out
}

// NewAdhoc is a question without an alert: what is up with this scope at this time? lookBack 0 lets the data decide.
func NewAdhoc(s Scope, now time.Time, lookBack time.Duration) Incident {
	return Incident{
		ID:     incidentID(s, now),
		Status: StatusAdhoc,
		Now:    now.UTC(),
		Scope:  s,
		Alerts: []Alert{},
		For:    lookBack,
	}
}

// StartsAt is when the first alert that still fires did so, or the first of all when none does. It is zero without alerts.
func (in Incident) StartsAt() time.Time {
	var firing, all time.Time
	for _, a := range in.Alerts {
		all = earliest(all, a.StartsAt)
		if a.Status == StatusFiring {
			firing = earliest(firing, a.StartsAt)
		}
	}
	if firing.IsZero() {
		return all
	}
	return firing
}

// EndsAt is when the last alert of a resolved incident ended. It is zero while one fires and never later than Now.
func (in Incident) EndsAt() time.Time {
	var end time.Time
	for _, a := range in.Alerts {
		if a.Status == StatusFiring {
			return time.Time{}
		}
		if a.EndsAt.After(end) {
			end = a.EndsAt
		}
	}
	if end.After(in.Now) {
		return in.Now
	}
	return end
}

// RunbookURL is the first http or https runbook_url among the alerts' annotations, or empty. Other values (shell commands,
// sentences) are shown as text, never as a link.
func (in Incident) RunbookURL() string {
	for _, a := range in.Alerts {
		for _, name := range []string{"runbook_url", "runbook"} {
			if u := httpURL(a.Annotations[name]); u != "" {
				return u
			}
		}
	}
	return ""
}

func newAlert(a template.Alert) Alert {
	out := Alert{
		Fingerprint:  a.Fingerprint,
		Name:         a.Labels["alertname"],
		Status:       a.Status,
		Labels:       map[string]string(a.Labels),
		Annotations:  map[string]string(a.Annotations),
		StartsAt:     a.StartsAt.UTC(),
		GeneratorURL: a.GeneratorURL,
	}
	// A firing alert's endsAt is the zero time or a deadline in the future: it says nothing.
	if a.Status == StatusResolved {
		out.EndsAt = a.EndsAt.UTC()
	}
	return out
}

func compareAlerts(a, b Alert) int {
	return cmp.Or(
		a.StartsAt.Compare(b.StartsAt),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Fingerprint, b.Fingerprint),
	)
}

func incidentID(s Scope, start time.Time) string {
	sum := sha256.Sum256([]byte(s.Key() + "\x00" + start.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:6])
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// httpURL returns s if it is an absolute http or https URL, else empty.
func httpURL(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return u.String()
}

// unquoteMeta undoes regexp.QuoteMeta, which Alertmanager applies to the receiver's name.
func unquoteMeta(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
