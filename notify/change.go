package notify

import (
	"slices"

	"vllm-triage/triage"
)

// maxBecause is how many reasons a change of verdict names.
const maxBecause = 2

// change compares the verdict with the previous report's. It is nil while nothing changed, and at the end of an
// incident, which the card itself tells.
func (b *builder) change(m Message) *Change {
	p := b.o.Previous
	if p == nil || m.Status == Resolved || m.Status == Recovered {
		return nil
	}
	if p.Verdict == b.r.Verdict && (p.Verdict != triage.CauseFound || first(p.Bottlenecks).ID == first(b.r.Bottlenecks).ID) {
		return nil
	}
	return &Change{
		Text:    b.words.Fill("ui.change", "from", b.verdictText(*p), "to", b.verdictText(b.r)),
		Because: b.because(*p, m),
	}
}

func (b *builder) verdictText(r triage.Report) string {
	top := b.claim("bottleneck", first(r.Bottlenecks))
	switch r.Verdict {
	case triage.CauseFound:
		return b.words.Fill("ui.verdict", "title", top.Title, "confidence", top.Confidence)
	case triage.NoBottleneck:
		return top.Title
	default:
		return b.words.Text("ui.confidence.none")
	}
}

// because names what is new: evidence that the previous report did not have or read differently, then what there is.
func (b *builder) because(p triage.Report, m Message) []string {
	if m.Blocked != nil {
		return []string{m.Blocked.Text}
	}
	known := map[string]float64{}
	for _, h := range slices.Concat(p.Bottlenecks, p.Triggers) {
		for _, e := range h.Evidence {
			if e.During != nil {
				known[e.Signal] = *e.During
			}
		}
	}
	var fresh, rest []string
	for _, e := range first(b.r.Bottlenecks).Evidence {
		if !e.Supports || e.During == nil {
			continue
		}
		text := b.label(e.Signal) + " " + b.f.Change(e.Before, e.During, e.Unit)
		if before, ok := known[e.Signal]; ok {
			if b.f.Value(before, e.Unit) == b.f.Value(*e.During, e.Unit) {
				rest = append(rest, text)
				continue
			}
			text = b.words.Fill("ui.moved", "signal", b.label(e.Signal),
				"from", b.f.Value(before, e.Unit), "to", b.f.Value(*e.During, e.Unit))
		}
		fresh = append(fresh, text)
	}
	reasons := slices.Concat(fresh, rest)
	return reasons[:min(len(reasons), maxBecause)]
}
