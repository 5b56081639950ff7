package robust

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"vllm-triage/triage"
)

// WriteMarkdown prints the table in Markdown.
func (t Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| what was changed | cases | AC@1 | as recorded | trigger | right place | inconclusive | missed | confident and wrong |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	last := ""
	for _, r := range t.Rows {
		if r.Group != last {
			fmt.Fprintf(&b, "| **%s** | | | | | | | | |\n", r.Group)
			last = r.Group
		}
		name, place := r.Name, "–"
		if r.Gone {
			name += " ¹"
		}
		if r.Place != nil {
			place = percent(*r.Place)
		}
		ac := percent(r.AC1)
		if r.Accepted > r.AC1 {
			ac += " (" + percent(r.Accepted) + " ²)"
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s | %d | %d |\n", name, r.Cases, ac, percent(r.Was), percent(r.Trigger),
			place, percent(r.Inconclusive), r.Missed, r.ConfidentWrong)
	}
	b.WriteString("\n¹ What decides is no longer in the data: not knowing is right, being sure of something else is not.  \n")
	b.WriteString("² With the answers that a second expert would accept: missing metrics where they are missing or stale, an imbalance where one " +
		"of several replicas is overloaded.\n")
	rises, cases := t.rises()
	fmt.Fprintf(&b, "\nWith metrics missing, %d of %d answers made the right cause, or one that they commit themselves to, more probable by more than %.2f.  \n", rises, cases, moreSure)
	c := t.Calibration
	fmt.Fprintf(&b, "Calibration over %d answers, each recording left out in turn: ECE %.3f as answered, %.3f after σ(%.2f·logit p %+.2f).\n",
		c.Cases, c.Before.ECE, c.After.ECE, c.Chosen.A, c.Chosen.B)
	_, err := io.WriteString(w, b.String())
	return err
}

// rises counts, over all rows in which metrics are missing, the answers and those among them that gained by it.
func (t Table) rises() (rises, cases int) {
	for _, r := range t.Rows {
		if r.Group == groupMissing {
			rises, cases = rises+r.Rises, cases+r.Cases
		}
	}
	return rises, cases
}

// WriteFailures prints the cases that the transformations made worse, and what the answers rest on.
func (t Table) WriteFailures(w io.Writer) error {
	var b strings.Builder
	for _, r := range t.Rows {
		if len(r.Failures) == 0 {
			continue
		}
		fmt.Fprintf(&b, "## %s: %s\n", r.Group, r.Name)
		for _, f := range r.Failures {
			fmt.Fprintf(&b, "- %s\n", f.Summary())
			o := f.Outcome
			if f.Why == "trigger" {
				fmt.Fprintf(&b, "  - %s\n", weights(o.Report.Triggers, o.Trigger))
				continue
			}
			for _, id := range slices.Compact([]string{o.First, o.Truth}) {
				fmt.Fprintf(&b, "  - %s\n", weights(o.Report.Bottlenecks, id))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// weights lists what a hypothesis rests on, in log-odds.
func weights(hs []triage.Hypothesis, id string) string {
	for _, h := range hs {
		if h.ID != id {
			continue
		}
		var s strings.Builder
		fmt.Fprintf(&s, "%s %.1f = %.1f", id, h.Score, h.Prior)
		for _, e := range h.Evidence {
			if e.Weight != 0 {
				fmt.Fprintf(&s, " %+.1f %s", e.Weight, e.Signal)
			}
		}
		return s.String()
	}
	return id + " not listed"
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
