// Package example makes the examples of the knowledge base ready to be asked about: their series as a store, their alerts
// as incidents, and both as cases of an evaluation. Only tests import it.
package example

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"vllm-triage/promq/memstore"
	"vllm-triage/promq/promqtest"
	"vllm-triage/promq/recording"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
	"vllm-triage/triage/kb"
)

// Start is the moment of the first value of every example. Times in series (process_start_time_seconds,
// vllm:lora_requests_info) are seconds since 1970 and count on it.
var Start = time.Unix(1_800_000_000, 0).UTC()

// Question is what of an example decides the answer: examples with the same one differ in what they expect only.
func Question(x kb.Example) string {
	return fmt.Sprint(x.Base, x.Series, x.At, x.Alert, x.Expr, x.StartsAt, x.Scope)
}

// Store lays the example's own series over those of its base. One with the labels of a base's series replaces it; one
// without any value (only _) takes it away. Who rewrites the count of a histogram without its buckets drops the base's
// buckets, which would tell another story.
func Store(base, own string) (*memstore.Store, error) {
	interval := "load 15s\n"
	for line := range strings.SplitSeq(base, "\n") {
		if strings.HasPrefix(line, "load ") {
			interval = line + "\n"
		}
	}
	if strings.HasPrefix(strings.TrimSpace(own), "load ") {
		interval = ""
	}
	over, err := promqtest.New(interval+own, promqtest.StartAt(Start))
	if err != nil {
		return nil, fmt.Errorf("series of the example: %w", err)
	}
	replaced, err := replacedBy(own)
	if err != nil {
		return nil, err
	}
	under, err := promqtest.New(base, promqtest.StartAt(Start))
	if err != nil {
		return nil, fmt.Errorf("base of the example: %w", err)
	}
	return under.Apply(func(s memstore.Series) []memstore.Series {
		if replaced(s.Labels) {
			return nil
		}
		return []memstore.Series{s}
	}).Merge(over), nil
}

func replacedBy(own string) (func(labels.Labels) bool, error) {
	const name = model.MetricNameLabel
	same, counts := map[string]bool{}, map[string]bool{}
	p := parser.NewParser(parser.Options{})
	for line := range strings.SplitSeq(own, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "load ") {
			continue
		}
		l, _, err := p.ParseSeriesDesc(line)
		if err != nil {
			return nil, fmt.Errorf("series of the example: %w", err)
		}
		same[l.String()] = true
		if of, ok := strings.CutSuffix(l.Get(name), "_count"); ok {
			counts[labels.NewBuilder(l).Set(name, of).Labels().String()] = true
		}
	}
	return func(l labels.Labels) bool {
		of, bucket := strings.CutSuffix(l.Get(name), "_bucket")
		return same[l.String()] || bucket && counts[labels.NewBuilder(l).Set(name, of).Del("le").Labels().String()]
	}, nil
}

// Incident is the incident of the example's webhook, or an ad-hoc question when it has no alert.
func Incident(x kb.Example) triage.Incident {
	now := Start.Add(x.At)
	if len(x.Alert) == 0 {
		return triage.NewAdhoc(triage.Scope{
			Model: x.Scope["model_name"], Namespace: x.Scope["namespace"], Cluster: x.Scope["cluster"], Job: x.Scope["job"],
			Instance: x.Scope["instance"], Pod: x.Scope["pod"],
		}, now, 0)
	}
	set := make(template.KV, len(x.Alert))
	maps.Copy(set, x.Alert)
	p := triage.Payload{}
	p.Status = triage.StatusFiring
	alert := template.Alert{Status: triage.StatusFiring, Labels: set, StartsAt: Start.Add(x.StartsAt)}
	if x.Expr != "" {
		alert.GeneratorURL = "http://prometheus.invalid/graph?g0.expr=" + url.QueryEscape(x.Expr)
	}
	p.Alerts = template.Alerts{alert}
	return triage.NewIncidents(p, now)[0]
}

// Cases are the different questions of all examples that expect a bottleneck, each with that answer. Nothing later than
// the question is in the data.
func Cases(base *kb.Base) ([]eval.Case, error) {
	var out []eval.Case
	seen := map[string]bool{}
	for _, c := range base.Causes {
		for _, x := range c.Examples {
			if x.Expect.First == "" || seen[Question(x)] {
				continue
			}
			seen[Question(x)] = true
			store, err := Store(base.Examples[x.Base], x.Series)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.ID, x.Name, err)
			}
			data := recording.FromStore(store.Cut(time.Time{}, Start.Add(x.At)))
			alert := x.Alert["alertname"]
			if alert == "" {
				alert = "adhoc"
			}
			k := eval.Case{
				Recording:  &eval.Recording{ID: c.ID + "/" + x.Name, Data: data, FaultStart: Start.Add(x.StartsAt)},
				Alert:      alert,
				Incident:   Incident(x),
				Data:       data,
				Bottleneck: x.Expect.First,
				MustNot:    x.Expect.Never,
			}
			if x.Expect.Trigger != "" {
				k.Triggers = []string{x.Expect.Trigger}
			}
			out = append(out, k)
		}
	}
	return out, nil
}
