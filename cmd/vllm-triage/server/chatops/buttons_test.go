package chatops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/config"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

func TestRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *chatops.Settings, c *chatops.Config) {
		c.NoteLanguage = func(_ context.Context, id string) string { return map[string]string{incID: "ko"}[id] }
	})
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.press(ann, ts, slack.ActionRight, incID, "")
	require.Equal(t, "Thank you, that is noted in the thread.", w.private(1, ann).Text)
	kept, err := w.store.Store.Feedback(t.Context(), incID)
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Equal(t, store.Feedback{
		IncidentID: incID, Author: "Ann (Slack " + ann + ")", At: kept[0].At, Opinion: "right",
	}, kept[0])
	notes := w.notes()
	require.Len(t, notes, 1)
	require.Equal(t, ann, notes[0].Note.Actor)
	require.Equal(t, []string{"의견: 판정이 맞습니다."}, notes[0].Note.Lines, "in the thread's language, not in Ann's")

	w.press(ann, ts, slack.ActionRight, incID, "")
	require.Contains(t, w.private(2, ann).Text, "You have said so already")
	require.Len(t, w.notes(), 1, "a double click is one line")
	w.press(kim, ts, slack.ActionRight, incID, "")
	require.Contains(t, w.private(3, kim).Text, "스레드에 기록했습니다.\n다른 의견: <@"+ann+">: 맞음")
	require.Len(t, w.notes(), 2)
}

func TestWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.press(kim, ts, slack.ActionWrong, incID, "")
	w.eventually("a modal", func() bool { return len(w.fake.Views()) == 1 })
	v := w.fake.Views()[0]
	for _, want := range []string{"실제 원인", "프리필 병목", "GPU 성능 저하", "다른 원인이거나 아직 모름", "llama (prod)"} {
		require.Contains(t, string(v.Title)+string(v.Blocks), want)
	}
	require.NotContains(t, string(v.Blocks), `"kv_cache_exhaustion"`, "what was reported is no choice")
	require.NotContains(t, string(v.Blocks), `"longer_outputs"`, "triggers are none")

	answer := w.submit(kim, "", "그냥")
	require.Contains(t, answer, `"response_action":"errors"`)
	require.Contains(t, answer, "원인을 선택해 주세요")
	require.Contains(t, w.submit(kim, "no_such_cause", ""), "지식 베이스에서 빠졌습니다")
	require.Contains(t, w.submit(kim, "longer_outputs", ""), "지식 베이스에서 빠졌습니다")
	require.Empty(t, w.notes())
	require.Empty(t, w.submit(kim, "prefill_bound", "긴 <!channel>\nprompts"))
	kept, err := w.store.Store.Feedback(t.Context(), incID)
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Equal(t, "wrong", kept[0].Opinion)
	require.Equal(t, "prefill_bound", kept[0].Cause)
	require.Equal(t, "긴 <!channel> prompts", kept[0].Comment)
	require.Equal(t, []string{"says: the verdict is wrong; it was: Prefill-bound.", "“긴 <!channel> prompts”"}, w.notes()[0].Note.Lines)

	require.Empty(t, w.submit(kim, "prefill_bound", "긴 <!channel>\nprompts"), "sent twice")
	require.Len(t, w.notes(), 1)
	require.Empty(t, w.submit(kim, "other", ""), "another mind")
	require.Len(t, w.notes(), 2)
	kept, err = w.store.Store.Feedback(t.Context(), incID)
	require.NoError(t, err)
	require.Len(t, kept, 1, "a person has one opinion")
	w.counted("feedback/done", 4) // The modal opened, and three times kept.
}

func TestNamesOfAuthors(t *testing.T) {
	t.Parallel()
	for author, want := range map[string]string{
		"김민지 (Slack U0KIM)": "김민지", "Ann (Lee) (Slack W0ANN)": "Ann (Lee)", "U0BOB (Slack)": "U0BOB", "U0BOB": "U0BOB",
		"jun@example.org": "jun@example.org", "": "",
	} {
		require.Equal(t, want, chatops.NameOf(author), author)
	}
}

