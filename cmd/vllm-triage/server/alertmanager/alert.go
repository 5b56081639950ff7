package alertmanager

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Alert is an alert that Alertmanager holds: it fires, or ended within the last minutes.
type Alert struct {
	Fingerprint  string            `json:"fingerprint"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // In the future while it fires: when it is over unless it is heard of again.
	UpdatedAt    time.Time         `json:"updatedAt"`
	GeneratorURL string            `json:"generatorURL"`
	Status       struct {
		State       string   `json:"state"` // "active", "suppressed" or "unprocessed".
		SilencedBy  []string `json:"silencedBy"`
		InhibitedBy []string `json:"inhibitedBy"`
	} `json:"status"`
}

// Silenced says whether a silence hides the alert.
func (a Alert) Silenced() bool { return len(a.Status.SilencedBy) > 0 }

// Alerts lists the alerts on which all matchers hold, silenced and inhibited ones among them, sorted by fingerprint.
func (c *Client) Alerts(ctx context.Context, filter ...Matcher) ([]Alert, error) {
	q := url.Values{"active": {"true"}, "silenced": {"true"}, "inhibited": {"true"}, "unprocessed": {"true"}}
	for _, m := range filter {
		q.Add("filter", m.String())
	}
	var out []Alert
	if err := c.any(ctx, request{op: "list alerts", method: http.MethodGet, path: "/alerts", query: q, out: &out}); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Alert) int { return cmp.Compare(a.Fingerprint, b.Fingerprint) })
	return out, nil
}
