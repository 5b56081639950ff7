package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/slack/command"
	"vllm-triage/triage"
)

var (
	seoul = time.FixedZone("KST", 9*3600)
	now   = time.Date(2026, 11, 29, 14, 30, 0, 0, seoul)
	known = command.Known{
		Models: []string{"demo", "llama-3.1-70b-instruct", "mistral small", "models-7b"},
		Causes: map[string]string{
			"kv_cache_exhaustion": "KV cache full|KV 캐시 고갈", "kv_transfer": "KV transfer slow or failing", "prefill_bound": "Prefill-bound",
			"lora_slots": "LoRA slots taken",
		},
	}
)

func at(hour, minute int) time.Time { return time.Date(2026, 11, 29, hour, minute, 0, 0, seoul) }

func TestParse(t *testing.T) {
	t.Parallel()
	model := func(m string) command.Command {
		return command.Command{Verb: command.Triage, Scope: triage.Scope{Model: m}}
	}
	with := func(c command.Command, f func(*command.Command)) command.Command { f(&c); return c }
	tests := []struct {
		text string
		want command.Command
	}{
		{"", command.Command{Verb: command.Triage}},
		{"demo", model("demo")},
		{"  DEMO  ", model("demo")},
		{"triage demo", model("demo")},
		{`"mistral small"`, model("mistral small")},
		{"“mistral small”", model("mistral small")},
		{"model=demo", model("demo")},
		{"model_name='mistral small'", model("mistral small")},
		{"models-7b", model("models-7b")},
		{"<https://demo|demo>", model("demo")},
		{"demo for 30m", with(model("demo"), func(c *command.Command) { c.For = 30 * time.Minute })},
		{"for 30 min on demo", with(model("demo"), func(c *command.Command) { c.For = 30 * time.Minute })},
		{"demo last 1h30m", with(model("demo"), func(c *command.Command) { c.For = 90 * time.Minute })},
		{"demo for 2 hours", with(model("demo"), func(c *command.Command) { c.For = 2 * time.Hour })},
		{"demo for=45", with(model("demo"), func(c *command.Command) { c.For = 45 * time.Minute })},
		{"demo 지난 30분", with(model("demo"), func(c *command.Command) { c.For = 30 * time.Minute })},
		{"demo at 14:05", with(model("demo"), func(c *command.Command) { c.At = at(14, 5) })},
		{"demo at 23:50", with(model("demo"), func(c *command.Command) { c.At = at(23, 50).AddDate(0, 0, -1) })},
		{"demo at 2:05pm", with(model("demo"), func(c *command.Command) { c.At = at(14, 5) })},
		{"at 2:05 pm demo", with(model("demo"), func(c *command.Command) { c.At = at(14, 5) })},
		{"demo at 05:05 UTC for 10m", with(model("demo"), func(c *command.Command) { c.At, c.For = at(14, 5).UTC(), 10*time.Minute })},
		{"demo at yesterday 14:45", with(model("demo"), func(c *command.Command) { c.At = at(14, 45).AddDate(0, 0, -1) })},
		{"demo at 2026-11-29T05:05Z", with(model("demo"), func(c *command.Command) { c.At = at(14, 5).UTC() })},
		{"demo at 2026-11-29T14:05:00+09:00", with(model("demo"), func(c *command.Command) { c.At = at(14, 5) })},
		{"demo at 2026-11-28 14:05", with(model("demo"), func(c *command.Command) { c.At = at(14, 5).AddDate(0, 0, -1) })},
		{"demo at 30m ago", with(model("demo"), func(c *command.Command) { c.At = at(14, 0) })},
		{"demo at -30m", with(model("demo"), func(c *command.Command) { c.At = at(14, 0) })},
		{"demo --share", with(model("demo"), func(c *command.Command) { c.Share = true })},
		{"demo —share", with(model("demo"), func(c *command.Command) { c.Share = true })},
		{"demo ns=llm instance=10.42.0.10:8000 engine=1", command.Command{
			Verb: command.Triage, Scope: triage.Scope{Model: "demo", Namespace: "llm", Instance: "10.42.0.10:8000", Engine: "1"},
		}},
		{`namespace="a b" svc=x cluster=c job=j pod=p`, command.Command{
			Verb: command.Triage, Scope: triage.Scope{Namespace: "a b", Service: "x", Cluster: "c", Job: "j", Pod: "p"},
		}},
		{"models", command.Command{Verb: command.Models}},
		{"Models please", command.Command{Verb: command.Models}},
		{"incidents --share", command.Command{Verb: command.Incidents, Share: true}},
		{"silences", command.Command{Verb: command.Silences}},
		{"help", command.Command{Verb: command.Help}},
		{"도움말", command.Command{Verb: command.Help}},
		{"?", command.Command{Verb: command.Help}},
		{"explain kv_cache_exhaustion", command.Command{Verb: command.Explain, Cause: "kv_cache_exhaustion"}},
		{"explain KV cache full", command.Command{Verb: command.Explain, Cause: "kv_cache_exhaustion"}},
		{"설명 KV 캐시 고갈", command.Command{Verb: command.Explain, Cause: "kv_cache_exhaustion"}},
		{"explain kv-cache-exhaustion", command.Command{Verb: command.Explain, Cause: "kv_cache_exhaustion"}},
		{"explain lora", command.Command{Verb: command.Explain, Cause: "lora_slots"}},
		{"explain prefill --share", command.Command{Verb: command.Explain, Cause: "prefill_bound", Share: true}},
	}
	for _, tt := range tests {
		got, err := command.Parse(tt.text, now, seoul, known)
		require.NoError(t, err, tt.text)
		require.True(t, tt.want.At.Equal(got.At), "%s: %s", tt.text, got.At)
		tt.want.At = got.At
		require.Equal(t, tt.want, got, tt.text)
	}
}

