package web

import (
	picture "vllm-triage/notify/chart"
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
	for _, x := range p.M.Panels {
		out.Panels = append(out.Panels, chartPanel{Label: x.Label, Spark: x.Spark, Reading: x.Reading})
	}
	out.Alt = picture.AltText(r, picture.Options{Language: p.Lang(), Location: p.Location})
	return out
}
