package triage_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
	"vllm-triage/triage/eval/example"
	"vllm-triage/triage/kb"
)

// siteCause is what an operator may write: one file in a directory.
const siteCause = `
id: night_batch
axis: bottleneck
kind: service
title: The nightly batch
mechanism: The batch of this site sends its requests with n = 6.
sources: [runbook of the site]
needs: [params_n]
evidence:
  - id: six
    signal: params_n
    feature: level
    "no": 2
    "yes": 5.5
    for: 4
    against: -4
    family: n
    key: true
    say: "{during} sequences per request: only the batch does that"
    say_against: "{during} sequences per request"
  - id: waits
    signal: waiting
    feature: level
    "no": 0
    "yes": 3
    for: 3
    against: -1
    family: queue
    say: "{during} wait"
    say_against: "nobody waits"
explains: [waiting]
parents: []
panels: [params_n]
actions:
  - id: call
    text: "Ask the owner of the batch to send less: {waiting} requests wait"
    cost: none
`

// TestCauseOfASiteIsRanked drops a cause into a directory and finds it in the report, with its words and figures.
func TestCauseOfASiteIsRanked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "causes"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "causes", "night_batch.yaml"), []byte(siteCause), 0o600))
	base, err := kb.Load(os.DirFS(dir))
	require.NoError(t, err)

	now := example.Start.Add(42 * time.Minute)
	store := exampleStore(t, base.Examples["kv_sampling_n"], "").Cut(time.Time{}, now)
	e := triage.NewEngine(base, promqtest.Serve(t, store).Client(), triage.Options{})
	r, err := e.Triage(t.Context(), triage.NewAdhoc(triage.Scope{Model: "qwen3-32b"}, now, 0))
	require.NoError(t, err)

	found := map[string]triage.Hypothesis{}
	for _, h := range r.Bottlenecks {
		found[h.ID] = h
	}
	require.Contains(t, found, "night_batch")
	h := found["night_batch"]
	require.Greater(t, h.Probability, 0.2, outcome(r))
	require.Equal(t, "The nightly batch", h.Title)
	require.Contains(t, h.Evidence[0].Text.Text, "6 sequences per request: only the batch does that")
	require.NotEmpty(t, h.Actions)
	require.NotContains(t, h.Actions[0].Text.Text, "{")
	require.Equal(t, base.Hash, r.Knowledge)
}