// TestAPersonHasOneOpinionUnderAnyName keeps an opinion whose author has had another name since.
func TestAPersonHasOneOpinionUnderAnyName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	for _, author := range []string{"Annie (Slack " + ann + ")", "mina@example.org"} {
		require.NoError(t, w.store.SaveFeedback(t.Context(), store.Feedback{
			IncidentID: incID, Author: author, At: time.Now(), Opinion: "wrong", Cause: "other",
		}))
	}
	w.press(ann, ts, slack.ActionRight, incID, "")
	text := w.private(1, ann).Text
	require.Contains(t, text, "Thank you")
	require.Contains(t, text, "mina@example.org: ", "an opinion from the page")
	require.NotContains(t, text, ann, "it is the person's own")
	kept, err := w.store.Store.Feedback(t.Context(), incID)
	require.NoError(t, err)
	require.Len(t, kept, 2)
}

func TestNotQuite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.Inconclusive())
	w.press(ann, ts, slack.ActionNotQuite, incID, "")
	w.eventually("a modal", func() bool { return len(w.fake.Views()) == 1 })
	require.Contains(t, w.submit(ann, "", ""), "Please choose a cause or write a few words")
	require.Empty(t, w.submit(ann, "", "the trigger was a deploy"))
	require.Equal(t, []string{"says: the verdict is not quite right.", "“the trigger was a deploy”"}, w.notes()[0].Note.Lines)
}

func TestModalsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.fake.Inject(fakeslack.Fault{Method: "views.open", Error: "expired_trigger_id"})
	w.press(ann, ts, slack.ActionWrong, incID, "")
	require.Contains(t, w.private(1, ann).Text, "3 seconds to open a form")
	w.fake.Inject(fakeslack.Fault{Method: "views.open", Error: "invalid_arguments"})
	w.press(ann, ts, slack.ActionWrong, incID, "")
	require.Contains(t, w.private(2, ann).Text, "did not let me open the form")

	// The incident is pruned, or the store fails, while the modal is open.
	w.press(ann, ts, slack.ActionWrong, incID, "")
	w.eventually("a modal", func() bool { return len(w.fake.Views()) == 1 })
	broken := error(&store.Error{Op: "read", Kind: store.Full, Err: errors.New("no space")})
	w.store.err.Store(&broken)
	require.Contains(t, w.submit(ann, "other", "x"), "I could not read or write my database")
	w.store.err.Store(nil)
	w.resolve()
	_, err := w.store.Prune(t.Context(), time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Contains(t, w.submit(ann, "other", "x"), "I no longer have incident inc-1")
	w.counted("feedback/gone", 1)

	// A modal of another version, or a forged state.
	for _, change := range []func(*fakeslack.View){
		func(v *fakeslack.View) { v.CallbackID = "other" }, func(v *fakeslack.View) { v.PrivateMetadata = "{" },
		func(v *fakeslack.View) { v.PrivateMetadata = `{"i":"inc-1","o":"splendid"}` },
	} {
		v := w.fake.Views()[0]
		change(&v)
		status, _ := w.do(w.fake.SubmitRequest(t.Context(), w.app.URL+"/slack/interactions", secret, ann, v, nil))
		require.Equal(t, http.StatusOK, status)
	}
	require.Empty(t, w.notes())
}

func TestRecheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.engine.set(func(e *engine) { e.report = notifytest.Healthy() })
	w.press(kim, ts, slack.ActionRecheck, incID, "")
	require.Contains(t, w.private(1, kim).Text, "llama (prod) 상태를 다시 확인합니다")
	w.counted("recheck/done", 1)
	asked := w.engine.questions()
	require.Len(t, asked, 1)
	require.Equal(t, incID, asked[0].ID)
	require.Equal(t, triage.StatusFiring, asked[0].Status)
	require.Len(t, asked[0].Alerts, 1)
	require.WithinDuration(t, time.Now(), asked[0].Now, 10*time.Second)
	notes := w.notes()
	require.Len(t, notes, 1)
	require.Equal(t, kim, notes[0].Note.Actor)
	require.Regexp(t, `^re-check at \d\d:\d\d UTC: KV cache full \(high confidence\) → No bottleneck found$`, notes[0].Note.Lines[0])
	require.Regexp(t, `^• .+: .+ → .+$`, notes[0].Note.Lines[1], "the evidence then and now")
	require.Contains(t, strings.Join(notes[0].Note.Lines, "\n"), "oad", "the load is compared or said to be unknown")
	require.Regexp(t, `^재확인\(\d\d:\d\d KST\): KV 캐시 고갈 \(확신 높음\) → `, w.private(2, kim).Text)
	// The verdict changed, so the card is brought up to date.
	j, found, err := w.store.Claim(t.Context(), "w", time.Now().Add(time.Second), time.Minute)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "re-check by "+kim, j.Reason)
	// It is kept with the incident for its page.
	checks, err := w.store.Checks(t.Context(), incID)
	require.NoError(t, err)
	require.Len(t, checks, 1)
	require.Equal(t, "김민지 (Slack "+kim+")", checks[0].Author)
	require.False(t, checks[0].DoneAt.IsZero())
	var kept web.Recheck
	require.NoError(t, json.Unmarshal(checks[0].Body, &kept))
	require.Equal(t, triage.NoBottleneck, kept.Verdict)
	require.NotEmpty(t, kept.Readings)
	require.Equal(t, "김민지", kept.By, "a page shows a name")

	w.press(ann, ts, slack.ActionRecheck, incID, "")
	require.Contains(t, w.private(3, ann).Text, "re-checked a few seconds ago")
	require.Len(t, w.engine.questions(), 1)
}

func TestRecheckOfTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.press(ann, ts, slack.ActionRecheck, incID, "")
	w.counted("recheck/done", 1)
	lines := w.notes()[0].Note.Lines
	require.Regexp(t, `^re-check at .*: still KV cache full \(high confidence\)$`, lines[0])
	_, found, err := w.store.Claim(t.Context(), "w", time.Now().Add(time.Second), time.Minute)
	require.NoError(t, err)
	require.False(t, found, "nothing changed, nothing to bring up to date")
}

func TestRecheckAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.resolve()
	w.report(incID, notifytest.Healthy(), triage.StatusResolved)
	w.engine.set(func(e *engine) { e.report = notifytest.Healthy() })
	w.press(ann, ts, slack.ActionRecheck, incID, "")
	w.counted("recheck/done", 1)
	require.Equal(t, triage.StatusAdhoc, w.engine.questions()[0].Status, "as it is now, not as it was")
	require.Contains(t, w.notes()[0].Note.Lines[0], "KV cache full (high confidence) → No bottleneck found", "compared with the incident")
}

func TestTwoPeopleRecheckAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	hold := make(chan struct{})
	w.engine.set(func(e *engine) { e.hold = hold })
	w.press(ann, ts, slack.ActionRecheck, incID, "")
	w.eventually("the first asks", func() bool { return len(w.engine.questions()) == 1 })
	w.press(kim, ts, slack.ActionRecheck, incID, "")
	require.Contains(t, w.private(2, kim).Text, "방금 다른 사람이 재확인을 요청했습니다")
	close(hold)
	w.counted("recheck/done", 1)
	w.counted("recheck/repeated", 1)
	require.Len(t, w.engine.questions(), 1)
	require.Len(t, w.notes(), 1)
}

func TestRecheckFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.engine.set(func(e *engine) {
		e.err = &promq.Error{Kind: promq.KindTimeout, Target: "http://p:9090", Err: errors.New("slow")}
	})
	w.press(ann, ts, slack.ActionRecheck, incID, "")
	require.Contains(t, w.private(2, ann).Text, "I could not re-check: ask prometheus at http://p:9090: timed out")
	require.Empty(t, w.notes())
	w.engine.set(func(e *engine) { e.err = nil })
	w.press(ann, ts, slack.ActionRecheck, incID, "")
	w.counted("recheck/done", 1)
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for option, length := range map[string]time.Duration{
		slack.Silence1h: time.Hour, slack.Silence4h: 4 * time.Hour, slack.Silence24h: 24 * time.Hour,
	} {
		w := newWorld(t)
		ts := w.open(incID, notifytest.KVLongerOutputs())
		w.press(kim, ts, slack.ActionSilence, "", option+":"+incID)
		require.Contains(t, w.private(1, kim).Text, "사일런스했습니다. 종료 시각:")
		made := w.silencer.silences()
		require.Len(t, made, 1)
		require.Equal(t, []alertmanager.Matcher{
			alertmanager.Equal("model_name", "llama"), alertmanager.Equal("namespace", "prod"),
		}, made[0].Matchers, "the model, not the pod")
		require.Equal(t, length, made[0].EndsAt.Sub(made[0].StartsAt))
		require.Equal(t, "김민지 (Slack "+kim+")", made[0].CreatedBy)
		require.True(t, strings.HasPrefix(made[0].Comment, alertmanager.Tag+" incident "+incID+": "), made[0].Comment)
		require.Contains(t, made[0].Comment, kim)

		thread := w.fake.Thread(channel, ts)
		require.Len(t, thread, 1)
		require.Contains(t, thread[0].Text, "<@"+kim+"> silenced these alerts for "+map[string]string{
			slack.Silence1h: "1 hour", slack.Silence4h: "4 hours", slack.Silence24h: "24 hours",
		}[option]+", until")
		require.Contains(t, thread[0].Text, `{model_name="llama", namespace="prod"}`)
		require.Contains(t, string(thread[0].Blocks), fmt.Sprintf(`"timestamp":%d`, made[0].EndsAt.Unix()), "in each reader's zone")
		require.Empty(t, w.notes(), "said once")
		buttons := buttonsOf(t, thread[0])
		require.Equal(t, map[string]string{"expire_silence_0": "silence-1|" + incID}, buttons)

		w.press(ann, thread[0].TS, "expire_silence_0", buttons["expire_silence_0"], "")
		require.Contains(t, w.private(2, ann).Text, "The silence is over.")
		require.Equal(t, 1, w.silencer.ended)
		require.Equal(t, []string{"ended the silence."}, w.notes()[0].Note.Lines)
		require.Equal(t, ann, w.notes()[0].Note.Actor)
		w.press(kim, thread[0].TS, "expire_silence_0", buttons["expire_silence_0"], "")
		require.Contains(t, w.private(3, kim).Text, "이미 끝난 사일런스입니다")
		require.Len(t, w.notes(), 1)
	}
}

func TestSilencedAlready(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.press(kim, ts, slack.ActionSilence, "", slack.Silence4h+":"+incID)
	w.private(1, kim)
	w.press(kim, ts, slack.ActionSilence, "", slack.Silence4h+":"+incID)
	w.private(2, kim)
	w.press(ann, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
	m := w.private(3, ann)
	require.Contains(t, m.Text, "This is silenced already by 김민지 (Slack "+kim+"), until")
	require.Contains(t, buttonsOf(t, m), "expire_silence_0")
	require.Len(t, w.silencer.silences(), 1)
	w.press(ann, ts, slack.ActionSilence, "", slack.Silence24h+":"+incID)
	w.private(4, ann)
	require.Len(t, w.silencer.silences(), 2, "a longer one is another one")
	w.counted("silence/repeated", 2)
	require.Len(t, w.fake.Thread(channel, ts), 2)
}

func TestTwoPeopleSilenceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	slow := make(chan struct{})
	w.silencer.slow = slow
	var both sync.WaitGroup
	for _, user := range []string{kim, ann, kim, ann} {
		both.Go(func() { w.press(user, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID) })
	}
	both.Wait()
	w.counted("silence/repeated", 3)
	close(slow)
	w.counted("silence/done", 1)
	require.Len(t, w.silencer.silences(), 1)
}

