package chart

import (
	"image"
	"image/color"
	"time"

	"golang.org/x/image/vector"

	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// The layout, in units of density pixels. The width is what a phone shows without shrinking much.
const (
	totalWidth  = 480
	margin      = 12
	headHeight  = 26
	titleHeight = 20
	plotHeight  = 78
	panelGap    = 14
	axisHeight  = 22
	keyHeight   = 24
	labelGap    = 6
	lineWidth   = 1.8
)

// plot is one picture on the way.
type plot struct {
	r      triage.Report
	panels []triage.Panel
	f      format.Formatter
	zone   *time.Location
	words  *locale.Catalogue

	img        *image.RGBA
	raster     *vector.Rasterizer // Reused: its buffers are the biggest of all.
	start, end time.Time
	left       int // Of the plots, in pixels; the labels stand before it.
	right      int
	axes       []yAxis

	small, normal, bold *pen
}

func newPlot(r triage.Report, panels []triage.Panel, o Options) *plot {
	p := &plot{
		raster: &vector.Rasterizer{},
		r:      r, panels: panels, zone: o.Location, f: format.New(o.Language, o.Location, r.GeneratedAt),
		words: locale.For(o.Language),
		small: newPen(regular, 11), normal: newPen(regular, 12.5), bold: newPen(bold, 12.5),
	}
	p.start, p.end = extent(panels)
	widest := 0
	for _, panel := range panels {
		a := newYAxis(panel.Values, panel.Unit)
		p.axes = append(p.axes, a)
		for _, t := range a.ticks {
			widest = max(widest, p.small.width(p.tick(t, panel.Unit)))
		}
	}
	p.left = margin*density + widest + labelGap*density
	p.right = (totalWidth - margin) * density
	height := headHeight + len(panels)*(titleHeight+plotHeight+panelGap) - panelGap + axisHeight + keyHeight
	p.img = image.NewRGBA(image.Rect(0, 0, totalWidth*density, height*density))
	return p
}

func (p *plot) tick(v float64, unit triage.Unit) string {
	return p.small.fit(p.f.Value(v, unit), 120*density)
}

func (p *plot) draw() {
	b := p.img.Bounds()
	fill(p.img, b, frame)
	fill(p.img, b.Inset(density), paper)
	p.head()
	y := headHeight * density
	for i, panel := range p.panels {
		p.title(y, panel)
		y += titleHeight * density
		p.panel(image.Rect(p.left, y, p.right, y+plotHeight*density), p.axes[i], panel)
		y += (plotHeight + panelGap) * density
	}
	y -= panelGap * density
	p.timeAxis(y)
	p.key(y + axisHeight*density)
}

// head names the subject and the time that the picture covers.
func (p *plot) head() {
	y := 19 * density
	when := p.f.Clock(p.start) + " – " + p.f.Clock(p.end)
	p.small.write(p.img, p.right, y, 1, softText, when)
	room := p.right - margin*density - p.small.width(when) - 10*density
	p.bold.write(p.img, margin*density, y, 0, text, p.bold.fit(subject(p.r.Incident.Scope), room))
}

func subject(s triage.Scope) string {
	name := "vLLM"
	for _, candidate := range []string{s.Model, s.Service, s.Pod, s.Instance, s.Job} {
		if candidate != "" {
			name = notify.Clean(candidate, 80)
			break
		}
	}
	if s.Namespace != "" {
		name += " (" + notify.Clean(s.Namespace, 40) + ")"
	}
	return name
}

// title names a panel's signal on the left and its last value on the right.
func (p *plot) title(y int, panel triage.Panel) {
	ink := roleInk(panel.Role)
	y += 14 * density
	_, last := ends(panel.Values)
	value := p.bold.clean(p.f.Value(last, panel.Unit))
	p.bold.write(p.img, p.right, y, 1, ink, value)
	room := p.right - p.left - p.bold.width(value) - 10*density
	p.normal.write(p.img, p.left, y, 0, text, p.normal.fit(label(p.words, panel), room))
}

func (p *plot) panel(box image.Rectangle, a yAxis, panel triage.Panel) {
	if base := p.r.Incident.Baseline; base != nil {
		shade := image.Rect(p.x(base.Start), box.Min.Y, p.x(base.End), box.Max.Y).Intersect(box)
		fill(p.img, shade, baseShade)
	}
	for _, t := range a.ticks {
		y := p.y(box, a, t)
		fill(p.img, image.Rect(box.Min.X, y, box.Max.X, y+density/2), gridLine)
		p.small.write(p.img, box.Min.X-labelGap*density, y+4*density, 1, softText, p.tick(t, panel.Unit))
	}
	ink := roleInk(panel.Role)
	zero := float32(p.y(box, a, max(a.low, min(0, a.high))) - box.Min.Y)
	for _, run := range p.runs(box, a, panel) {
		area(p.raster, p.img, box, run, zero, ink)
	}
	p.marks(box)
	// Half a line above and below, so that values at the ends of the axis are not cut.
	grown := box.Inset(-2 * density)
	for _, run := range p.runs(grown, a, panel) {
		for i := range run {
			run[i].y = run[i].y*float32(box.Dy())/float32(grown.Dy()) + 2*density
			run[i].x = run[i].x*float32(box.Dx())/float32(grown.Dx()) + 2*density
		}
		stroke(p.raster, p.img, grown, run, lineWidth*density, ink)
	}
}

// runs are the stretches of a series without holes, in coordinates of the box.
func (p *plot) runs(box image.Rectangle, a yAxis, panel triage.Panel) [][]point {
	var runs [][]point
	var run []point
	at := panel.Start
	for _, v := range panel.Values {
		if drawn(v) {
			run = append(run, point{
				x: float32(p.share(at) * float64(box.Dx())),
				y: float32((1 - a.share(*v)) * float64(box.Dy())),
			})
		} else if len(run) > 0 {
			runs = append(runs, run)
			run = nil
		}
		at = at.Add(step(panel))
	}
	if len(run) > 0 {
		runs = append(runs, run)
	}
	return runs
}

// mark is a moment that every panel shows.
type mark struct {
	at    time.Time
	label string
	ink   color.RGBA
	dash  int
}

func (p *plot) moments() []mark {
	var out []mark
	add := func(at time.Time, key string, ink color.RGBA, dash int) {
		if !at.IsZero() && !at.Before(p.start) && !at.After(p.end) {
			out = append(out, mark{at: at, label: p.words.Text(key) + " " + at.In(p.zone).Format("15:04"), ink: ink, dash: dash})
		}
	}
	add(p.r.Incident.Onset, "ui.picture.onset", onsetInk, 4*density)
	var fired, ended time.Time
	for _, alert := range p.r.Incident.Alerts {
		if fired.IsZero() || alert.StartsAt.Before(fired) {
			fired = alert.StartsAt
		}
		if alert.EndsAt.After(ended) {
			ended = alert.EndsAt
		}
	}
	add(fired, "ui.picture.alert", alertInk, 0)
	if p.r.Incident.Status == triage.StatusResolved {
		add(ended, "ui.picture.end", endInk, 0)
	}
	return out
}

func (p *plot) marks(box image.Rectangle) {
	for _, m := range p.moments() {
		vertical(p.img, p.x(m.at)-density/2, box.Min.Y, box.Max.Y, density, m.dash, m.ink)
	}
}

func (p *plot) timeAxis(y int) {
	fill(p.img, image.Rect(p.left, y, p.right, y+density/2), softText)
	for _, t := range timeTicks(p.start, p.end, p.zone, 6) {
		x := p.x(t)
		fill(p.img, image.Rect(x, y, x+density/2, y+3*density), softText)
		s := t.In(p.zone).Format("15:04")
		half := p.small.width(s) / 2
		x = min(max(x, p.left+half-labelGap*density), p.right-half)
		p.small.write(p.img, x, y+15*density, 0.5, softText, s)
	}
}

// key explains the shade and the lines.
func (p *plot) key(y int) {
	x := p.left
	y += 12 * density
	swatch := 12 * density
	if p.r.Incident.Baseline != nil {
		fill(p.img, image.Rect(x, y-9*density, x+swatch, y+density), frame)
		fill(p.img, image.Rect(x, y-9*density, x+swatch, y+density).Inset(density/2), baseShade)
		x = p.keyText(x+swatch+5*density, y, p.words.Text("ui.picture.baseline"))
	}
	for _, m := range p.moments() {
		vertical(p.img, x+swatch/2, y-10*density, y+2*density, density, m.dash, m.ink)
		x = p.keyText(x+swatch+2*density, y, m.label)
	}
}

func (p *plot) keyText(x, y int, s string) int {
	p.small.write(p.img, x, y, 0, softText, s)
	return x + p.small.width(s) + 14*density
}

// share is where a time lies between the ends of the axis.
func (p *plot) share(t time.Time) float64 {
	return t.Sub(p.start).Seconds() / p.end.Sub(p.start).Seconds()
}

func (p *plot) x(t time.Time) int {
	share := min(max(p.share(t), -0.1), 1.1)
	return p.left + int(share*float64(p.right-p.left))
}

func (p *plot) y(box image.Rectangle, a yAxis, v float64) int {
	share := min(max(a.share(v), 0), 1)
	return box.Max.Y - int(share*float64(box.Dy()))
}
