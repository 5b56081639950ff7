package web

import (
	"strings"
	"time"

	"vllm-triage/triage"
)

// chart is the picture of an incident with the words that stand in for it.
type chart struct {
	Src, Alt string
	Panels   []chartPanel
}

type chartPanel struct{ Label, Spark, Reading string }

// chart refers to the picture of a report; nil when the report has nothing to draw.
func (p *incidentPage) chart(r triage.Report) *chart {
	if len(p.M.Panels) == 0 {
		return nil
	}
	out := &chart{Src: p.granted(p.link(IncidentPath(r.Incident.ID) + "/chart.png"))}
	var labels []string
	start, end := p.M.Panels[0].Start, p.M.Panels[0].Start
	for _, x := range p.M.Panels {
		out.Panels = append(out.Panels, chartPanel{Label: x.Label, Spark: x.Spark, Reading: x.Reading})
		labels = append(labels, x.Label)
		if last := x.Start.Add(time.Duration(max(len(x.Values)-1, 0)) * time.Duration(x.StepMS) * time.Millisecond); last.After(end) {
			end = last
		}
	}
	out.Alt = p.T("ui.picture.alt",
		"signals", strings.Join(labels, ", "), "start", p.f.Clock(start), "end", p.f.Clock(end))
	return out
}
