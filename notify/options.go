package notify

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"vllm-triage/triage"
)

// Options is what a message needs to know beside the report.
type Options struct {
	// Language is "en" or "ko"; anything else is English.
	Language string
	// Location is the readers' time zone; nil is UTC.
	Location *time.Location
	// BaseURL is where readers reach this service, for example "https://triage.example.org". Empty: no links to it.
	BaseURL string
	// PrometheusURL is where readers reach Prometheus, or a link with {query} in it as in GrafanaExplore. Empty: no links to it.
	PrometheusURL string
	// GrafanaExplore is a link with {query}, {query_json}, {from} and {to} in it; see GrafanaExplore.
	GrafanaExplore string
	// Previous is the last report on the same incident; nil for the first.
	Previous *triage.Report
	// Mention is whom the first post calls, in the notifier's own spelling.
	Mention string
	// Shadow marks a message that is not posted.
	Shadow bool
	// Flaps counts how often the incident resolved and came back; Updates how often its message was edited.
	Flaps, Updates int
	// Late is how long after the alert's notification the message is posted. Below a minute nothing is said.
	Late time.Duration
}

// GrafanaExplore is the template of a link to Grafana's Explore (Grafana 10 and newer) for a Prometheus data source:
//
//	{query}       the PromQL, percent-encoded
//	{query_json}  the PromQL as the inside of a JSON string, percent-encoded
//	{from}, {to}  the window in Unix milliseconds
func GrafanaExplore(baseURL, datasourceUID string) string {
	uid, err := json.Marshal(datasourceUID)
	if err != nil {
		return "" // Strings always marshal.
	}
	ds := string(uid)
	panes := `{"t":{"datasource":` + ds + `,"queries":[{"refId":"A","datasource":{"type":"prometheus","uid":` + ds +
		`},"expr":"` + "\x00" + `"}],"range":{"from":"` + "\x01" + `","to":"` + "\x02" + `"}}}`
	encoded := strings.NewReplacer("%00", "{query_json}", "%01", "{from}", "%02", "{to}").
		Replace(url.QueryEscape(panes))
	return strings.TrimRight(baseURL, "/") + "/explore?schemaVersion=1&orgId=1&panes=" + encoded
}

// grafanaURL fills a template; it is empty when the result is no http or https address.
func grafanaURL(template, query string, from, to time.Time) string {
	if template == "" || query == "" {
		return ""
	}
	quoted, err := json.Marshal(query)
	if err != nil {
		return ""
	}
	inside := string(quoted[1 : len(quoted)-1])
	return httpURL(strings.NewReplacer(
		"{query}", url.QueryEscape(query),
		"{query_json}", url.QueryEscape(inside),
		"{from}", strconv.FormatInt(from.UnixMilli(), 10),
		"{to}", strconv.FormatInt(to.UnixMilli(), 10),
	).Replace(template))
}
