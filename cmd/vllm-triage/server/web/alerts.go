package web

import (
	"maps"
	"slices"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// What the page shows of the alerts: a group can have thousands, and an alert any number of labels.
const (
	maxAlerts = 100
	maxLabels = 30
)

type alertList struct {
	Rows []alertRow
	More string // "and 9,900 more"
}

type alertRow struct {
	Name     string
	Tone     string
	Status   string
	Severity string
	Summary  string
	Started  moment
	Ended    moment
	Labels   []option
	More     string
	Source   string // Where the alert was computed, http or https.
	Runbook  string // The rule's own.
}

// alerts lists the first alerts of an incident and counts the others.
func (p page) alerts(in triage.IncidentInfo) alertList {
	var out alertList
	for i, a := range in.Alerts {
		if i == maxAlerts {
			break
		}
		out.Rows = append(out.Rows, p.alert(a))
	}
	if rest := len(in.Alerts) - len(out.Rows) + in.Truncated; rest > 0 {
		out.More = p.T("and_more", "n", locale.Grouped(rest))
	}
	return out
}

func (p page) alert(a triage.Alert) alertRow {
	row := alertRow{
		Name: clean(a.Name), Tone: toneGood, Status: p.T("status.resolved"), Severity: clean(a.Labels["severity"]),
		Started: p.at(a.StartsAt), Ended: p.at(a.EndsAt),
		Source: outside(a.GeneratorURL), Runbook: outside(a.Annotations["runbook_url"]),
	}
	if a.Status == triage.StatusFiring {
		row.Tone, row.Status = toneWarn, p.T("status.firing")
	}
	for _, name := range []string{"summary", "message", "description"} {
		if row.Summary = notify.Clean(a.Annotations[name], maxText); row.Summary != "" {
			break
		}
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(a.Labels)), func(name string) bool {
		return name == "alertname" || name == "severity" // They stand above.
	})
	for i, name := range names {
		if i == maxLabels {
			row.More = p.T("and_more", "n", locale.Grouped(len(names)-maxLabels))
			break
		}
		row.Labels = append(row.Labels, option{Value: clean(name), Text: clean(a.Labels[name])})
	}
	return row
}