func TestSilenceIsScopedByTheAlertsOwnLabels(t *testing.T) {
	t.Parallel()
	eq := alertmanager.Equal
	for name, tc := range map[string]struct {
		alerts []triage.Alert
		want   [][]alertmanager.Matcher
	}{
		"another label of models": {
			[]triage.Alert{alert("A", map[string]string{"model": "m", "exported_namespace": "n", "pod": "p", "cluster": "c"})},
			[][]alertmanager.Matcher{{eq("model", "m"), eq("exported_namespace", "n"), eq("cluster", "c")}},
		},
		"no namespace": {
			[]triage.Alert{alert("A", map[string]string{"model_name": "m", "instance": "i"})},
			[][]alertmanager.Matcher{{eq("model_name", "m")}},
		},
		"alerts that name it differently": {
			[]triage.Alert{alert("A", map[string]string{"model_name": "m"}), alert("B", map[string]string{"model_name": "m", "namespace": "n"})},
			[][]alertmanager.Matcher{{eq("model_name", "m"), eq("namespace", "n")}, {eq("model_name", "m")}},
		},
		"no model": {
			[]triage.Alert{alert("A", map[string]string{"namespace": "n", "pod": "p"}), alert("B", map[string]string{"namespace": "n", "pod": "p"})},
			[][]alertmanager.Matcher{{eq("alertname", "A"), eq("namespace", "n")}, {eq("alertname", "B"), eq("namespace", "n")}},
		},
		"neither": {[]triage.Alert{alert("A", map[string]string{"pod": "p"})}, nil},
	} {
		w := newWorld(t)
		ts := w.open(incID, notifytest.KVLongerOutputs(), tc.alerts...)
		w.press(ann, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
		m := w.private(1, ann)
		var got [][]alertmanager.Matcher
		for _, s := range w.silencer.silences() {
			got = append(got, s.Matchers)
		}
		require.ElementsMatch(t, tc.want, got, name)
		if tc.want == nil {
			require.Contains(t, m.Text, "I make no silence that would hide more than this")
			continue
		}
		thread := w.fake.Thread(channel, ts)
		require.Len(t, thread, 1, name)
		ids := strings.Split(strings.TrimSuffix(buttonsOf(t, thread[0])["expire_silence_0"], "|"+incID), ",")
		require.Len(t, ids, len(tc.want), "one button ends all of them")
		w.press(ann, thread[0].TS, "expire_silence_0", buttonsOf(t, thread[0])["expire_silence_0"], "")
		w.private(2, ann)
		require.Equal(t, len(tc.want), w.silencer.ended, name)
	}
}

func TestSilencesThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fail error
		says string
	}{
		"down":    {&alertmanager.Error{Kind: alertmanager.Unavailable, Op: "list silences", Err: errors.New("refused")}, "could not be asked"},
		"lost":    {&alertmanager.Error{Kind: alertmanager.Timeout, Maybe: true, Err: errors.New("slow")}, "may or may not be there"},
		"refused": {&alertmanager.Error{Kind: alertmanager.Refused, Err: errors.New("bad")}, "Alertmanager refused the silence"},
		"broad":   {&alertmanager.Error{Kind: alertmanager.TooBroad, Err: errors.New("wide")}, "hide more than this"},
	} {
		w := newWorld(t)
		ts := w.open(incID, notifytest.KVLongerOutputs())
		w.silencer.fail = tc.fail
		w.press(ann, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
		require.Contains(t, w.private(1, ann).Text, tc.says, name)
		w.press(ann, ts, "expire_silence_0", "silence-1|"+incID, "")
		require.Contains(t, w.private(2, ann).Text, "Alertmanager could not be asked", name)
		require.Empty(t, w.fake.Thread(channel, ts))
		w.silencer.fail = nil
		w.press(ann, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
		require.Contains(t, w.private(3, ann).Text, "Silenced for 1 hour", "trying again helps")
	}

	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.resolve()
	w.press(ann, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
	require.Contains(t, w.private(1, ann).Text, "there is nothing to silence")
	w.settings.Silencer = nil
	w.press(kim, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
	require.Contains(t, w.private(2, kim).Text, "alertmanager.url이 없습니다")
	w.press(kim, ts, "expire_silence_0", "x|", "")
	require.Contains(t, w.private(3, kim).Text, "alertmanager.url이 없습니다")
	w.slash(ann, "silences")
	require.Contains(t, w.private(4, ann).Text, "alertmanager.url is missing")
	w.counted("silences/unavailable", 1)
}

// TestASilenceIsToldWhenTheThreadCannotBe has a thread that takes no message: the line goes the way of notes, and the button
// to whoever pressed.
func TestASilenceIsToldWhenTheThreadCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.fake.Inject(fakeslack.Fault{Method: "chat.postMessage", Status: http.StatusTooManyRequests, RetryAfter: "30"})
	w.press(ann, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
	m := w.private(1, ann)
	require.Contains(t, buttonsOf(t, m), "expire_silence_0")
	notes := w.notes()
	require.Len(t, notes, 1)
	require.Regexp(t, `^silenced these alerts for 1 hour, until .*UTC$`, notes[0].Note.Lines[0])
	require.Equal(t, `{model_name="llama", namespace="prod"}`, notes[0].Note.Lines[1])
}

func TestSilencesAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slash(ann, "silences")
	require.Contains(t, w.private(1, ann).Text, "None of my silences is active")
	ts := w.open(incID, notifytest.KVLongerOutputs())
	w.press(kim, ts, slack.ActionSilence, "", slack.Silence4h+":"+incID)
	w.private(2, kim)
	w.silencer.mu.Lock()
	w.silencer.list = append(w.silencer.list, alertmanager.Silence{ID: "foreign", State: alertmanager.StateActive, Comment: "by hand"})
	w.silencer.mu.Unlock()
	w.ahead.Store(int64(time.Minute))
	w.slash(ann, "silences")
	m := w.private(3, ann)
	require.Contains(t, m.Text, `1 silence of mine`)
	require.Contains(t, m.Text, `1. {model_name="llama", namespace="prod"} · until`)
	require.Contains(t, m.Text, "김민지 (Slack "+kim+")")
	require.Contains(t, m.Markup().Links, "https://triage.example.org/incidents/inc-1")
	buttons := buttonsOf(t, m)
	require.Equal(t, map[string]string{"expire_silence_0": "silence-1|" + incID}, buttons)
	w.slash(ann, "silences qwen")
	require.Contains(t, w.private(4, ann).Text, "None of my silences is active")
	w.press(ann, "", "expire_silence_0", buttons["expire_silence_0"], "")
	require.Contains(t, w.private(5, ann).Text, "The silence is over")
	w.silencer.fail = errors.New("down")
	w.slash(kim, "silences")
	require.Contains(t, w.private(6, kim).Text, "Alertmanager에 요청하지 못했습니다")
}

// TestOldButtons covers incidents that are gone, buttons of other versions and links.
func TestOldButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.fake.Say(channel, fakeslack.BotUser, "an old card")
	n := 0
	for _, x := range [][3]string{
		{slack.ActionRight, "pruned", ""},
		{slack.ActionWrong, "pruned", ""},
		{slack.ActionNotQuite, "pruned", ""},
		{slack.ActionRecheck, "pruned", ""},
		{slack.ActionSilence, "", slack.Silence1h + ":pruned"},
	} {
		for user, says := range map[string]string{ann: "I no longer have incident pruned", kim: "인시던트 pruned 기록이 더 이상 없습니다"} {
			n++
			w.press(user, ts, x[0], x[1], x[2])
			require.Contains(t, w.private(n, user).Text, says, x[0])
		}
	}
	for _, x := range [][3]string{
		{"some_button_of_v0", "x", ""},
		{slack.ActionSilence, "", "silence_99y:x"},
		{"expire_silence_0", "", ""},
		{"expire_silence_0", "a,b,c,d,e,f,g|x", ""},
		{"adhoc_share", "", ""},
	} {
		n++
		w.press(ann, ts, x[0], x[1], x[2])
		require.Contains(t, w.private(n, ann).Text, "from another version", x[0])
	}
	for _, link := range []string{slack.ActionOpenIncident, slack.ActionOpenRunbook, slack.ActionOpenPrometheus, slack.ActionOpenGrafana} {
		w.press(ann, ts, link, "pruned", "")
	}
	w.counted("link/done", 4)
	require.Len(t, w.fake.Ephemeral(channel), n, "a link needs no answer")
	require.Empty(t, w.fake.Views())

	broken := errors.New("disk is full")
	w.store.err.Store(&broken)
	w.press(kim, ts, slack.ActionRight, incID, "")
	require.Contains(t, w.private(n+1, kim).Text, "데이터베이스를 읽거나 쓰지 못했습니다")
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *chatops.Settings, _ *chatops.Config) {
		c, err := config.Parse([]byte(`
prometheus: {url: "http://prometheus:9090"}
slack:
  permissions:
    commands: {users: [`+ann+`, `+kim+`]}
    buttons: {groups: [S0ONCALL]}
    silence: {users: [`+kim+`], groups: [S0ONCALL]}
    each:
      share: {channels: [C0ELSEWHERE]}
      incidents: {}
      expire: {users: [`+ann+`]}
`), t.TempDir(), config.NoEnv)
		require.NoError(t, err)
		s.Permissions = c.Slack.Permissions
	})
	w.change(func() { w.groups["S0ONCALL"] = []string{ann} })
	ts := w.open(incID, notifytest.KVLongerOutputs())
	require.Contains(t, w.slash(bob, "llama"), "You may not ask about models")
	require.Contains(t, w.slash(bob, "explain"), "You may not look up causes")
	require.Contains(t, w.slash(bob, "help"), "What I can do", "help is for everybody")
	require.Empty(t, w.slash(bob, "incidents"), "an empty rule lets everybody")
	w.private(1, bob)
	require.Contains(t, w.slash(kim, "llama --share"), "이 채널에서는 채널 공유 기능을 쓸 수 없습니다")
	require.Contains(t, w.slash(kim, "llama"), "조회 중")
	w.private(2, kim)

	w.press(kim, ts, slack.ActionRight, incID, "")
	require.Contains(t, w.private(3, kim).Text, "판정 평가 권한이 없습니다")
	w.press(kim, ts, slack.ActionRecheck, incID, "")
	require.Contains(t, w.private(4, kim).Text, "재확인 권한이 없습니다")
	w.press(ann, ts, slack.ActionRight, incID, "")
	require.Contains(t, w.private(5, ann).Text, "Thank you")
	w.press(bob, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
	require.Contains(t, w.private(6, bob).Text, "You may not silence alerts: it is limited to certain people.")
	w.press(kim, ts, slack.ActionSilence, "", slack.Silence1h+":"+incID)
	require.Contains(t, w.private(7, kim).Text, "사일런스했습니다")
	w.press(kim, ts, "expire_silence_0", "silence-1|"+incID, "")
	require.Contains(t, w.private(8, kim).Text, "사일런스 해제 권한이 없습니다")
	w.press(kim, ts, "adhoc_share", `{"s":{"model_name":"llama"},"t":"2026-11-29T00:00:00Z"}`, "")
	require.Contains(t, w.private(9, kim).Text, "채널 공유 기능을 쓸 수 없습니다")
	require.Len(t, w.silencer.silences(), 1)
	require.Zero(t, w.silencer.ended)
	require.Equal(t, 1, w.calls("usergroups.users.list"), "members are remembered")
	w.counted("feedback/denied", 1)

	// Whoever opened a modal may lose the permission before sending it.
	w.press(ann, ts, slack.ActionWrong, incID, "")
	w.eventually("a modal", func() bool { return len(w.fake.Views()) == 1 })
	w.change(func() { w.groups["S0ONCALL"] = []string{bob} })
	w.ahead.Store(int64(6 * time.Minute))
	require.Contains(t, w.submit(ann, "other", "x"), "You may not judge verdicts")
	require.Equal(t, 2, w.calls("usergroups.users.list"))

	// Slack does not tell the members any more: what was known counts for an hour, then nobody is let in.
	w.change(func() { w.groups["S0ONCALL"] = nil })
	w.ahead.Store(int64(20 * time.Minute))
	w.press(bob, ts, slack.ActionRight, incID, "")
	require.Contains(t, w.private(10, bob).Text, "Thank you")
	w.ahead.Store(int64(90 * time.Minute))
	w.press(bob, ts, slack.ActionRecheck, incID, "")
	require.Contains(t, w.private(11, bob).Text, "Slack does not tell me who is in the user group")
}

