package notify

import (
	"math"
	"slices"
	"strings"
	"time"

	"vllm-triage/triage"
)

// sparkWidth is the number of characters of a sparkline: what a phone shows beside a label.
const sparkWidth = 24

// query makes a query repeatable; nil for none.
func (b *builder) query(label, promQL string) *Query {
	promQL = Clean(promQL, maxQuery)
	if promQL == "" {
		return nil
	}
	width, end := b.window()
	return &Query{Label: label, PromQL: promQL, URL: prometheusURL(b.o.PrometheusURL, promQL, width, end)}
}

// window is how far back and until when links look: baseline and incident together.
func (b *builder) window() (width time.Duration, end time.Time) {
	in := b.told.Incident
	end = in.Window.End
	if end.IsZero() {
		end = b.r.GeneratedAt
	}
	start := in.Window.Start
	if in.Baseline != nil {
		start = earlier(start, in.Baseline.Start)
	}
	if start.IsZero() || !start.Before(end) {
		return time.Hour, end
	}
	return end.Sub(start), end
}

// queries lists the ones behind the evidence first, then all others that were made, each once.
func (b *builder) queries() []Query {
	var out []Query
	seen := map[string]bool{}
	add := func(label, promQL, outcome string) {
		if q := b.query(label, promQL); q != nil && !seen[q.PromQL] {
			seen[q.PromQL] = true
			q.Outcome = Clean(outcome, maxName)
			out = append(out, *q)
		}
	}
	if in := b.told.Inconclusive; in != nil && b.told.Verdict != triage.CauseFound {
		add(b.words.Text("ui.label.decides"), in.Query, "")
	}
	for _, h := range []triage.Hypothesis{first(b.told.Bottlenecks), first(b.told.Triggers)} {
		for _, e := range h.Evidence {
			add(b.label(e.Signal), e.Query, "")
		}
	}
	for _, q := range b.r.QueryLog {
		add(b.label(q.ID), q.Query, q.Outcome)
	}
	return out
}

func (b *builder) links(m Message) Links {
	promQL := ""
	if len(m.Queries) > 0 {
		promQL = m.Queries[0].PromQL
	}
	if m.Blocked != nil && m.Blocked.Query != nil {
		promQL = m.Blocked.Query.PromQL
	}
	runbook := m.Bottleneck.Runbook
	if m.Verdict != triage.CauseFound && m.Verdict != triage.NoBottleneck {
		runbook = "" // The candidates have theirs; none of them is the answer.
	}
	width, end := b.window()
	return Links{
		Incident:     incidentURL(b.o.BaseURL, b.r.Incident.ID),
		Runbook:      runbook,
		AlertRunbook: httpURL(b.r.Incident.RunbookURL),
		Prometheus:   prometheusURL(b.o.PrometheusURL, promQL, width, end),
		Grafana:      grafanaURL(b.o.GrafanaExplore, promQL, end.Add(-width), end),
		Alertmanager: alertmanagerURL(b.r.Incident.ExternalURL, b.r.Incident.Scope, b.r.Incident.Alerts),
	}
}

// AlertFirst orders panels as people look at them: what alerted, then what explains it.
func AlertFirst(panels []triage.Panel) []triage.Panel {
	i := slices.IndexFunc(panels, func(p triage.Panel) bool { return p.Role == "alert" })
	if i <= 0 {
		return panels
	}
	return slices.Concat(panels[i:i+1], panels[:i], panels[i+1:])
}

func (b *builder) panels() []Panel {
	var out []Panel
	for _, p := range AlertFirst(b.r.Panels) {
		last := lastValue(finite(p.Values))
		if last == nil {
			continue // A chart without a point says nothing.
		}
		out = append(out, Panel{
			Label:   b.label(p.Signal),
			Unit:    p.Unit,
			Spark:   Sparkline(p.Values, sparkWidth),
			Reading: b.f.Value(*last, p.Unit),
			Start:   p.Start.In(b.zone()),
			StepMS:  p.StepMS,
			Values:  finite(p.Values),
		})
	}
	return out
}

// finite turns NaN and infinities into holes: they cannot be drawn, nor written as JSON.
func finite(values []*float64) []*float64 {
	bad := func(v *float64) bool { return v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) }
	if !slices.ContainsFunc(values, bad) {
		return values
	}
	out := slices.Clone(values)
	for i, v := range out {
		if bad(v) {
			out[i] = nil
		}
	}
	return out
}

// Sparkline draws a series as at most width block characters, each the largest value of its stretch, from the lowest
// value (▁) to the highest (█). Holes are spaces.
func Sparkline(values []*float64, width int) string {
	const blocks = "▁▂▃▄▅▆▇█"
	runes := []rune(blocks)
	n := min(width, len(values))
	if n <= 0 {
		return ""
	}
	peaks := make([]float64, n)
	low, high := math.Inf(1), math.Inf(-1)
	for i := range peaks {
		peaks[i] = math.NaN()
		for _, v := range values[i*len(values)/n : (i+1)*len(values)/n] {
			if v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) && !(*v <= peaks[i]) {
				peaks[i] = *v
			}
		}
		if !math.IsNaN(peaks[i]) {
			low, high = math.Min(low, peaks[i]), math.Max(high, peaks[i])
		}
	}
	// A ratio of halves cannot overflow where the difference of the values could.
	span := high/2 - low/2
	var out strings.Builder
	for _, v := range peaks {
		switch {
		case math.IsNaN(v):
			out.WriteByte(' ')
		case span <= 0:
			out.WriteRune(runes[0])
		default:
			out.WriteRune(runes[int(math.Round((v/2-low/2)/span*float64(len(runes)-1)))])
		}
	}
	return out.String()
}
