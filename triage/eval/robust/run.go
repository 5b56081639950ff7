package robust

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

// Table is what came of all transformations.
type Table struct {
	Rows []Row `json:"rows"`
	// Calibration is measured over the recordings as they are and all transformations in which the answer is still in
	// the data: with mistakes to learn from.
	Calibration eval.CrossValidation `json:"calibration"`
}

// Row is one line of the table: what the engine made of the cases under one transformation.
type Row struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	Gone  bool   `json:"gone,omitempty"`
	Cases int    `json:"cases"`
	// AC1 and Trigger are shares of right first answers, Accepted with the second expert's; Was is AC1 of the same cases
	// as recorded.
	AC1      float64 `json:"ac1"`
	Was      float64 `json:"was"`
	Accepted float64 `json:"accepted"`
	Trigger  float64 `json:"trigger"`
	// Place is the share of right places, nil where none is to be named.
	Place *float64 `json:"place,omitempty"`
	// Inconclusive is the share of reports that commit themselves to nothing.
	Inconclusive float64 `json:"inconclusive"`
	// Missed counts reports that find nothing wrong where something is.
	Missed int `json:"missed"`
	// ConfidentWrong counts causes named with 0.6 or more that even a second expert would not accept.
	ConfidentWrong int `json:"confident_wrong"`
	Crashes        int `json:"crashes"`
	// Rises counts answers that became more probable by more than 0.05 because metrics went: those that commit themselves
	// and those that are right.
	Rises int `json:"rises"`
	// Failures are the cases that are worse than as recorded.
	Failures []Failure `json:"failures,omitempty"`

	places int
}

// Failure is one case that a transformation made worse.
type Failure struct {
	Detail  string       `json:"detail,omitempty"`
	Why     string       `json:"why"`
	Outcome eval.Outcome `json:"outcome"`
}

// Options say what to run.
type Options struct {
	Eval eval.Options
	// Keep chooses the variants; nil keeps all.
	Keep func(Variant) bool
	// Sample asks each variant about every Sample-th recording only, others by each variant, and there only about the last
	// alert. 0 asks about everything.
	Sample int
	// Progress is told of each finished variant; nil is silent.
	Progress func(Variant)
}

// confident is the probability from which a report names a cause without reservation.
const confident = 0.6

// Run transforms the cases of the recordings in all ways and asks about them.
func Run(ctx context.Context, base *kb.Base, recs []*eval.Recording, opts Options) Table {
	var cases []eval.Case
	for _, r := range recs {
		cases = append(cases, r.Cases()...)
	}
	was := map[string]eval.Outcome{}
	for i, o := range eval.Run(ctx, base, cases, opts.Eval).Outcomes {
		was[key(cases[i])] = o
	}
	var rows []Row
	var answered []eval.Result
	asked := 0
	for _, v := range Variants(base, recs) {
		if ctx.Err() != nil || opts.Keep != nil && !opts.Keep(v) {
			continue
		}
		changed := v.Apply(sampled(recs, cases, opts.Sample, asked))
		asked++
		if len(changed) == 0 {
			continue
		}
		res := eval.Run(ctx, base, changed, v.options(opts.Eval))
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Group == v.Group && r.Name == v.Name })
		if i < 0 {
			i = len(rows)
			rows = append(rows, Row{Group: v.Group, Name: v.Name, Gone: v.Gone})
		}
		for j, o := range res.Outcomes {
			rows[i].add(v, o, was[key(changed[j])])
			res.Outcomes[j].Report = triage.Report{} // Thousands of reports are too much to keep.
		}
		if !v.Gone {
			answered = append(answered, res)
		}
		if opts.Progress != nil {
			opts.Progress(v)
		}
	}
	if v := eachQuery; opts.Sample == 0 && ctx.Err() == nil && (opts.Keep == nil || opts.Keep(v)) {
		row, res := failEachQuery(ctx, base, cases, was, opts.Eval)
		rows, answered = append(rows, row), append(answered, res)
		if opts.Progress != nil {
			opts.Progress(v)
		}
	}
	for i := range rows {
		rows[i].finish()
	}
	return Table{Rows: rows, Calibration: eval.CrossValidate(answered...)}
}

