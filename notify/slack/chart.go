package slack

import (
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
	"vllm-triage/triage"
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
			if b, runes := p.nativeChart(panel, m.Zone); b != nil && p.add(b, runes) {
				shown++
			}
		}
	case TextCharts, AutoCharts:
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
func (p *page) nativeChart(panel notify.Panel, zone string) (*slackgo.DataVisualizationBlock, int) {
	var points []slackgo.DataVisualizationDataPoint
	var categories []string
	n := min(chartPoints, len(panel.Values))
	seen := map[string]bool{}
	held := 0.0
	for i := range n {
		at := i * len(panel.Values) / n
		v := peak(panel.Values[at : (i+1)*len(panel.Values)/n])
		category := panel.Start.Add(time.Duration(at) * time.Duration(panel.StepMS) * time.Millisecond).Format("15:04:05")
		if v == nil && len(points) > 0 {
			v = &held
		}
		if v == nil || seen[category] {
			continue
		}
		seen[category] = true
		held = *v
		value := *v
		if panel.Unit == triage.Ratio {
			value *= 100 // The axis is in percent.
		}
		points = append(points, slackgo.NewDataVisualizationDataPoint(category, value))
		categories = append(categories, category)
	}
	title := cut(panel.Label+" · "+panel.Reading, maxChartTitle)
	if len(points) == 0 || panel.Label == "" {
		return nil, 0
	}
	b := slackgo.NewDataVisualizationBlock(title, slackgo.NewDataVisualizationLineChart(
		slackgo.NewDataVisualizationAxisConfig(categories...).WithXLabel(zone).WithYLabel(p.unit(panel.Unit)),
		slackgo.NewDataVisualizationDataSeries(cut(panel.Label, maxChartCategory), points...)))
	if b.Validate() != nil {
		return nil, 0
	}
	return b, notify.Runes(title) + len(points)*16
}

// hasNative says whether a message has charts of Slack's own.
func hasNative(r Rendered) bool {
	return slices.ContainsFunc(r.Blocks, func(b slackgo.Block) bool { return b.BlockType() == slackgo.MBTDataVisualization })
}

// axisUnits name the units of charts; values of others speak for themselves.
var axisUnits = map[triage.Unit]string{
	triage.Seconds: "seconds", triage.Ratio: "percent", triage.RequestsPerSec: "requests_per_second", triage.Tokens: "tokens",
	triage.TokensPerSec: "tokens_per_second", triage.PerSecond: "per_second",
}

func (p *page) unit(u triage.Unit) string {
	name, ok := axisUnits[u]
	if !ok {
		return ""
	}
	return strings.TrimSpace(p.words.Fill("unit."+name, "n", ""))
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
