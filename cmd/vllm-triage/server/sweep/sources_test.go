package sweep_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/sweep"
	"vllm-triage/promq"
	"vllm-triage/triage"
)

// vectors answers expressions with vectors; anything else is an error.
type vectors map[string]promq.Result

func (v vectors) Query(_ context.Context, expr string, _ time.Time) (promq.Result, error) {
	r, ok := v[expr]
	if !ok {
		return promq.Result{}, errors.New("bad_data: parse error")
	}
	return r, nil
}

func rule(name, expr string, labels map[string]string) triage.Alert {
	labels["alertname"] = name
	return triage.Alert{
		Name: name, Fingerprint: name, Labels: labels,
		GeneratorURL: "http://prometheus:9090/graph?g0.expr=" + url.QueryEscape(expr) + "&g0.tab=1",
	}
}

func TestExpression(t *testing.T) {
	t.Parallel()
	q := vectors{
		`ttft > 2`:  {Value: model.Vector{{Metric: model.Metric{"model_name": "demo"}}}},
		`queue > 9`: {Value: model.Vector{}},
		`partial`:   {Value: model.Vector{}, Warnings: []string{"a store did not answer"}},
	}
	answers, err := sweep.NewExpression(q).Ask(t.Context(), []triage.Alert{
		rule("A", "ttft > 2", map[string]string{"model_name": "demo", "severity": "warning"}),
		rule("B", "ttft > 2", map[string]string{"model_name": "other"}),
		rule("C", "queue > 9", map[string]string{"model_name": "demo"}),
		rule("D", "partial", map[string]string{}),
		rule("E", "unknown(", map[string]string{}),
		{Name: "F", GeneratorURL: "http://vmalert:8880/vmalert/alert?group_id=1&alert_id=2"},
	}, begin)
	require.NoError(t, err)
	require.Equal(t, []sweep.Answer{
		sweep.Fires, sweep.Over, sweep.Over, sweep.Unknown, sweep.Unknown, sweep.Unknown,
	}, answers)
}

func TestSourcesInTurn(t *testing.T) {
	t.Parallel()
	held := sweep.NewAlertmanager(func(context.Context, time.Time) (map[string]bool, error) {
		return map[string]bool{"A": true}, nil
	})
	two := []triage.Alert{{Fingerprint: "A"}, {Fingerprint: "B"}}
	answers, err := held.Ask(t.Context(), two, begin)
	require.NoError(t, err)
	require.Equal(t, []sweep.Answer{sweep.Fires, sweep.Over}, answers)

	down := &says{err: errors.New("connection refused")}
	answers, err = sweep.Sources{down, held}.Ask(t.Context(), two, begin)
	require.NoError(t, err)
	require.Equal(t, []sweep.Answer{sweep.Fires, sweep.Over}, answers)

	later := &says{answer: sweep.Fires}
	answers, err = sweep.Sources{&says{answer: sweep.Unknown}, later}.Ask(t.Context(), two, begin)
	require.NoError(t, err)
	require.Equal(t, []sweep.Answer{sweep.Fires, sweep.Fires}, answers)
	_, err = sweep.Sources{held, later}.Ask(t.Context(), two, begin)
	require.NoError(t, err)
	require.Equal(t, 2, later.asked, "nothing was left to ask the second about")

	_, err = sweep.Sources{down, down}.Ask(t.Context(), two, begin)
	require.ErrorContains(t, err, "connection refused")
}
