package notify

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"vllm-triage/triage"
)

// maxURL is the longest link a message carries: Slack's limit for a button's url.
const maxURL = 3000

// httpURL returns s if it is an absolute http or https address without credentials that fits into a button, or empty.
// The result is normalised: spaces, quotes, angle brackets and pipes are percent-encoded, so it cannot break out of
// the markup around it.
func httpURL(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	out := urlReplacer.Replace(u.String())
	if len(out) > maxURL {
		return ""
	}
	return out
}

// urlReplacer encodes what url.URL.String leaves alone in queries and fragments and what ends a link elsewhere.
var urlReplacer = strings.NewReplacer(
	"<", "%3C", ">", "%3E", "|", "%7C", `"`, "%22", " ", "%20", "`", "%60", "\\", "%5C", "^", "%5E",
)

// incidentURL is the page of an incident.
func incidentURL(base, id string) string {
	if base == "" || id == "" {
		return ""
	}
	return httpURL(strings.TrimRight(base, "/") + "/incidents/" + url.PathEscape(id))
}

// runbookURL is the page of a cause, filled with an incident's numbers.
func runbookURL(base, cause, incident, language string) string {
	if base == "" || cause == "" {
		return ""
	}
	q := url.Values{}
	if incident != "" {
		q.Set("incident", incident)
	}
	if language != "en" {
		q.Set("lang", language)
	}
	address := strings.TrimRight(base, "/") + "/runbooks/" + url.PathEscape(cause)
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	return httpURL(address)
}

// prometheusURL opens a query as a graph that ends at end. The old path /graph works in Prometheus 2, 3 and Thanos; other pages
// are reached by a template as for Grafana.
func prometheusURL(base, query string, width time.Duration, end time.Time) string {
	if base == "" || query == "" {
		return ""
	}
	if strings.Contains(base, "{query") {
		return grafanaURL(base, query, end.Add(-width), end)
	}
	q := url.Values{}
	q.Set("g0.expr", query)
	q.Set("g0.tab", "0")
	q.Set("g0.range_input", strconv.FormatInt(int64(max(width, 5*time.Minute)/time.Second), 10)+"s")
	if !end.IsZero() {
		q.Set("g0.end_input", end.UTC().Format("2006-01-02 15:04:05"))
	}
	return httpURL(strings.TrimRight(base, "/") + "/graph?" + q.Encode())
}

// alertmanagerURL opens the alerts of a scope in Alertmanager's own pages.
func alertmanagerURL(base string, s triage.Scope, alerts []triage.Alert) string {
	if base == "" {
		return ""
	}
	var matchers []string
	add := func(name, value string) {
		if value != "" {
			matchers = append(matchers, name+"="+strconv.Quote(value))
		}
	}
	if len(alerts) == 1 {
		add("alertname", alerts[0].Name)
	}
	add("model_name", s.Model)
	add("namespace", s.Namespace)
	address := strings.TrimRight(base, "/") + "/#/alerts"
	if len(matchers) > 0 {
		address += "?filter=" + url.PathEscape("{"+strings.Join(matchers, ",")+"}")
	}
	return httpURL(address)
}
