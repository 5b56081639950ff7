package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/alertmanager/template"

	"vllm-triage/promq"
	"vllm-triage/promq/recording"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
)

// Answer is what the engine said about one played scenario.
type Answer struct {
	Played Played
	Seed   uint64
	Report triage.Report
	// Right and TriggerRight say whether the first answers are right or as good.
	Right, TriggerRight bool
	// PlaceRight says whether the replica in question is named; true where there is none.
	PlaceRight bool
	// Wrong says that a cause that is not there is named with 0.6 or more and without reservation.
	Wrong bool
	// FalseCause says that a calm server is blamed with 0.5 or more.
	FalseCause bool
}

// Ask puts the question of a scenario to the engine: by hand, or as an alert that fires a minute after the fault.
func Ask(ctx context.Context, base *kb.Base, p Played) (triage.Report, error) {
	now := moment(p.AskAt)
	in := triage.NewAdhoc(triage.Scope{Model: p.Model()}, now, 0)
	if alert := p.Scenario.Alert; alert != "" {
		one := template.Alert{
			Status: "firing", StartsAt: moment(p.FaultAt + min(90, (p.AskAt-p.FaultAt)/2)), Fingerprint: "5eed",
			Labels: template.KV{"alertname": alert, "model_name": p.Model(), "namespace": "llm", "severity": "warning"},
		}
		in = triage.NewIncidents(triage.Payload{
			Data: template.Data{Status: "firing", Alerts: template.Alerts{one}}, Version: "4", GroupKey: "sim",
		}, now)[0]
	}
	client, err := promq.NewClient(promq.Config{
		URL: "http://simulation.invalid", RoundTripper: recording.FromStore(p.Store).RoundTripper(now),
	})
	if err != nil {
		return triage.Report{}, err
	}
	return triage.NewEngine(base, client, triage.Options{}).Triage(ctx, in)
}

func moment(t float64) time.Time { return time.UnixMilli(int64((epoch + t) * 1000)).UTC() }

// Model is the model that the scenario's replicas serve.
func (p Played) Model() string { return "Org/" + p.Scenario.Name }

// Judge compares a report with the truth.
func Judge(p Played, seed uint64, rep triage.Report) Answer {
	a := Answer{Played: p, Seed: seed, Report: rep}
	sc := p.Scenario
	if len(rep.Bottlenecks) == 0 {
		return a
	}
	first := rep.Bottlenecks[0]
	a.Right = first.ID == sc.Bottleneck || slices.Contains(sc.Also, first.ID)
	a.PlaceRight = sc.Where == 0 || slices.ContainsFunc(first.Where, func(w triage.Place) bool { return w.Instance == instanceOf(sc.Where-1) })
	a.Wrong = !a.Right && first.Probability >= 0.6 && rep.Verdict == triage.CauseFound
	a.FalseCause = calm(sc.Bottleneck) && !calm(first.ID) && first.Probability > 0.5
	if len(rep.Triggers) > 0 {
		id := rep.Triggers[0].ID
		a.TriggerRight = id == sc.Trigger || slices.Contains(sc.AlsoTriggers, id)
	}
	return a
}

func calm(id string) bool { return id == "healthy" || id == "low_traffic" }

// String is one line of the table: marks at answer, trigger and place, then what is true and what was said.
func (a Answer) String() string {
	name := func(hs []triage.Hypothesis) string {
		if len(hs) == 0 {
			return "-"
		}
		return fmt.Sprintf("%s %.2f", hs[0].ID, hs[0].Probability)
	}
	mark := func(ok bool) string {
		if ok {
			return " "
		}
		return "✗"
	}
	sc := a.Played.Scenario
	return fmt.Sprintf("%s%s%s %-36s %d %-20s %-26s %-22s %-26s %s", mark(a.Right), mark(a.TriggerRight), mark(a.PlaceRight), sc.Name, a.Seed,
		sc.Bottleneck, name(a.Report.Bottlenecks), sc.Trigger, name(a.Report.Triggers), a.Report.Verdict)
}
