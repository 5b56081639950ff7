package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/slack/fakeslack"
)

// TestReplayWritesBlockKit takes what replay prints for Slack as Slack would.
func TestReplayWritesBlockKit(t *testing.T) {
	t.Parallel()
	for lang, headline := range map[string]string{"en": "KV cache full", "ko": "KV 캐시 고갈"} {
		r := vllmTriage(t, "replay", "--recording", "demodata/"+defaultDemo, "--webhook", "02.json", "--output", "slack", "--lang", lang)
		require.Equal(t, exitOK, r.code, r.stderr)
		dec := json.NewDecoder(strings.NewReader(r.stdout))
		messages := 0
		for {
			var m struct {
				Text   string          `json:"text"`
				Blocks json.RawMessage `json:"blocks"`
			}
			err := dec.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			messages++
			code, why := fakeslack.Validate(m.Blocks)
			require.Empty(t, code, why)
			require.Contains(t, m.Text, headline)
		}
		require.Equal(t, 2, messages, "the card and its details")
	}
	r := vllmTriage(t, "replay", "--recording", "demodata/"+defaultDemo, "--webhook", "02.json", "--output", "blocks")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stderr, `--output is "blocks", want text, json or slack`)
}
