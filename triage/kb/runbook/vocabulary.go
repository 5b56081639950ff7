package runbook

import (
	"errors"
	"fmt"
	"strings"
)

// metric is a name that queries may ask for.
type metric struct {
	kind  metricKind
	scope metricScope
}

type metricKind string

const (
	gauge     metricKind = "gauge"
	counter   metricKind = "counter"
	histogram metricKind = "histogram" // Stands for the three series _bucket, _sum and _count, which are counters.
)

// metricScope says how a metric is told to belong to the incident.
type metricScope string

const (
	modelScope  metricScope = "model"  // It carries model_name: the selector has the matchers.
	targetScope metricScope = "target" // It carries the target's labels only: it is joined, and has no model_name.
)

// vocabulary is what pages may refer to.
type vocabulary struct {
	metrics map[string]metric
	signals map[string]bool
}

func newVocabulary() *vocabulary {
	return &vocabulary{metrics: map[string]metric{}, signals: map[string]bool{}}
}

// addMetrics reads lines of "name kind scope"; # starts a comment.
func (v *vocabulary) addMetrics(data []byte) error {
	return eachLine(data, func(words []string) error {
		if len(words) != 3 {
			return errors.New("want: name kind scope")
		}
		m := metric{kind: metricKind(words[1]), scope: metricScope(words[2])}
		if m.scope != modelScope && m.scope != targetScope {
			return fmt.Errorf("scope %q is not model or target", m.scope)
		}
		switch m.kind {
		case gauge, counter:
			v.metrics[words[0]] = m
		case histogram:
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				v.metrics[words[0]+suffix] = metric{kind: counter, scope: m.scope}
			}
		default:
			return fmt.Errorf("kind %q is not gauge, counter or histogram", m.kind)
		}
		return nil
	})
}

// addSignals reads one signal id a line; # starts a comment.
func (v *vocabulary) addSignals(data []byte) error {
	return eachLine(data, func(words []string) error {
		if len(words) != 1 || !idPattern.MatchString(words[0]) {
			return errors.New("want one signal id in snake_case")
		}
		v.signals[words[0]] = true
		return nil
	})
}

func eachLine(data []byte, read func(words []string) error) error {
	var errs []error
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			if err := read(words); err != nil {
				errs = append(errs, fmt.Errorf("line %d: %w", n, err))
			}
		}
	}
	return errors.Join(errs...)
}
