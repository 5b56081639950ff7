package eval

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"vllm-triage/triage/kb"
)

// Ablation says what each piece of evidence is worth: what the engine makes of the cases without it.
type Ablation struct {
	Whole Figures `json:"whole"`
	// Predicates leaves out one line of one cause at a time, Signals all lines of all causes about one signal. Both are
	// sorted by effect, largest first.
	Predicates []Ablated `json:"predicates"`
	Signals    []Ablated `json:"signals"`
}

// Figures are the parts of a result that an ablation compares.
type Figures struct {
	AC1        float64 `json:"ac1_cases"`
	AC3        float64 `json:"ac3_cases"`
	TriggerAC1 float64 `json:"trigger_ac1_cases"`
	Brier      float64 `json:"brier"`
	// Truth is the mean probability of the right answer.
	Truth float64 `json:"truth"`
}

// Ablated is the outcome without some evidence. Differences are "without" minus "with": negative AC1 means that it helps.
type Ablated struct {
	Cause     string  `json:"cause,omitempty"`
	Predicate string  `json:"predicate,omitempty"`
	Signal    string  `json:"signal"`
	Change    Figures `json:"change"`
	// Turned counts the cases whose first answer on either axis changed.
	Turned int `json:"turned"`
	// Weighed counts the cases in which the evidence had a weight, for or against.
	Weighed int `json:"weighed"`
	// Moved is the mean absolute change of the right answer's probability.
	Moved float64 `json:"moved"`
}

// Dead says that the evidence plays no part in any case.
func (a Ablated) Dead() bool { return a.Moved < 1e-9 && a.Turned == 0 }

// Ablate leaves out evidence, one piece at a time. The data of each case is read once.
func Ablate(ctx context.Context, base *kb.Base, cases []Case, opts Options) Ablation {
	opts = remember(opts, len(cases))
	whole := Run(ctx, base, cases, opts)
	a := Ablation{Whole: figures(whole)}
	signals := map[string]bool{}
	for _, c := range base.Causes {
		for _, p := range c.Evidence {
			signals[p.Signal] = true
			without := drop(base, func(cause kb.Cause, q kb.Predicate) bool { return cause.ID == c.ID && q.ID == p.ID })
			x := compare(whole, Run(ctx, without, cases, opts))
			x.Cause, x.Predicate, x.Signal = c.ID, p.ID, p.Signal
			x.Weighed = weighed(whole, c.ID, p.ID)
			a.Predicates = append(a.Predicates, x)
			if ctx.Err() != nil {
				return a
			}
		}
	}
	for _, s := range sortedKeys(signals) {
		without := drop(base, func(_ kb.Cause, q kb.Predicate) bool { return q.Signal == s })
		x := compare(whole, Run(ctx, without, cases, opts))
		x.Signal = s
		a.Signals = append(a.Signals, x)
	}
	byEffect := func(a, b Ablated) int {
		return cmp.Or(cmp.Compare(b.Turned, a.Turned), cmp.Compare(b.Moved, a.Moved),
			compareStrings(a.Cause, b.Cause, a.Predicate, b.Predicate, a.Signal, b.Signal))
	}
	slices.SortFunc(a.Predicates, byEffect)
	slices.SortFunc(a.Signals, byEffect)
	return a
}

// drop returns a knowledge base without some evidence.
func drop(base *kb.Base, gone func(kb.Cause, kb.Predicate) bool) *kb.Base {
	out := *base
	out.Causes = slices.Clone(base.Causes)
	for i, c := range out.Causes {
		out.Causes[i].Evidence = slices.DeleteFunc(slices.Clone(c.Evidence), func(p kb.Predicate) bool { return gone(c, p) })
	}
	return &out
}

func figures(r Result) Figures {
	return Figures{
		AC1: r.AC1Cases, AC3: r.AC3Cases, TriggerAC1: r.TriggerAC1Cases, Brier: r.Brier,
		Truth: mean(r.Outcomes, func(o Outcome) float64 { return o.TruthProbability }),
	}
}

func compare(whole, without Result) Ablated {
	f, g := figures(whole), figures(without)
	x := Ablated{Change: Figures{
		AC1: g.AC1 - f.AC1, AC3: g.AC3 - f.AC3, TriggerAC1: g.TriggerAC1 - f.TriggerAC1, Brier: g.Brier - f.Brier, Truth: g.Truth - f.Truth,
	}}
	for i, o := range without.Outcomes {
		was := whole.Outcomes[i]
		if o.First != was.First || o.Trigger != was.Trigger {
			x.Turned++
		}
		x.Moved += math.Abs(o.TruthProbability-was.TruthProbability) / float64(len(without.Outcomes))
	}
	return x
}

// weighed counts the cases whose report has the line of evidence.
func weighed(r Result, cause, predicate string) int {
	n := 0
	for _, o := range r.Outcomes {
		for _, h := range slices.Concat(o.Report.Bottlenecks, o.Report.Triggers) {
			if h.ID != cause {
				continue
			}
			for _, e := range h.Evidence {
				if e.Weight != 0 && (e.Key == "evidence."+cause+"."+predicate || e.Key == "evidence."+cause+"."+predicate+".against") {
					n++
				}
			}
		}
	}
	return n
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// WriteTable prints an ablation for people: what matters, then what plays no part in these recordings.
func (a Ablation) WriteTable(w io.Writer) error {
	const most = 40
	p := &printer{w: w}
	head := "\tturned\tAC@1\ttrigger\tp(truth)\tBrier"
	line := func(x Ablated) []any {
		return []any{
			x.Turned, fmt.Sprintf("%+.3f", x.Change.AC1), fmt.Sprintf("%+.3f", x.Change.TriggerAC1),
			fmt.Sprintf("%+.3f", x.Change.Truth), fmt.Sprintf("%+.4f", x.Change.Brier),
		}
	}
	p.table("without the signal"+head, func(row func(...any)) {
		for _, x := range a.Signals {
			if !x.Dead() {
				row(append([]any{x.Signal}, line(x)...)...)
			}
		}
	})
	p.table("\nwithout the evidence"+head, func(row func(...any)) {
		for i, x := range a.Predicates {
			if i < most && !x.Dead() {
				row(append([]any{x.Cause + "." + x.Predicate}, line(x)...)...)
			}
		}
	})
	p.table("\nno part in any case", func(row func(...any)) {
		for _, x := range a.Predicates {
			if x.Dead() {
				row(x.Cause + "." + x.Predicate)
			}
		}
	})
	return p.err
}
