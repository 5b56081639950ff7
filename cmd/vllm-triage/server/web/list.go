package web

import (
	"io"
	"strings"
	"time"

	"vllm-triage/notify"
	"vllm-triage/triage"
)

// ListView is a part of the list of incidents, the newest first.
type ListView struct {
	Site Site
	Rows []ListRow
	// Status and Model are the filters in force: "firing", "resolved" or empty; a model's name or empty.
	Status, Model string
	// Models are the models that can be chosen.
	Models []string
	// Cursor is the value of ?before= of this part, Older that of the next one; empty for the first and after the last.
	Cursor, Older string
	// Firing and Total count all incidents, whatever the filters.
	Firing, Total int
	// WebhookURL is where Alertmanager posts; the empty list tells how to send a first alert there.
	WebhookURL string
}

// ListRow is one incident of the list.
type ListRow struct {
	ID          string
	Status      string // triage.StatusFiring, StatusResolved or StatusAdhoc.
	StartedAt   time.Time
	EndedAt     time.Time // Zero while it fires.
	Model       string
	Namespace   string
	Verdict     triage.Verdict // Empty: not triaged.
	Bottleneck  string         // The id of the first one.
	Trigger     string
	Probability float64
	Alerts      int // How many alerts belong to it.
	Flaps       int // How often it ended and came back.
	Repeats     int // Notifications that brought nothing new.
	Shadow      bool
}

// List writes the list of incidents.
func List(w io.Writer, v ListView) error {
	p := listPage{
		page:   newPage(v.Site, "incidents", "/incidents", "status", v.Status, "model", v.Model),
		Status: v.Status, Model: v.Model, Models: models(v), Filtered: v.Status != "" || v.Model != "" || v.Cursor != "",
		Webhook: outside(v.WebhookURL),
	}
	p.Title = p.T("list.title")
	if v.Total > 0 {
		p.Summary = p.N("list.firing", v.Firing) + " · " + p.N("list.total", v.Total)
	}
	for _, r := range v.Rows {
		p.Rows = append(p.Rows, p.row(r))
	}
	for _, s := range []string{"", triage.StatusFiring, triage.StatusResolved} {
		key := "list.any_status"
		if s != "" {
			key = "status." + s
		}
		p.Statuses = append(p.Statuses, choice{
			Text: p.T(key), Href: p.link("/incidents", "status", s, "model", v.Model), Current: s == v.Status,
		})
	}
	if v.Older != "" {
		p.Older = p.link("/incidents", "status", v.Status, "model", v.Model, "before", v.Older)
	}
	if v.Cursor != "" {
		p.Newest = p.link("/incidents", "status", v.Status, "model", v.Model)
	}
	return render(w, "list", p)
}

// listPage is what list.html shows.
type listPage struct {
	page
	Summary       string
	Rows          []incidentRow
	Status, Model string
	Statuses      []choice
	Models        []string
	Filtered      bool
	Older, Newest string
	Webhook       string
}

type choice struct {
	Text, Href string
	Current    bool
}

type incidentRow struct {
	Href       string
	Tone       string
	Status     string
	Started    moment
	Age        string
	Model      string
	Namespace  string
	Verdict    string
	Trigger    string
	Confidence string
	Level      string
	Counters   []string
}

// Endpoint is where Alertmanager posts, or a name that stands for it.
func (p listPage) Endpoint() string {
	if p.Webhook == "" {
		return "https://VLLM-TRIAGE/webhook/alertmanager"
	}
	return p.Webhook
}

// Example is a time for the example: a minute ago.
func (p listPage) Example() string { return p.Now.Add(-time.Minute).UTC().Format(time.RFC3339) }

// models lists what can be chosen; a filter for a model that is gone can still be seen and taken back.
func models(v ListView) []string {
	known := v.Model == ""
	for _, m := range v.Models {
		known = known || m == v.Model
	}
	if known {
		return v.Models
	}
	return append([]string{v.Model}, v.Models...)
}

func (p page) row(r ListRow) incidentRow {
	out := incidentRow{
		Href: p.link(IncidentPath(r.ID)), Started: p.at(r.StartedAt),
		Model: clean(r.Model), Namespace: clean(r.Namespace),
	}
	switch r.Status {
	case triage.StatusResolved:
		out.Status, out.Tone = p.T("status.resolved"), toneGood
		if !r.EndedAt.IsZero() && r.EndedAt.After(r.StartedAt) {
			out.Age = p.T("list.lasted", "duration", p.f.Duration(r.EndedAt.Sub(r.StartedAt)))
		}
	case triage.StatusAdhoc:
		out.Status, out.Tone = p.T("status.adhoc"), toneCalm
	default:
		out.Status, out.Tone = p.T("status.firing"), toneWarn
		if age := p.since(r.StartedAt); age != "" {
			out.Age = p.T("list.for", "duration", age)
		}
	}
	p.rowVerdict(&out, r)
	if r.Alerts > 0 {
		out.Counters = append(out.Counters, p.N("list.alerts", r.Alerts))
	}
	if r.Flaps > 0 {
		out.Counters = append(out.Counters, p.N("flaps", r.Flaps))
	}
	if r.Repeats > 0 {
		out.Counters = append(out.Counters, p.N("list.repeats", r.Repeats))
	}
	if r.Shadow {
		out.Counters = append(out.Counters, p.T("list.shadow"))
	}
	return out
}

func (p page) rowVerdict(out *incidentRow, r ListRow) {
	switch r.Verdict {
	case "":
		out.Verdict = p.T("list.untriaged")
	case triage.CauseFound, triage.NoBottleneck:
		level := notify.LevelOf(r.Probability)
		out.Verdict = p.words.title(axisBottleneck, r.Bottleneck, clean(r.Bottleneck))
		out.Level, out.Confidence = string(level), p.T("confidence."+string(level))
		if r.Trigger != "" && r.Trigger != "none" && r.Verdict == triage.CauseFound {
			out.Trigger = p.words.title(axisTrigger, r.Trigger, clean(r.Trigger))
		}
	default:
		out.Verdict = p.T("verdict.inconclusive")
	}
}

// Short is a name of a model for a narrow column: paths keep their last two parts.
func (r incidentRow) Short() string {
	parts := strings.Split(strings.Trim(r.Model, "/"), "/")
	if n := len(parts); n > 2 {
		return "…/" + strings.Join(parts[n-2:], "/")
	}
	return r.Model
}
