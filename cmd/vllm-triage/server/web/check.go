package web

import (
	"vllm-triage/notify"
	"vllm-triage/triage"
)

// checkTable is a re-check: what was measured then and now.
type checkTable struct {
	At      moment
	By      string
	Step    string
	Verdict string
	Tone    string
	Load    string
	Rows    []checkRow
	Error   string
	// The heads of the table.
	Caption, Signal, During, Now string
}

type checkRow struct{ Label, During, Now string }

// sameLoad is how much the arrival rate may differ for a comparison to be fair.
const sameLoad = 0.2

func (p page) check(c Recheck) checkTable {
	out := checkTable{
		At: p.at(c.At), By: clean(c.By), Error: notify.Clean(c.Error, maxText), Tone: toneUnsure,
		Verdict: p.T("verdict.inconclusive"),
		Caption: p.T("check.caption"), Signal: p.T("column.signal"), During: p.T("column.during"),
		Now: p.T("check.then"),
	}
	switch {
	case out.Error != "":
		out.Verdict = p.T("check.failed")
	case c.Verdict == triage.NoBottleneck:
		out.Tone, out.Verdict = toneGood, p.words.title(axisBottleneck, c.Bottleneck, clean(c.Bottleneck))
	case c.Verdict == triage.CauseFound:
		out.Tone = toneWarn
		out.Verdict = p.T("check.still", "title", p.words.title(axisBottleneck, c.Bottleneck, clean(c.Bottleneck)),
			"percent", p.percent(c.Probability))
	}
	if c.Load != nil {
		key := "check.load.same"
		if *c.Load < 1-sameLoad || *c.Load > 1+sameLoad {
			key = "check.load.other"
		}
		out.Load = p.T(key, "share", p.f.Value(*c.Load, triage.Ratio))
	}
	for _, r := range c.Readings {
		out.Rows = append(out.Rows, checkRow{
			Label: p.signal(r.Signal), During: p.value(r.During, r.Unit), Now: p.value(r.Now, r.Unit),
		})
	}
	return out
}

func (p page) value(v *float64, unit triage.Unit) string { return p.f.Change(nil, v, unit) }

// signal is the name of a signal as messages tell it.
func (p page) signal(id string) string {
	m := notify.NewMessage(triage.Report{Bottlenecks: []triage.Hypothesis{{Evidence: []triage.Evidence{{Signal: id}}}}},
		notify.Options{Language: p.Lang()})
	if len(m.Evidence) == 0 {
		return clean(id)
	}
	return m.Evidence[0].Label
}
