package web

import (
	"math"
	"slices"
	"time"

	"vllm-triage/triage"
	"vllm-triage/triage/kb/runbook"
)

// Feedback is what somebody thinks of a verdict.
type Feedback struct {
	By      string
	At      time.Time
	Opinion string // OpinionRight, OpinionNotQuite or OpinionWrong; "partly" is read as not quite.
	Cause   string // What it was instead: the id of a bottleneck, or "other".
	Comment string
}

// StepRecord is what became of a step of a runbook during an incident.
type StepRecord struct {
	Page    string // The id of the runbook.
	Step    string // The id of its step; empty for the runbook as a whole.
	State   string // One of the states.
	By      string
	At      time.Time
	Comment string
}

// Seen is an earlier incident like this one, and what ended it.
type Seen struct {
	IncidentID string
	At         time.Time
	Model      string
	Page, Step string // The step that was recorded; Step may be empty.
	State      string // StateHelped, StateDidNotHelp, ...
	By         string
	Comment    string
}

// Revision is one of the reports on an incident, in short.
type Revision struct {
	At          time.Time
	Status      string
	Verdict     triage.Verdict
	Bottleneck  string
	Trigger     string
	Probability float64
}

// Posted is a channel in which the incident's message stands.
type Posted struct {
	Channel string
	URL     string // Opens the message; may be empty.
}

// Reading is one signal during an incident and at a re-check; nil is not read.
type Reading struct {
	Signal string      `json:"signal"`
	Unit   triage.Unit `json:"unit,omitempty"`
	During *float64    `json:"during"`
	Now    *float64    `json:"now"`
}

// Recheck is the same questions asked again. It is plain data: it survives a round trip through JSON.
type Recheck struct {
	At          time.Time      `json:"at"`
	By          string         `json:"by,omitempty"`
	Page        string         `json:"page,omitempty"` // The runbook and the step that it was asked for.
	Step        string         `json:"step,omitempty"`
	Verdict     triage.Verdict `json:"verdict"`
	Bottleneck  string         `json:"bottleneck"`
	Probability float64        `json:"probability"`
	Readings    []Reading      `json:"readings,omitempty"`
	// Load is the arrival rate at the re-check as a factor of the incident's; nil when one of them is not known. A better
	// latency under a tenth of the load proves nothing.
	Load *float64 `json:"load,omitempty"`
	// Error says why nothing could be measured; empty otherwise.
	Error string `json:"error,omitempty"`
}

// maxReadings bounds the comparison of a re-check.
const maxReadings = 8

// loadSignal is the signal that says how much work arrives.
const loadSignal = "arrivals"

// NewRecheck compares a report with a later one on the same incident: what the evidence read then and reads now.
func NewRecheck(before, after triage.Report, by string) Recheck {
	r := Recheck{At: after.GeneratedAt, By: by, Verdict: after.Verdict}
	if len(after.Bottlenecks) > 0 {
		r.Bottleneck, r.Probability = after.Bottlenecks[0].ID, after.Bottlenecks[0].Probability
	}
	then, now := readings(before), readings(after)
	for _, p := range after.Panels { // Their last value is younger than the mean of a window.
		if v := last(p.Values); v != nil {
			now[p.Signal] = Reading{Signal: p.Signal, Unit: p.Unit, Now: v}
		}
	}
	seen := map[string]bool{}
	for _, h := range told(before) {
		for _, e := range h.Evidence {
			if e.Signal == "" || e.During == nil || seen[e.Signal] || len(r.Readings) == maxReadings {
				continue
			}
			seen[e.Signal] = true
			r.Readings = append(r.Readings, Reading{Signal: e.Signal, Unit: e.Unit, During: e.During, Now: now[e.Signal].Now})
		}
	}
	if a, b := then[loadSignal].Now, now[loadSignal].Now; a != nil && b != nil && *a > 0 && !math.IsInf(*b / *a, 0) {
		load := *b / *a
		r.Load = &load
	}
	return r
}

// told are the two hypotheses that a report tells: its first bottleneck and its first trigger.
func told(r triage.Report) []triage.Hypothesis {
	var out []triage.Hypothesis
	for _, hs := range [][]triage.Hypothesis{r.Bottlenecks, r.Triggers} {
		if len(hs) > 0 {
			out = append(out, hs[0])
		}
	}
	return out
}

// readings collects what the evidence of a report read, the likelier hypothesis first.
func readings(r triage.Report) map[string]Reading {
	out := map[string]Reading{}
	for _, hs := range [][]triage.Hypothesis{r.Bottlenecks, r.Triggers} {
		for _, h := range hs {
			for _, e := range h.Evidence {
				if _, taken := out[e.Signal]; !taken && e.During != nil {
					out[e.Signal] = Reading{Signal: e.Signal, Unit: e.Unit, Now: e.During}
				}
			}
		}
	}
	return out
}

func last(values []*float64) *float64 {
	for _, v := range slices.Backward(values) {
		if v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
			return v
		}
	}
	return nil
}

// recordRow is a record as a line of a page.
type recordRow struct {
	Tone    string
	State   string
	Title   string
	Href    string
	By      string
	At      moment
	Comment string
}

// stateTones are the colours of the states of a step.
var stateTones = map[string]string{
	StateDone: toneCalm, StateHelped: toneGood, StateDidNotHelp: toneWarn, StateOther: toneUnsure,
}

func (p page) state(state string) string {
	switch state {
	case StateDone, StateSkipped, StateHelped, StateDidNotHelp, StateOther:
		return p.T("state." + state)
	default:
		return p.T("state." + StateOpen)
	}
}

// stepTitle names a step, or the runbook when it is about the whole of it.
func (p page) stepTitle(book *runbook.Book, id, step string) string {
	pg, ok := book.Get(p.Lang(), id)
	if !ok {
		return clean(id + " " + step)
	}
	if s, ok := pg.Step(step); ok {
		return s.Title
	}
	return pg.Title
}

// opinion is the words and the colour of an opinion.
func (p page) opinion(opinion string) (text, tone string) {
	switch opinion {
	case OpinionRight:
		return p.T("button.right"), toneGood
	case OpinionWrong:
		return p.T("button.wrong"), toneBad
	default:
		return p.T("button.not_quite"), toneWarn
	}
}
