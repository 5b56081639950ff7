package triage_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
	"vllm-triage/triage/eval/example"
	"vllm-triage/triage/kb"
)

// neverAbove is the probability below which a cause that an example forbids must stay.
const neverAbove = 0.3

// TestExamples runs the examples of all causes against a real PromQL engine.
func TestExamples(t *testing.T) {
	t.Parallel()
	base := kb.Default()
	// Causes share questions, each as the winner or the loser of it: every question is asked once.
	type answer struct {
		once   sync.Once
		report triage.Report
	}
	answers := map[string]*answer{}
	for _, c := range base.Causes {
		for _, x := range c.Examples {
			key := example.Question(x)
			if answers[key] == nil {
				answers[key] = &answer{}
			}
			a := answers[key]
			t.Run(c.ID+"/"+x.Name, func(t *testing.T) {
				t.Parallel()
				a.once.Do(func() { a.report = triageExample(t, base, x) })
				checkExample(t, x.Expect, a.report)
			})
		}
	}
}

// TestExamplesCoverEveryCause asks of every cause an example that it wins and one that it loses, though it was weighed, to
// a look-alike or to a healthy server.
func TestExamplesCoverEveryCause(t *testing.T) {
	t.Parallel()
	for _, c := range kb.Default().Causes {
		var wins, loses bool
		for _, x := range c.Examples {
			require.NotEmpty(t, x.Source, "cause %s: example %q cites nothing", c.ID, x.Name)
			require.True(t, x.Expect.First != "" || x.Expect.Trigger != "", "cause %s: example %q expects nothing", c.ID, x.Name)
			wins = wins || x.Winning(c)
			loses = loses || !x.Winning(c) && slices.Contains(x.Expect.Never, c.ID)
		}
		require.True(t, wins, "cause %s has no example that it wins", c.ID)
		require.True(t, loses, "cause %s has no example that it must lose (expect another and list it under never)", c.ID)
	}
}

// triageExample builds the series of an example, serves them as a Prometheus that knows nothing later than the question,
// and asks.
func triageExample(t *testing.T, base *kb.Base, x kb.Example) triage.Report {
	t.Helper()
	now := example.Start.Add(x.At)
	store := exampleStore(t, base.Examples[x.Base], x.Series).Cut(time.Time{}, now)
	require.Positive(t, store.Len(), "the example has no series")
	server := promqtest.Serve(t, store)
	e := triage.NewEngine(base, server.Client(), triage.Options{})
	r, err := e.Triage(t.Context(), example.Incident(x))
	require.NoError(t, err)
	return r
}

func exampleStore(t *testing.T, base, own string) *promqtest.Store {
	t.Helper()
	store, err := example.Store(base, own)
	require.NoError(t, err)
	return store
}

func checkExample(t *testing.T, want kb.Expect, r triage.Report) {
	t.Helper()
	said := outcome(r)
	require.NotEmpty(t, r.Bottlenecks, said)
	require.NotEmpty(t, r.Triggers, said)
	if want.First != "" {
		require.Equal(t, want.First, r.Bottlenecks[0].ID, said)
	}
	if want.Trigger != "" {
		require.Equal(t, want.Trigger, r.Triggers[0].ID, said)
	}
	if want.Verdict != "" {
		require.Equal(t, want.Verdict, string(r.Verdict), said)
	}
	if want.Where != "" {
		require.Equal(t, want.Where, placeOf(r.Bottlenecks[0].Where), said)
	}
	for _, never := range want.Never {
		for _, list := range [][]triage.Hypothesis{r.Bottlenecks, r.Triggers} {
			require.NotEqual(t, never, list[0].ID, said)
			for _, h := range list {
				require.False(t, h.ID == never && h.Probability >= neverAbove, "%s is at %.2f: %s", never, h.Probability, said)
			}
		}
	}
}

// placeOf writes places as an example expects them: instances in order, with the engine when there are several of one.
func placeOf(places []triage.Place) string {
	out := make([]string, 0, len(places))
	for _, p := range places {
		switch {
		case p.Instance == "" && p.Pod == "":
			out = append(out, "all")
		case p.Engine != "" && p.Engine != "0":
			out = append(out, p.Instance+"/"+p.Engine)
		default:
			out = append(out, p.Instance)
		}
	}
	return strings.Join(out, ", ")
}

// outcome tells a failing test's reader what the report says.
func outcome(r triage.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, onset %s\n", r.Verdict, r.Incident.Onset.Sub(example.Start))
	for _, list := range [][]triage.Hypothesis{r.Bottlenecks, r.Triggers} {
		for _, h := range list {
			fmt.Fprintf(&b, "%s %.2f (score %.1f)\n", h.ID, h.Probability, h.Score)
			for _, ev := range h.Evidence {
				fmt.Fprintf(&b, "    %+.1f %s: %s\n", ev.Weight, ev.Signal, ev.Text.Text)
			}
		}
	}
	return b.String()
}
