package sim

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

	"vllm-triage/triage"
	"vllm-triage/triage/kb"
)

// Result is what came of a list of scenarios.
type Result struct {
	Answers []Answer
	// Dropped are the scenarios whose truth is not clear, each with the reason.
	Dropped []string
}

// Run plays scenarios with a seed each and asks about those whose truth is clear. Errors of the engine come back.
func Run(ctx context.Context, base *kb.Base, list []Scenario, seed uint64) (Result, error) {
	type outcome struct {
		answer  Answer
		dropped string
		err     error
	}
	out := make([]outcome, len(list))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		wg.Go(func() {
			for i := range next {
				p := list[i].Play(seed)
				if why := p.Truth(); why != "" {
					out[i].dropped = list[i].Name + ": " + why + "; " + p.String()
					continue
				}
				rep, err := Ask(ctx, base, p)
				p.Store = nil // Hundreds of them are too much to keep.
				out[i].answer, out[i].err = Judge(p, seed, rep), err
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	wg.Wait()
	var res Result
	for _, o := range out {
		switch {
		case o.err != nil:
			return res, o.err
		case o.dropped != "":
			res.Dropped = append(res.Dropped, o.dropped)
		default:
			res.Answers = append(res.Answers, o.answer)
		}
	}
	return res, nil
}

// Score is the shares and counts of a result.
type Score struct {
	Cases int
	// AC1, Trigger and Place are shares, 0 to 1; Place of the answers that have one.
	AC1, Trigger, Place float64
	// ConfidentWrong and FalseCauses count answers that do harm.
	ConfidentWrong, FalseCauses int
}

// Score sums a result up.
func (r Result) Score() Score {
	s := Score{Cases: len(r.Answers)}
	places, n := 0.0, 0.0
	for _, a := range r.Answers {
		s.AC1 += one(a.Right)
		s.Trigger += one(a.TriggerRight)
		if a.Played.Scenario.Where > 0 {
			n++
			places += one(a.PlaceRight)
		}
		s.ConfidentWrong += int(one(a.Wrong))
		s.FalseCauses += int(one(a.FalseCause))
	}
	s.AC1, s.Trigger, s.Place = ratio(s.AC1, float64(s.Cases)), ratio(s.Trigger, float64(s.Cases)), ratio(places, n)
	return s
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Write prints the table: one line an answer, what the model counted below those that are not right, and what was dropped.
func (r Result) Write(w io.Writer) {
	for _, a := range r.Answers {
		fmt.Fprintln(w, a)
		if !a.Right || !a.TriggerRight || !a.PlaceRight {
			fmt.Fprintln(w, "      ", a.Played)
			a.explain(w)
		}
	}
	for _, d := range r.Dropped {
		fmt.Fprintln(w, "dropped", d)
	}
	s := r.Score()
	fmt.Fprintf(w, "%d cases: AC@1 %.3f, trigger %.3f, place %.3f, confident and wrong %d, calm servers blamed %d; %d dropped\n",
		s.Cases, s.AC1, s.Trigger, s.Place, s.ConfidentWrong, s.FalseCauses, len(r.Dropped))
}

// explain prints the evidence of the first answers and of the right ones.
func (a Answer) explain(w io.Writer) {
	sc := a.Played.Scenario
	fmt.Fprintf(w, "       onset %.0f s after the fault\n", a.Report.Incident.Onset.Sub(moment(a.Played.FaultAt)).Seconds())
	for _, list := range [][]triage.Hypothesis{a.Report.Bottlenecks, a.Report.Triggers} {
		for i, h := range list {
			if i > 0 && h.ID != sc.Bottleneck && h.ID != sc.Trigger {
				continue
			}
			fmt.Fprintf(w, "       %s %.2f (%.2f)\n", h.ID, h.Probability, h.Score)
			for _, e := range h.Evidence {
				fmt.Fprintf(w, "           %+.2f %s: %s\n", e.Weight, e.Signal, e.Text.Text)
			}
		}
	}
}
