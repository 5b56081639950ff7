package slack

import (
	"time"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
)

// How much of a panel Slack's own chart takes: at most 20 categories a chart and two charts a message.
const (
	chartPoints = 20
	chartBlocks = 2
)

// charts shows the panels inside the message, where a picture cannot be uploaded.
func (p *page) charts(m notify.Message, c Charts) {
	switch c {
	case NativeCharts:
		shown := 0
		for _, panel := range m.Panels {
			if shown == chartBlocks {
				break
			}
			if b, runes := nativeChart(panel); b != nil && p.add(b, runes) {
				shown++
			}
		}
	case TextCharts:
		items := make([]*line, 0, len(m.Panels))
		for _, panel := range m.Panels {
			items = append(items, (&line{}).code(panel.Spark).text("  "+panel.Label+"  ").bold(panel.Reading))
		}
		p.list(p.words.Text("ui.label.charts"), slackgo.RTEListBullet, items, 800)
	case NoCharts:
	}
}

// nativeChart is a line of at most 20 points. Slack wants a value in every category, so holes repeat what came before;
// panels with a hole at the start begin after it.
func nativeChart(panel notify.Panel) (*slackgo.DataVisualizationBlock, int) {
	var points []slackgo.DataVisualizationDataPoint
	var categories []string
	n := min(chartPoints, len(panel.Values))
	seen := map[string]bool{}
	for i := range n {
		at := i * len(panel.Values) / n
		v := peak(panel.Values[at : (i+1)*len(panel.Values)/n])
		category := panel.Start.Add(time.Duration(at) * time.Duration(panel.StepMS) * time.Millisecond).UTC().Format("15:04:05")
		if v == nil && len(points) > 0 {
			v = &points[len(points)-1].Value
		}
		if v == nil || seen[category] {
			continue
		}
		seen[category] = true
		points = append(points, slackgo.NewDataVisualizationDataPoint(category, *v))
		categories = append(categories, category)
	}
	title := cut(panel.Label, maxChartTitle)
	if len(points) == 0 || title == "" {
		return nil, 0
	}
	b := slackgo.NewDataVisualizationBlock(title, slackgo.NewDataVisualizationLineChart(
		slackgo.NewDataVisualizationAxisConfig(categories...).WithXLabel("UTC"),
		slackgo.NewDataVisualizationDataSeries(cut(panel.Label, maxChartCategory), points...)))
	if b.Validate() != nil {
		return nil, 0
	}
	return b, notify.Runes(title) + len(points)*16
}

func peak(values []*float64) *float64 {
	var out *float64
	for _, v := range values {
		if v != nil && (out == nil || *v > *out) {
			out = v
		}
	}
	return out
}