// TestEveryActCanBeRestricted compares the acts of the conversation with those that the configuration knows.
func TestEveryActCanBeRestricted(t *testing.T) {
	t.Parallel()
	known := config.Acts()
	for _, a := range []chatops.Act{chatops.ActHelp, chatops.ActLink, chatops.ActOther} { // For everybody.
		require.NotContains(t, known, string(a))
		known = append(known, string(a))
	}
	var all []string
	for _, a := range chatops.Acts() {
		all = append(all, string(a))
	}
	require.ElementsMatch(t, all, known)
}

// TestThreadsOfReplies presses on a message inside a thread: what follows belongs to the thread's root.
func TestThreadsOfReplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.open(incID, notifytest.KVLongerOutputs())
	payload, err := json.Marshal(map[string]any{
		"type": "block_actions", "user": map[string]any{"id": ann},
		"container": map[string]any{"message_ts": "1700000000.000100", "thread_ts": ts, "channel_id": channel},
		"actions":   []any{map[string]any{"action_id": "silence", "selected_option": map[string]any{"value": slack.Silence1h + ":" + incID}}},
	})
	require.NoError(t, err)
	status, _ := w.do(signedForm(t, w.app.URL+"/slack/interactions", map[string][]string{"payload": {string(payload)}}), nil)
	require.Equal(t, http.StatusOK, status)
	w.counted("silence/done", 1)
	require.Len(t, w.fake.Thread(channel, ts), 1)
	require.Contains(t, w.private(1, ann).Text, "Silenced for 1 hour", "without a response URL by chat.postEphemeral")
}
