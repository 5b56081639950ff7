package web

import (
	"strconv"
	"strings"

	"vllm-triage/notify"
	"vllm-triage/triage"
)

// The two questions of a report, as the catalogues and the links of a chain spell them.
const (
	axisBottleneck = "bottleneck"
	axisTrigger    = "trigger"
)

// fullWeight is the weight whose bar is full: the heaviest single piece of evidence that the knowledge base holds is
// about that much in log-odds.
const fullWeight = 4

// evidenceRow is a line of an evidence table.
type evidenceRow struct {
	notify.Evidence
	Weight string // "+2.5"; empty when it is not known.
	Bar    string
	// Grafana opens the query in Explore.
	Grafana string
}

// ranked is a hypothesis in the list of all.
type ranked struct {
	Title, Percent, Bar string
	Runbook             string
	Evidence            []evidenceRow
	For, Against        int
}

// evidence tells hypotheses in the words of the report's message.
type evidence struct {
	page    page
	report  triage.Report
	options notify.Options
}

// rows tells the evidence of one hypothesis, strongest first as in the report.
func (e evidence) rows(h triage.Hypothesis, axis string) []evidenceRow {
	// A message words evidence of its first hypotheses; so this one becomes the first of an otherwise empty report.
	r := triage.Report{Verdict: triage.CauseFound, GeneratedAt: e.report.GeneratedAt, Incident: e.report.Incident}
	r.Incident.Alerts = nil
	if axis == axisTrigger {
		r.Triggers = []triage.Hypothesis{{ID: h.ID, Evidence: h.Evidence}}
	} else {
		r.Bottlenecks = []triage.Hypothesis{{ID: h.ID, Evidence: h.Evidence}}
	}
	o := e.options
	o.Previous = nil
	m := notify.NewMessage(r, o)
	told := m.Evidence
	if axis == axisTrigger {
		told = m.ChangeFor
	}
	// Messages leave out evidence without a signal and a text.
	weights := make([]float64, 0, len(told))
	for _, x := range h.Evidence {
		if x.Signal != "" || strings.TrimSpace(x.Text.Text) != "" || x.Key != "" {
			weights = append(weights, x.Weight)
		}
	}
	rows := make([]evidenceRow, 0, len(told))
	for i, x := range told {
		row := evidenceRow{Evidence: x}
		if len(weights) == len(told) && weights[i] != 0 {
			row.Weight = signed(weights[i])
			row.Bar = bar(abs(weights[i]) / fullWeight)
		}
		if x.Query != nil {
			row.Grafana = e.grafana(x.Query.PromQL)
		}
		rows = append(rows, row)
	}
	return rows
}

// grafana opens a query in Explore, over the window of the report's links.
func (e evidence) grafana(promQL string) string {
	if e.options.GrafanaExplore == "" {
		return ""
	}
	r := triage.Report{Verdict: triage.CauseFound, GeneratedAt: e.report.GeneratedAt, Incident: e.report.Incident}
	r.Incident.Alerts = nil
	r.Bottlenecks = []triage.Hypothesis{{Evidence: []triage.Evidence{{Signal: "query", Query: promQL}}}}
	return notify.NewMessage(r, notify.Options{GrafanaExplore: e.options.GrafanaExplore}).Links.Grafana
}

// ranking tells all hypotheses of one question.
func (e evidence) ranking(hs []triage.Hypothesis, axis string) []ranked {
	out := make([]ranked, 0, len(hs))
	for _, h := range hs {
		x := ranked{
			Title:    e.page.words.title(axis, h.ID, clean(h.Title)),
			Percent:  e.page.percent(h.Probability),
			Bar:      bar(h.Probability),
			Evidence: e.rows(h, axis),
		}
		if h.ID != "" && h.ID != "none" && h.ID != "healthy" {
			x.Runbook = e.page.granted(e.page.link(RunbookPath(h.ID), "incident", e.report.Incident.ID))
		}
		for _, row := range x.Evidence {
			if row.Supports {
				x.For++
			} else {
				x.Against++
			}
		}
		out = append(out, x)
	}
	return out
}

func signed(weight float64) string {
	s := strconv.FormatFloat(abs(weight), 'f', 1, 64)
	switch {
	case s == "0.0":
		return "±0"
	case weight < 0:
		return "−" + s
	default:
		return "+" + s
	}
}

func abs(v float64) float64 {
	if v < 0 {
		return -v
	}
	return v
}
