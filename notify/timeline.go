package notify

import (
	"slices"
	"strings"
	"time"

	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// maxAlertNames is how many alert names the card spells out.
const maxAlertNames = 5

// maxNew is how many new alerts are named; they are all counted.
const maxNew = 3

// maxAlertEvents is how many alerts the timeline tells one by one.
const maxAlertEvents = 40

// alertsText counts the alerts by their own status and names them.
func (b *builder) alertsText() string {
	alerts := b.r.Incident.Alerts
	if len(alerts) == 0 {
		return ""
	}
	firing, resolved := 0, 0
	for _, a := range alerts {
		if a.Status == triage.StatusFiring {
			firing++
		} else {
			resolved++
		}
	}
	var counts []string
	if firing > 0 {
		counts = append(counts, b.words.Count("ui.alerts.firing", firing))
	}
	if names := b.newAlerts(); len(names) > 0 {
		counts = append(counts, b.words.Count("ui.alerts.new", len(names), "names", strings.Join(names[:min(len(names), maxNew)], ", ")))
	}
	if resolved > 0 {
		counts = append(counts, b.words.Count("ui.alerts.resolved", resolved))
	}
	if n := b.r.Incident.Truncated; n > 0 {
		counts = append(counts, b.words.Count("ui.alerts.truncated", n))
	}
	return b.words.Fill("ui.alerts.named", "counts", strings.Join(counts, ", "), "names", b.alertNames())
}

// newAlerts names the alerts that fire and that the report before did not have, each as often as there are of it. The first
// report has none: there all are.
func (b *builder) newAlerts() []string {
	if b.o.Previous == nil || b.r.Incident.Status == triage.StatusResolved {
		return nil
	}
	known := map[string]bool{}
	for _, a := range b.o.Previous.Incident.Alerts {
		known[a.Fingerprint] = true
	}
	var names []string
	for _, a := range b.r.Incident.Alerts {
		if a.Status == triage.StatusFiring && !known[a.Fingerprint] {
			names = append(names, Clean(a.Name, maxName))
		}
	}
	if len(names) == len(b.r.Incident.Alerts) {
		return nil
	}
	return names
}

func (b *builder) alertNames() string {
	var order []string
	count := map[string]int{}
	for _, a := range b.r.Incident.Alerts {
		name := Clean(a.Name, maxName)
		count[name]++
		if count[name] == 1 {
			order = append(order, name)
		}
	}
	rest := 0
	if len(order) > maxAlertNames {
		rest = len(order) - maxAlertNames
		order = order[:maxAlertNames]
	}
	for i, name := range order {
		if n := count[name]; n > 1 {
			order[i] = b.words.Fill("ui.alerts.times", "name", name, "n", locale.Grouped(n))
		}
	}
	names := strings.Join(order, ", ")
	if rest > 0 {
		names = b.words.Fill("ui.more", "list", names, "n", locale.Grouped(rest))
	}
	return names
}

// timeline lists what happened when: the onset in the data, the links of the chain, alerts firing and resolving. Alerts
// of one name at one moment are one event.
func (b *builder) timeline() []Event {
	var events []Event
	add := func(at time.Time, text string) {
		if !at.IsZero() && text != "" {
			events = append(events, Event{At: at.UTC(), Clock: b.f.ClockSeconds(at), Text: text})
		}
	}
	// Events of one moment stay in the order of adding: cause before effect before alert.
	if b.told.Verdict != triage.NoBottleneck {
		spread := b.f.Duration(millis(b.told.Incident.OnsetUncertaintyMS))
		add(b.told.Incident.Onset, b.words.Fill("ui.event.onset", "spread", spread))
	}
	if b.told.Verdict == triage.CauseFound {
		for i, title := range b.chain() {
			if i < len(b.told.Chain) {
				add(b.told.Chain[i].Since, title)
			}
		}
	}
	step := time.Second
	if len(b.r.Incident.Alerts) > maxAlertEvents {
		step = 0
	}
	for _, g := range b.alertGroups(step) {
		add(g.at, b.words.Fill(g.key, "alert", g.text))
	}
	slices.SortStableFunc(events, func(x, y Event) int { return x.At.Compare(y.At) })
	return slices.Compact(events)
}

type alertGroup struct {
	at        time.Time
	key, text string
}

// alertGroups joins the events of one name within a step of time; 0 joins all of them at their earliest time.
func (b *builder) alertGroups(step time.Duration) []alertGroup {
	type id struct {
		step int64
		key  string
		name string
	}
	known := map[string]bool{}
	if b.o.Previous != nil {
		for _, a := range b.o.Previous.Incident.Alerts {
			known[a.Fingerprint] = true
		}
	}
	var order []id
	count := map[id]int{}
	at := map[id]time.Time{}
	note := func(t time.Time, key string, a triage.Alert) {
		if t.IsZero() {
			return
		}
		k := id{key: key, name: Clean(a.Name, maxName)}
		if step > 0 {
			k.step = t.UnixNano() / int64(step)
		}
		count[k]++
		if count[k] == 1 {
			order = append(order, k)
		}
		at[k] = earlier(at[k], t)
	}
	for _, a := range b.r.Incident.Alerts {
		key := "ui.event.fired"
		if b.o.Previous != nil && !known[a.Fingerprint] {
			key = "ui.event.fired_new"
		}
		note(a.StartsAt, key, a)
		if a.Status == triage.StatusResolved {
			note(a.EndsAt, "ui.event.resolved", a)
		}
	}
	out := make([]alertGroup, 0, len(order))
	for _, k := range order {
		text := k.name
		if n := count[k]; n > 1 {
			text = b.words.Fill("ui.alerts.times", "name", text, "n", locale.Grouped(n))
		}
		out = append(out, alertGroup{at: at[k], key: k.key, text: text})
	}
	return out
}