func TestNotUnderstood(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"dmeo", `No model "dmeo" here. Did you mean: demo?`},
		{"llama", `No model "llama" here. Did you mean: llama-3.1-70b-instruct?`},
		{"modles", `No model "modles" here. Did you mean: models?`},
		{"zzzzzzzz", `No model "zzzzzzzz" here.`},
		{"demo models-7b", "One model at a time, please: demo, models-7b."},
		{"demo for", `How long? For example "for 30m".`},
		{"demo for ever", `"ever" is no length of time. Examples: 30m, 1h30m, 2h.`},
		{"demo for 30s", `"30s" is too short or too long: from 1 minute to 24 hours.`},
		{"demo for 3d", `"3d" is too short or too long: from 1 minute to 24 hours.`},
		{"demo at", `When? For example "at 14:05" or "at 2026-11-29T14:05Z".`},
		{"demo at noonish", `"noonish" is no time. Examples: 14:05, yesterday 14:05, 2026-11-29T14:05Z, 30m ago.`},
		{"demo at 2027-01-01 10:00", `"2027-01-01 10:00" is in the future.`},
		{"demo namspace=llm", `"namspace" is no label that can be given. Did you mean: namespace?`},
		{"demo ns=", `"ns" has no value.`},
		{"demo --shar", `"--shar" is no option. Did you mean: --share?`},
		{"explain", `Explain which cause? Did you mean: kv_cache_exhaustion, kv_transfer, lora_slots, prefill_bound?`},
		{"explain kv", `No cause "kv" is known. Did you mean: kv_cache_exhaustion, kv_transfer?`},
		{"explain prefil_buond", `No cause "prefil_buond" is known. Did you mean: prefill_bound?`},
	}
	for _, tt := range tests {
		_, err := command.Parse(tt.text, now, seoul, known)
		require.EqualError(t, err, tt.want, tt.text)
		var problem *command.Error
		require.ErrorAs(t, err, &problem)
		require.NotEqual(t, tt.want, problem.Tell("ko"))
		require.NotContains(t, problem.Tell("ko"), "ui.command")
	}
}

func TestWithoutKnowledgeNothingIsRefused(t *testing.T) {
	t.Parallel()
	c, err := command.Parse("whatever-model", now, nil, command.Known{})
	require.NoError(t, err)
	require.Equal(t, "whatever-model", c.Scope.Model)
	_, err = command.Parse("modles", now, nil, command.Known{})
	require.ErrorContains(t, err, "Did you mean: models?")
	c, err = command.Parse("explain some cause", now, nil, command.Known{})
	require.NoError(t, err)
	require.Equal(t, "some_cause", c.Cause)
	require.True(t, command.Command{}.Empty())
	require.False(t, c.Share)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"demo for 30m at 14:05 ns=x --share", "explain kv", `"a 'b`, "<@U1|n> <#C|x> <https://x>", "for 9999999h", "at 99:99",
		"model=", "=x", "“”", "--", "at at at", "for for 3", "\xff\x00", strings.Repeat("가", 1000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := command.Parse(text, now, seoul, command.Known{})
		if err != nil {
			var problem *command.Error
			require.ErrorAs(t, err, &problem)
			require.NotEmpty(t, problem.Tell("ko"))
			require.NotContains(t, problem.Tell("en"), "\n")
			return
		}
		again, err := command.Parse(c.String(), now, seoul, command.Known{})
		require.NoError(t, err, c.String())
		require.Equal(t, c.String(), again.String())
	})
}
