package eval_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/eval"
)

func answered(recording, truth, first string, p float64, rank int) eval.Outcome {
	return eval.Outcome{
		Recording: recording, Alert: "VLLMHighTTFT", Truth: truth, Verdict: "cause_found", First: first, Probability: p,
		Rank: rank, LenientRank: rank, TriggerOK: rank == 1, Queries: 50, Seconds: p,
	}
}

// Figures by hand: recording a has three cases, b one.
func TestFigures(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	outcomes := []eval.Outcome{
		answered("a", "kv_cache_exhaustion", "kv_cache_exhaustion", 0.9, 1),
		answered("a", "kv_cache_exhaustion", "decode_bound", 0.8, 2),
		answered("a", "kv_cache_exhaustion", "decode_bound", 0.4, 4),
		answered("b", "healthy", "decode_bound", 0.55, eval.Unranked),
	}
	outcomes[0].Place, outcomes[1].Place = &yes, &no
	outcomes[1].LenientRank = 1
	outcomes[3].Forbidden = true
	r := eval.Summarise(outcomes, 20)

	require.Equal(t, 2, r.Recordings)
	require.Equal(t, 4, r.Cases)
	require.InDelta(t, (1.0/3+0)/2, r.AC1, 1e-9)
	require.InDelta(t, 1.0/4, r.AC1Cases, 1e-9)
	require.InDelta(t, (2.0/3+0)/2, r.AC1Lenient, 1e-9)
	require.InDelta(t, (2.0/3+0)/2, r.AC3, 1e-9)
	require.InDelta(t, 2.0/4, r.AC3Cases, 1e-9)
	// AC@1 to AC@5 by case: 1/4, 2/4, 2/4, 3/4, 3/4.
	require.InDelta(t, 11.0/20, r.Avg5Cases, 1e-9)
	require.InDelta(t, 1.0/4, r.TriggerAC1Cases, 1e-9)
	require.InDelta(t, 0.5, *r.Place, 1e-9)
	require.InDelta(t, 1, *r.FalseCauseOnCalm, 1e-9)
	// Above 0.6 stand the first two; the second expert accepts the second one.
	require.InDelta(t, 0, *r.ConfidentWrong, 1e-9)
	require.Equal(t, 1, r.NeverClaimBroken)
	require.InDelta(t, (0.01+0.64+0.16+0.55*0.55)/4, r.Brier, 1e-9)
	require.InDelta(t, (0.1+0.8+0.4+0.55)/4, r.ECE, 1e-9)
	require.InDelta(t, 0.05, r.Chance.AC1, 1e-9)
	require.InDelta(t, 0.15, r.Chance.AC3, 1e-9)
	require.InDelta(t, 0.8, r.MedianS, 1e-9)
	require.Equal(t, []eval.Confused{
		{Truth: "healthy", Cases: 1, Answers: []eval.AnswerCount{{ID: "decode_bound", Cases: 1}}},
		{Truth: "kv_cache_exhaustion", Cases: 3, Right: 1, Answers: []eval.AnswerCount{
			{ID: "decode_bound", Cases: 2}, {ID: "kv_cache_exhaustion", Cases: 1},
		}},
	}, r.Confusion)

	var table bytes.Buffer
	require.NoError(t, r.WriteTable(&table))
	require.Contains(t, table.String(), "2 (accepted)")
	require.Contains(t, table.String(), "wrong place")
}

// said makes recordings with answers of one probability, of which a share is right.
func said(p float64, recordings int, right float64) eval.Result {
	const cases = 10
	var out []eval.Outcome
	for i := range recordings {
		for j := range cases {
			rank := 2
			if float64(j) < right*cases {
				rank = 1
			}
			out = append(out, answered(fmt.Sprintf("r%02d-%g", i, p), "prefill_bound", "prefill_bound", p, rank))
		}
	}
	return eval.Summarise(out, 20)
}

// Answers that promise too much are brought down, those that promise too little up, and honest ones stay, each by a map
// that has not seen the recording.
func TestCrossValidation(t *testing.T) {
	t.Parallel()
	bold := eval.CrossValidate(said(0.95, 20, 0.7), said(0.6, 20, 0.55))
	require.Less(t, bold.After.ECE, bold.Before.ECE/3)
	require.Less(t, bold.Chosen.Apply(0.95), 0.8)
	require.Less(t, bold.ChosenTemperature.A, 0.6)

	shy := eval.CrossValidate(said(0.6, 30, 0.9), said(0.8, 30, 0.98))
	require.Less(t, shy.After.ECE, shy.Before.ECE/2)
	require.Greater(t, shy.Chosen.Apply(0.6), 0.8)

	honest := eval.CrossValidate(said(0.9, 20, 0.9), said(0.7, 20, 0.7), said(0.4, 20, 0.4))
	require.InDelta(t, 0, honest.Before.ECE, 1e-9)
	require.InDelta(t, 0.9, honest.Chosen.Apply(0.9), 0.04)
	require.InDelta(t, 0.4, honest.Chosen.Apply(0.4), 0.04)
	require.Positive(t, honest.Before.Floor, "even a perfect engine shows an error with so few cases")
}

func TestCalibrationIsMonotone(t *testing.T) {
	t.Parallel()
	c := eval.Calibration{A: 0.7, B: 0.4}
	last := -1.0
	for _, p := range []float64{0, 0.01, 0.3, 0.5, 0.9, 0.99, 1} {
		got := c.Apply(p)
		require.Greater(t, got, last)
		require.GreaterOrEqual(t, got, 0.0)
		require.LessOrEqual(t, got, 1.0)
		last = got
	}
	require.InDelta(t, 0.37, eval.Identity().Apply(0.37), 1e-9)
}
