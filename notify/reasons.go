package notify

import (
	"slices"

	"vllm-triage/triage"
)

// reasons fills in what speaks for and against the verdict.
func (b *builder) reasons(m *Message) {
	m.Evidence = b.evidence(first(b.told.Bottlenecks).Evidence)
	m.ChangeFor = b.evidence(first(b.told.Triggers).Evidence)
	if b.told.Verdict == triage.CauseFound {
		m.Chain = b.chain()
	}
	for _, x := range b.told.RuledOut {
		m.RuledOut = append(m.RuledOut, b.reasoned(x))
	}
	for _, x := range b.told.NotChecked {
		m.NotChecked = append(m.NotChecked, b.reasoned(x))
	}
}

func (b *builder) reasoned(x triage.RuledOut) Reasoned {
	axis := "bottleneck"
	if _, ok := b.words.Find("trigger." + x.ID + ".title"); ok {
		axis = "trigger"
	}
	why := b.say(x.Reason)
	if why == "" {
		why = b.why(x.Why)
	}
	return Reasoned{Title: b.title(axis, x.ID, x.Title), Why: why}
}

func (b *builder) evidence(rows []triage.Evidence) []Evidence {
	var out []Evidence
	for _, e := range rows {
		row := Evidence{
			Label:    b.label(e.Signal),
			Reading:  b.f.Change(e.Before, e.During, e.Unit),
			Text:     b.say(e.Text),
			Supports: e.Supports,
			Unknown:  e.Key == "evidence.unknown",
			Query:    b.query(b.label(e.Signal), e.Query),
		}
		if e.Signal == "" {
			if row.Text == "" {
				continue // Nothing to read in it.
			}
			row.Label, row.Reading = "", "" // A line of the sum that is about no signal.
		}
		out = append(out, row)
	}
	return out
}

func (b *builder) chain() []string {
	var out []string
	for _, l := range b.told.Chain {
		var title string
		switch l.Kind {
		case "trigger", "bottleneck":
			title = b.title(l.Kind, l.ID, l.Title)
		default:
			title = b.label(l.ID)
			if _, known := b.words.Find("signal." + l.ID); !known && l.Title != "" {
				title = Clean(l.Title, maxName)
			}
		}
		if title != "" && l.ID != "none" {
			out = append(out, title)
		}
	}
	return out
}

// plainlyAbsent is the engine's reason for a name that is not there: its state says the same.
const plainlyAbsent = "no such metric in this scope"

// gaps says what could not be read, so that silence is not taken for health.
func (b *builder) gaps(m *Message) {
	for _, x := range b.r.Missing {
		state, known := b.words.Find("state." + string(x.State))
		if !known {
			state = Clean(string(x.State), maxName)
		}
		why := state
		if x.Why != "" && x.Why != plainlyAbsent {
			why = b.words.Fill("ui.gap", "state", state, "why", b.why(x.Why))
		}
		m.Gaps = append(m.Gaps, Reasoned{Title: b.label(x.Signal), Why: why})
	}
	if len(m.Gaps) > 0 {
		m.GapsText = b.words.Count("ui.gaps", len(m.Gaps))
	}
	m.Notes = b.sayAll(append([]triage.Text{b.r.Incident.ScopeNote}, b.r.Notes...))
	said := slices.ContainsFunc(b.r.Notes, func(t triage.Text) bool { return t.Key == "note.no_baseline" })
	if b.r.Incident.Baseline == nil && b.r.Verdict != triage.NoBottleneck && !said {
		m.Notes = append(m.Notes, b.words.Text("ui.no_baseline"))
	}
}

// compare puts the values of the incident beside the ones after it. It needs the report from before the end.
func (b *builder) compare() []Compare {
	if b.o.Previous == nil {
		return nil
	}
	var out []Compare
	seen := map[string]bool{}
	rows := slices.Concat(first(b.o.Previous.Bottlenecks).Evidence, first(b.o.Previous.Triggers).Evidence)
	for _, e := range rows {
		if len(out) == maxCompare {
			break
		}
		now := b.valueNow(e.Signal)
		if e.During == nil || now == nil || seen[e.Signal] {
			continue
		}
		seen[e.Signal] = true
		out = append(out, Compare{
			Label:  b.label(e.Signal),
			During: b.f.Value(*e.During, e.Unit),
			Now:    b.f.Value(*now, e.Unit),
		})
	}
	return out
}

// valueNow finds a signal's value in the newest report: the end of its panel, which is current, else its evidence.
func (b *builder) valueNow(signal string) *float64 {
	for _, p := range b.r.Panels {
		if p.Signal == signal {
			if v := lastValue(p.Values); v != nil {
				return v
			}
		}
	}
	for _, h := range slices.Concat(b.r.Bottlenecks, b.r.Triggers) {
		for _, e := range h.Evidence {
			if e.Signal == signal && e.During != nil {
				return e.During
			}
		}
	}
	return nil
}

func lastValue(values []*float64) *float64 {
	for _, v := range slices.Backward(values) {
		if v != nil {
			return v
		}
	}
	return nil
}
