package eval

import (
	"encoding/json"
	"slices"
	"strings"

	"vllm-triage/triage"
)

// Unranked is the rank of a cause that the report does not list.
const Unranked = 99

// Outcome is one case with what the engine answered.
type Outcome struct {
	Recording string `json:"recording"`
	Alert     string `json:"alert"`
	Truth     string `json:"truth"`
	// Also holds further answers that are accepted leniently.
	Also    []string `json:"also,omitempty"`
	Verdict string   `json:"verdict"`
	// First is the first bottleneck of the report, Probability its probability.
	First       string  `json:"first"`
	Probability float64 `json:"probability"`
	// TruthProbability is what the report gives the right answer.
	TruthProbability float64 `json:"truth_probability"`
	Trigger          string  `json:"trigger"`
	// Rank is where the right answer stands, from 1; LenientRank that of the best accepted answer.
	Rank        int  `json:"rank"`
	LenientRank int  `json:"lenient_rank"`
	TriggerOK   bool `json:"trigger_ok"`
	// Place says whether the right place is named; nil when there is none to name.
	Place *bool `json:"place,omitempty"`
	// Forbidden says that the first answer is one that must not be given.
	Forbidden bool    `json:"forbidden,omitempty"`
	Queries   int     `json:"queries"`
	Seconds   float64 `json:"seconds"`
	// Failure is why there is no report.
	Failure string `json:"failure,omitempty"`

	Report triage.Report `json:"-"`
}

// calm are the answers that name no cause.
func calm(id string) bool { return id == "healthy" || id == "low_traffic" }

// Calm says that the truth is that nothing binds.
func (o Outcome) Calm() bool { return calm(o.Truth) }

// NamesCause says that a cause is named, rightly or not, with more than the given probability.
func (o Outcome) NamesCause(above float64) bool {
	return o.First != "" && !calm(o.First) && o.Probability > above
}

// Hit says that the right answer stands first.
func (o Outcome) Hit() bool { return o.Rank == 1 }

// Accepted says that an accepted answer stands first.
func (o Outcome) Accepted() bool { return o.LenientRank == 1 }

// Inconclusive says that the report commits itself to nothing.
func (o Outcome) Inconclusive() bool { return o.Verdict == string(triage.Inconclusive) }

// failed is the outcome of a case without a report.
func failed(c Case, why string) Outcome {
	o := judge(c, triage.Report{Verdict: "crash"})
	o.Failure = why
	return o
}

// judge compares a report with the truth.
func judge(c Case, rep triage.Report) Outcome {
	o := Outcome{
		Recording: c.Recording.ID, Alert: c.Alert, Truth: c.Bottleneck, Also: c.Also,
		Verdict: string(rep.Verdict), Queries: rep.Queries, Report: rep,
	}
	if len(rep.Bottlenecks) > 0 {
		o.First, o.Probability = rep.Bottlenecks[0].ID, rep.Bottlenecks[0].Probability
		o.Forbidden = slices.Contains(c.MustNot, o.First)
	}
	for _, h := range rep.Bottlenecks {
		if h.ID == c.Bottleneck {
			o.TruthProbability = h.Probability
		}
	}
	o.Rank = rank(rep.Bottlenecks, c.Bottleneck)
	o.LenientRank = rank(rep.Bottlenecks, append([]string{c.Bottleneck}, c.Also...)...)
	if len(rep.Triggers) > 0 {
		o.Trigger = rep.Triggers[0].ID
	}
	o.TriggerOK = len(rep.Bottlenecks) > 0 && (slices.Contains(c.Triggers, o.Trigger) ||
		slices.Contains(c.Triggers, "none") && (o.Trigger == "" || o.Trigger == "unknown"))
	if c.Where != "" {
		ok := strings.Contains(placeOf(rep), c.Where)
		o.Place = &ok
	}
	return o
}

func rank(hs []triage.Hypothesis, accepted ...string) int {
	for i, h := range hs {
		if slices.Contains(accepted, h.ID) {
			return i + 1
		}
	}
	return Unranked
}

// placeOf is all that a report says about where.
func placeOf(rep triage.Report) string {
	var b strings.Builder
	if len(rep.Bottlenecks) > 0 {
		for _, p := range rep.Bottlenecks[0].Where {
			b.WriteString(p.Model + " " + p.Instance + " " + p.Engine + " " + p.Pod + " ")
		}
	}
	if scope, err := json.Marshal(rep.Incident.Scope); err == nil {
		b.Write(scope)
	}
	return b.String()
}
