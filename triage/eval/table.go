package eval

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable prints a result for people.
func (r Result) WriteTable(w io.Writer) error {
	p := &printer{w: w}
	r.writeCases(p)
	r.writeFigures(p)
	writeReliability(p, r.Reliability)
	p.table("\nwhere the truth is\tcases\tright\tanswers", func(row func(...any)) {
		for _, c := range r.Confusion {
			answers := make([]string, 0, len(c.Answers))
			for _, a := range c.Answers {
				answers = append(answers, fmt.Sprintf("%s %d", cmp.Or(a.ID, "nothing"), a.Cases))
			}
			row(c.Truth, c.Cases, c.Right, strings.Join(answers, ", "))
		}
	})
	return p.err
}

func (r Result) writeCases(p *printer) {
	p.table("incident\talert\trank\tfirst answer\tp\ttrigger\t\tverdict", func(row func(...any)) {
		for _, o := range r.Outcomes {
			mark := "-"
			if o.Rank < Unranked {
				mark = strconv.Itoa(o.Rank)
			}
			if o.Rank > 1 && o.Accepted() {
				mark += " (accepted)"
			}
			trigger := "ok"
			if !o.TriggerOK {
				trigger = "wrong"
			}
			verdict := o.Verdict
			if o.Failure != "" {
				verdict, _, _ = strings.Cut(o.Failure, "\n")
			}
			if o.Place != nil && !*o.Place {
				verdict += ", wrong place"
			}
			row(o.Recording, o.Alert, mark, o.First, fmt.Sprintf("%.2f", o.Probability), o.Trigger, trigger, verdict)
		}
	})
}

func (r Result) writeFigures(p *printer) {
	p.table(fmt.Sprintf("\n%d recordings, %d cases\tby recording\tby case\tchance", r.Recordings, r.Cases), func(row func(...any)) {
		row("bottleneck AC@1", fmt.Sprintf("%.3f [%.2f, %.2f]", r.AC1, r.AC1Interval[0], r.AC1Interval[1]), f3(r.AC1Cases), f3(r.Chance.AC1))
		row("bottleneck AC@3", f3(r.AC3), f3(r.AC3Cases), f3(r.Chance.AC3))
		row("bottleneck Avg@5", f3(r.Avg5), f3(r.Avg5Cases), f3(r.Chance.Avg5))
		row("AC@1, second expert's answers accepted", f3(r.AC1Lenient), "", "")
		row("trigger AC@1", f3(r.TriggerAC1), f3(r.TriggerAC1Cases), "")
		row("right place", "", optional(r.Place), "")
		row("cause named on a calm server", "", optional(r.FalseCauseOnCalm), "")
		row("wrong among answers above 0.6", "", optional(r.ConfidentWrong), "")
		row("inconclusive", "", f3(r.Inconclusive), "")
		row("forbidden answers, crashes", "", fmt.Sprintf("%d, %d", r.NeverClaimBroken, r.Crashes), "")
		row("Brier", "", f3(r.Brier), "")
		row("ECE (of a perfect engine with so few cases)", "", fmt.Sprintf("%.3f (%.3f)", r.ECE, r.ECEFloor), "")
		row("median time, most queries", "", fmt.Sprintf("%.0f ms, %d", r.MedianS*1000, r.MaxQueries), "")
	})
}

func writeReliability(p *printer, bins []Bin) {
	p.table("\nprobability\tcases\tsaid\ttrue", func(row func(...any)) {
		for _, b := range bins {
			row(fmt.Sprintf("%.1f to %.1f", b.From, b.To), b.Cases, f3(b.Said), f3(b.True))
		}
	})
}

func f3(v float64) string { return fmt.Sprintf("%.3f", v) }

func optional(v *float64) string {
	if v == nil {
		return "-"
	}
	return f3(*v)
}

// printer writes aligned tables and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) table(head string, rows func(row func(...any))) {
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	if strings.HasPrefix(head, "\n") {
		fmt.Fprintln(t)
		head = head[1:]
	}
	fmt.Fprintln(t, head)
	rows(func(cells ...any) {
		line := make([]string, 0, len(cells))
		for _, c := range cells {
			line = append(line, fmt.Sprint(c))
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(line, "\t"), "\t"))
	})
	if err := t.Flush(); err != nil && p.err == nil {
		p.err = fmt.Errorf("write table: %w", err)
	}
}
