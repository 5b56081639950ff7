package notifytest

import (
	"time"

	"vllm-triage/triage"
)

// base is a report of the model "demo" with one bottleneck and one trigger.
func base(bottleneck string, p float64, trigger string, q float64, onset time.Time) triage.Report {
	baseline := triage.Span{Start: Now().Add(-50 * time.Minute), End: Now().Add(-10 * time.Minute)}
	return triage.Report{
		Schema:      triage.SchemaVersion,
		Verdict:     triage.CauseFound,
		GeneratedAt: Now(),
		Incident: triage.IncidentInfo{
			ID:                 "demo-9f3a1c",
			GroupKey:           `{}:{alertname="VLLMQueueGrowing", model_name="demo"}`,
			Status:             triage.StatusFiring,
			Scope:              triage.Scope{Model: "demo", Namespace: "llm"},
			Onset:              onset,
			OnsetUncertaintyMS: 20_000,
			Window:             triage.Span{Start: Now().Add(-8 * time.Minute), End: Now()},
			Baseline:           &baseline,
			Replicas:           3,
			ExternalURL:        "https://alertmanager.example.org",
		},
		Bottlenecks: []triage.Hypothesis{hypothesis(bottleneck, "", p)},
		Triggers:    []triage.Hypothesis{hypothesis(trigger, "", q)},
		VLLM:        triage.VersionRange{Min: "0.32.0", Text: "0.32 or newer"},
		Queries:     41,
		DurationMS:  163,
		QueryMS:     120,
		QueryLog: []triage.QueryRecord{
			{ID: "running", Query: `sum(vllm:num_requests_running{model_name="demo"})`, Outcome: "value", DurationMS: 3},
		},
	}
}

func hypothesis(id, title string, p float64, evidence ...triage.Evidence) triage.Hypothesis {
	return triage.Hypothesis{ID: id, Title: title, Probability: p, Coverage: 1, Evidence: evidence}
}

func row(
	signal string, before, during float64, unit triage.Unit, supports bool, weight float64, key, sentence, query string,
) triage.Evidence {
	return triage.Evidence{
		Signal: signal, Text: text(key, sentence), Unit: unit, Before: &before, During: &during,
		Supports: supports, Weight: weight, Query: query,
	}
}

func action(key, sentence, option, cost string) triage.Action {
	return triage.Action{Text: text(key, sentence), Option: option, Cost: text("", cost)}
}

func text(key, sentence string) triage.Text { return triage.Text{Key: key, Text: sentence} }

func ruled(id, why string) triage.RuledOut {
	return triage.RuledOut{ID: id, Title: "", Why: why, Reason: text("", why)}
}

func alert(name, severity string, fired time.Duration) triage.Alert {
	return triage.Alert{
		Fingerprint: name, Name: name, Status: triage.StatusFiring,
		Labels:   map[string]string{"alertname": name, "model_name": "demo", "namespace": "llm", "severity": severity},
		StartsAt: Now().Add(fired),
	}
}

// panel is a series of 40 minutes that moves from one level to another 7 minutes before Now, with a little noise and
// one hole.
func panel(signal, title string, unit triage.Unit, role string, from, to float64) triage.Panel {
	const steps, turn, ramp = 160, 130, 8
	p := triage.Panel{
		Signal: signal, Title: title, Unit: unit, Role: role,
		Start: Now().Add(-40 * time.Minute), StepMS: 15_000, Values: make([]*float64, steps),
	}
	noise := uint32(len(signal) & 0xffff)
	for i := range p.Values {
		share := min(max(float64(i-turn)/ramp, 0), 1)
		noise = noise*1664525 + 1013904223
		wobble := (float64(noise>>16)/65535 - 0.5) * 0.06
		v := max(from+(to-from)*share+wobble*max(from, to), 0)
		if unit == triage.Ratio {
			v = min(v, 1)
		}
		p.Values[i] = &v
	}
	p.Values[60], p.Values[61] = nil, nil
	return p
}
