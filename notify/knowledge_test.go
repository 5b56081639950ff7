package notify_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
	"vllm-triage/notify/notifytest"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
)

// sentence words a template of the knowledge base as the engine does.
func sentence(key, template string) triage.Text {
	t := triage.Text{Key: key, Args: map[string]triage.Arg{}}
	for _, name := range locale.Names(template) {
		v := 0.42
		t.Args[name] = triage.Arg{Number: &v, Unit: triage.Ratio}
	}
	t.Text, _ = locale.Expand(template, func(name string) (string, bool) { return t.Args[name].String(), true })
	return t
}

// told is what a message makes of a sentence.
func told(t *testing.T, language string, s triage.Text) string {
	t.Helper()
	r := notifytest.KVLongerOutputs()
	r.Impact.Lines = []triage.Text{s}
	lines := notify.NewMessage(r, notifytest.Options(language)).Impact
	require.Len(t, lines, 1)
	return lines[0]
}

func TestTheKnowledgeBaseSpeaksKorean(t *testing.T) {
	t.Parallel()
	ko := locale.For("ko")
	tried := 0
	for _, c := range kb.Default().Causes {
		for i := range c.Evidence {
			p := &c.Evidence[i]
			translation, ok := ko.Lookup("knowledge." + p.Say)
			if !ok || !strings.Contains(p.Say, "{during}") {
				continue
			}
			tried++
			s := sentence("evidence."+c.ID+"."+p.ID, p.Say)
			want, _ := locale.Expand(translation, func(string) (string, bool) { return "42%", true })
			require.Equal(t, want, told(t, "ko", s), s.Key)
			require.Contains(t, told(t, "en", s), "42 %", "English is told with the message's own units")

			// A site's own words under the same key must not be answered with a translation of ours.
			s.Text = "a site says something else"
			require.Equal(t, s.Text, told(t, "ko", s))
			require.Equal(t, s.Text, told(t, "en", s))
		}
	}
	require.Greater(t, tried, 50)
}

func TestTheRunnerUpIsTranslatedWithItsReason(t *testing.T) {
	t.Parallel()
	for _, c := range kb.Default().Causes {
		for i := range c.Evidence {
			p := &c.Evidence[i]
			translation, ok := locale.For("ko").Lookup("knowledge." + p.SayAgainst)
			if p.SayAgainst == "" || !ok || strings.Contains(p.SayAgainst, "{") || c.Axis != kb.Bottleneck {
				continue
			}
			r := notifytest.KVLongerOutputs()
			r.RunnerUp = triage.Text{
				Key: "runner_up." + c.ID + "." + p.ID, Text: c.Title + " is second: " + p.SayAgainst,
				Args: map[string]triage.Arg{"second": {Word: c.Title}},
			}
			got := notify.NewMessage(r, notifytest.Options("ko")).RunnerUp
			require.Equal(t, locale.For("ko").Text("bottleneck."+c.ID+".title")+" - "+translation, got)
			return
		}
	}
	t.Fatal("no sentence to try")
}

func TestWordsAreToldByTheirPlaceAndLabelsStay(t *testing.T) {
	t.Parallel()
	word := func(s string) triage.Arg { return triage.Arg{Word: s} }
	s := triage.Text{
		Text: "needs lora_adapters: no such metric in this scope", Key: "not_checked",
		Args: map[string]triage.Arg{"signal": word("lora_adapters"), "why": word("accepted_tokens: no such metric in this scope")},
	}
	require.Equal(t, "사용 중인 LoRA 어댑터 필요: 수락된 드래프트 토큰: 이 범위에 그런 메트릭 없음", told(t, "ko", s))
	// A model may be called like a signal.
	s = triage.Text{Text: "x", Key: "scope.only_model", Args: map[string]triage.Arg{"model": word("running")}}
	require.Equal(t, "알림에 모델이 없어 데이터가 있는 유일한 모델 running 범위를 살폈습니다", told(t, "ko", s))
	// A value that is missing leaves the report's English.
	s.Args = nil
	require.Equal(t, "x", told(t, "ko", s))
}
