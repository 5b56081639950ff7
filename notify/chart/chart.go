package chart

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"time"

	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// MaxPanels is how many panels a picture holds; more would be too small on a phone.
const MaxPanels = 4

// ErrNothing says that no panel of the report has a value to draw.
var ErrNothing = errors.New("the report has nothing to draw")

// Options say for whom the picture is.
type Options struct {
	Language string // "en" or "ko"; anything else is English.
	// Location is the readers' time zone; nil is UTC.
	Location *time.Location
}

// Picture draws a report and describes the picture in words. Its error is ErrNothing or a failure to encode.
func Picture(r triage.Report, m notify.Message, o Options) (notify.Picture, error) {
	b, err := PNG(r, o)
	if err != nil {
		return notify.Picture{}, err
	}
	return notify.Picture{PNG: b, Filename: "vllm-triage.png", Title: m.Headline, AltText: AltText(r, o)}, nil
}

// PNG draws the first MaxPanels panels that have values.
func PNG(r triage.Report, o Options) ([]byte, error) {
	if o.Location == nil {
		o.Location = time.UTC
	}
	panels := drawable(r)
	if len(panels) == 0 {
		return nil, ErrNothing
	}
	p := newPlot(r, panels, o)
	p.draw()
	var b bytes.Buffer
	// Flat colours compress well at any level; this one is several times faster than the default.
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := e.Encode(&b, p.img); err != nil {
		return nil, fmt.Errorf("encode picture: %w", err)
	}
	return b.Bytes(), nil
}

// AltText says what the picture shows: the signals with their last values, and the time.
func AltText(r triage.Report, o Options) string {
	panels := drawable(r)
	if len(panels) == 0 {
		return ""
	}
	words := locale.For(o.Language)
	f := format.New(o.Language, o.Location, r.GeneratedAt)
	var signals []string
	for _, p := range panels {
		name := label(words, p)
		first, last := ends(p.Values)
		signals = append(signals, name+" "+f.Change(&first, &last, p.Unit))
	}
	start, end := extent(panels)
	return words.Fill("ui.picture.alt",
		"signals", strings.Join(signals, ", "), "start", f.Clock(start), "end", f.Clock(end))
}

// drawable returns the panels that have at least one value, what alerted first.
func drawable(r triage.Report) []triage.Panel {
	var out []triage.Panel
	for _, p := range notify.AlertFirst(r.Panels) {
		if len(out) == MaxPanels {
			break
		}
		if p.StepMS > 0 && len(p.Values) <= maxPoints && slices.ContainsFunc(p.Values, drawn) {
			out = append(out, p)
		}
	}
	return out
}

// maxPoints is far above what a report holds; beyond it a picture would only cost time.
const maxPoints = 20_000

func drawn(v *float64) bool { return v != nil && *v-*v == 0 } // Neither NaN nor infinite.

func ends(values []*float64) (first, last float64) {
	i := slices.IndexFunc(values, drawn)
	first = *values[i]
	for _, v := range slices.Backward(values) {
		if drawn(v) {
			return first, *v
		}
	}
	return first, first
}

func label(words *locale.Catalogue, p triage.Panel) string {
	if s, ok := words.Find("signal." + p.Signal); ok {
		return s
	}
	if s := notify.Clean(p.Title, 60); s != "" {
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return notify.Clean(strings.ReplaceAll(p.Signal, "_", " "), 60)
}

// extent is the time that all panels together cover.
func extent(panels []triage.Panel) (start, end time.Time) {
	for _, p := range panels {
		stop := p.Start.Add(time.Duration(len(p.Values)-1) * step(p))
		if start.IsZero() || p.Start.Before(start) {
			start = p.Start
		}
		if stop.After(end) {
			end = stop
		}
	}
	if !end.After(start) {
		end = start.Add(time.Minute)
	}
	return start, end
}

// step is the distance of two values, bounded so that no extent overflows.
func step(p triage.Panel) time.Duration {
	return time.Duration(min(max(p.StepMS, 1), int64(24*time.Hour/time.Millisecond))) * time.Millisecond
}