// sampled are the last cases of every n-th recording, from another one on each time.
func sampled(recs []*eval.Recording, cases []eval.Case, n, turn int) []eval.Case {
	if n <= 1 {
		return cases
	}
	var out []eval.Case
	for i, r := range recs {
		if i%n == turn%n {
			cs := r.Cases()
			out = append(out, cs[len(cs)-1])
		}
	}
	return out
}

// key tells the cases of all recordings apart, however they are transformed.
func key(c eval.Case) string { return c.Name() + "/" + c.Incident.ID }

func (r *Row) add(v Variant, o, was eval.Outcome) {
	r.Cases++
	r.AC1 += one(o.Hit())
	r.Was += one(was.Hit())
	r.Accepted += one(o.Accepted())
	r.Trigger += one(o.TriggerOK)
	r.Inconclusive += one(!commits(o))
	if o.Place != nil {
		if r.Place == nil {
			r.Place = new(float64)
		}
		*r.Place += one(*o.Place)
		r.places++
	}
	why := ""
	missed := o.Verdict == string(triage.NoBottleneck) && !o.Calm()
	wrong := o.NamesCause(0) && o.Probability >= confident && !o.Accepted() && !o.Inconclusive()
	switch {
	case o.Failure != "":
		r.Crashes++
		why = "crash"
	case wrong:
		r.ConfidentWrong++
		why = "confident and wrong"
	case missed:
		r.Missed++
		why = "missed"
	case was.Hit() && o.First == "metrics_missing" && v.Blind:
		why = "gives up"
	case was.Hit() && !o.Accepted() && !v.Gone:
		why = "no longer first"
	case was.TriggerOK && !o.TriggerOK && !v.Gone:
		why = "trigger"
	case o.Place != nil && !*o.Place && o.Accepted():
		why = "place"
	}
	if v.Group == groupMissing && rose(o, was) {
		r.Rises++
		why = strings.TrimPrefix(why+", rises", ", ")
	}
	if why != "" {
		o.Report = triage.Report{Bottlenecks: o.Report.Bottlenecks, Triggers: o.Report.Triggers}
		r.Failures = append(r.Failures, Failure{Detail: v.Detail, Why: why, Outcome: o})
	}
}

func (r *Row) finish() {
	n := float64(max(r.Cases, 1))
	r.AC1 /= n
	r.Was /= n
	r.Accepted /= n
	r.Trigger /= n
	r.Inconclusive /= n
	if r.Place != nil {
		*r.Place /= float64(r.places)
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// commits says whether an answer commits itself to something about the server.
func commits(o eval.Outcome) bool { return !o.Inconclusive() && o.First != "metrics_missing" }

// moreSure is a rise of a probability that is more than rounding.
const moreSure = 0.05

// rose says whether an answer that commits itself, or that is right, became more probable when data went.
func rose(o, was eval.Outcome) bool {
	if o.First == "" || !commits(o) && !o.Hit() {
		return false
	}
	before := 0.0
	for _, h := range was.Report.Bottlenecks {
		if h.ID == o.First {
			before = h.Probability
		}
	}
	return o.Probability > before+moreSure
}

// Summary is one line for a failure.
func (f Failure) Summary() string {
	o := f.Outcome
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s %s (truth %s): ", f.Why, o.Recording, o.Alert, o.Truth)
	for i, h := range o.Report.Bottlenecks {
		if i < 3 {
			fmt.Fprintf(&s, "%s %.2f ", h.ID, h.Probability)
		}
	}
	s.WriteString("| ")
	for i, h := range o.Report.Triggers {
		if i < 2 {
			fmt.Fprintf(&s, "%s %.2f ", h.ID, h.Probability)
		}
	}
	if f.Detail != "" {
		s.WriteString("[" + f.Detail + "]")
	}
	return s.String() + " " + o.Verdict
}
