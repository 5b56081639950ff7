package slack_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
	"vllm-triage/notify/slack/fakeslack"
)

var update = flag.Bool("update", false, "rewrite golden files")

var views = []slack.View{
	{Interactive: true},
	{Interactive: true, Charts: slack.NativeCharts},
	{Charts: slack.TextCharts},
}

var kinds = []notify.Kind{
	notify.KindCard, notify.KindDetails, notify.KindChange, notify.KindResolved, notify.KindNote,
}

func blocksOf(t testing.TB, r slack.Rendered) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(r.Blocks)
	require.NoError(t, err)
	return b
}

// accepted fails unless Slack would take what was rendered and read nothing into it.
func accepted(t testing.TB, name string, r slack.Rendered) fakeslack.Markup {
	t.Helper()
	b := blocksOf(t, r)
	code, messages := fakeslack.Validate(b)
	require.Empty(t, code, "%s: %v", name, messages)
	for _, text := range []string{r.Text, r.Plain} {
		require.NotEmpty(t, text, name)
		require.LessOrEqual(t, utf8.RuneCountInString(text), 4000, name)
		require.True(t, utf8.ValidString(text))
		require.Empty(t, fakeslack.ReadMarkup(text, nil).Violations, name)
	}
	m := fakeslack.ReadMarkup(r.Text, b)
	require.Empty(t, m.Violations, name)
	return m
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages() {
		for _, c := range notifytest.Cases(language) {
			t.Run(c.Name+"."+language, func(t *testing.T) {
				t.Parallel()
				m := notify.NewMessage(c.Report, c.Options)
				out := map[string]any{}
				for _, k := range kinds {
					if k == notify.KindChange && m.Change == nil || k == notify.KindResolved && m.Status != notify.Resolved ||
						k == notify.KindNote {
						continue
					}
					r := slack.Render(m.As(k), slack.View{Interactive: true})
					accepted(t, c.Name, r)
					out[string(k)] = map[string]any{"text": r.Text, "blocks": r.Blocks}
				}
				got := indent(t, out)
				path := filepath.Join("testdata", "golden", c.Name+"."+language+".json")
				if *update {
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
					require.NoError(t, os.WriteFile(path, got, 0o600))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Empty(t, cmp.Diff(string(want), string(got)))
			})
		}
	}
}

func indent(t testing.TB, v any) []byte {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	require.NoError(t, e.Encode(v))
	return []byte(b.String())
}

// TestEverythingIsWithinTheLimits renders every case in every way, far fleets and hostile labels among them.
func TestEverythingIsWithinTheLimits(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages() {
		for _, c := range notifytest.Cases(language) {
			m := notify.NewMessage(c.Report, c.Options)
			for _, v := range views {
				for _, k := range kinds {
					accepted(t, c.Name, slack.Render(m.As(k), v))
				}
			}
		}
	}
}

func TestHostileLabelsCallNobody(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("hostile", "en")
	m := notify.NewMessage(c.Report, c.Options)
	ours := map[string]bool{}
	for _, l := range []string{m.Links.Incident, m.Links.Runbook, m.Links.Prometheus, m.Links.Grafana, m.Links.Alertmanager} {
		ours[l] = true
	}
	for _, q := range m.Queries {
		ours[q.URL] = true
	}
	for _, k := range []notify.Kind{notify.KindCard, notify.KindDetails} {
		r := slack.Render(m.As(k), slack.View{Interactive: true, Charts: slack.TextCharts})
		found := accepted(t, "hostile", r)
		if k == notify.KindCard {
			require.Equal(t, []string{"<!subteam^S0ONCALL>"}, found.Mentions, "only the configured group is called")
			require.Equal(t, []string{"<!subteam^S0ONCALL>"}, fakeslack.ReadMarkup(r.Plain, nil).Mentions)
		} else {
			require.Empty(t, found.Mentions)
		}
		for _, l := range found.Links {
			require.True(t, ours[l], "%s is not ours", l)
		}
		for _, l := range fakeslack.ReadMarkup(r.Plain, nil).Links {
			require.True(t, ours[l], "%s is not ours", l)
		}
		for _, text := range []string{r.Text, r.Plain} {
			require.NotContains(t, text, "*bold*")
			require.NotContains(t, text, "_it_")
			require.NotContains(t, text, "~strike~")
			require.NotContains(t, text, "`")
			require.NotContains(t, text, ":fire:")
			require.NotContains(t, text, "@here")
			require.NotContains(t, text, "\u202E")
		}
	}
}

func TestRowsThatDoNotFitAreCounted(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("huge-fleet", "en")
	m := notify.NewMessage(c.Report, c.Options)
	for i := range 100 {
		m.Evidence = append(m.Evidence, notify.Evidence{Label: "Signal " + strconv.Itoa(i), Reading: "1 → 2"})
	}
	r := slack.Render(m.As(notify.KindDetails), slack.View{})
	b := string(blocksOf(t, r))
	var tables int
	for _, block := range r.Blocks {
		table, ok := block.(*slackgo.TableBlock)
		if !ok {
			continue
		}
		tables++
		shown := len(table.Rows) - 1
		total := len(m.Evidence) + len(m.ChangeFor)
		require.Less(t, shown, total)
		require.Contains(t, b, "and "+locale.Grouped(total-shown)+" more")
	}
	require.Equal(t, 1, tables)
	ruled := 0
	for _, x := range m.RuledOut {
		if strings.Contains(b, `"text":"`+x.Title+`"`) {
			ruled++
		}
	}
	require.Less(t, ruled, len(m.RuledOut))
	require.Contains(t, b, "and "+locale.Grouped(len(m.RuledOut)-ruled)+" more")
}

func TestButtonsCarryTheIncident(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("kv-longer-outputs", "en")
	m := notify.NewMessage(c.Report, c.Options)
	seen := map[string]string{}
	for _, b := range slack.Render(m, slack.View{Interactive: true}).Blocks {
		actions, ok := b.(*slackgo.ActionBlock)
		if !ok {
			continue
		}
		for _, e := range actions.Elements.ElementSet {
			switch e := e.(type) {
			case *slackgo.ButtonBlockElement:
				a, ok := slack.DecodeAction(e.ActionID, e.Value, "")
				require.True(t, ok, e.ActionID)
				require.Equal(t, "demo-9f3a1c", a.IncidentID)
				seen[a.Name] = e.URL
			case *slackgo.SelectBlockElement:
				for _, o := range e.Options {
					a, ok := slack.DecodeAction(e.ActionID, "", o.Value)
					require.True(t, ok, o.Value)
					require.Equal(t, "demo-9f3a1c", a.IncidentID)
					seen[a.Name] = ""
				}
			}
		}
	}
	for _, name := range []string{
		slack.ActionRight, slack.ActionNotQuite, slack.ActionWrong, slack.ActionRecheck, slack.Silence1h, slack.Silence4h,
		slack.Silence24h, slack.ActionOpenIncident, slack.ActionOpenRunbook, slack.ActionOpenAlertRunbook,
		slack.ActionOpenPrometheus, slack.ActionOpenGrafana,
	} {
		require.Contains(t, seen, name)
	}
	require.Equal(t, m.Links.Runbook, seen[slack.ActionOpenRunbook])

	old, ok := slack.DecodeAction(slack.ActionOpenAlertmanager, "demo-9f3a1c", "")
	require.True(t, ok, "cards of older versions have it")
	require.Equal(t, slack.ActionOpenAlertmanager, old.Name)

	plain := string(blocksOf(t, slack.Render(m, slack.View{})))
	require.NotContains(t, plain, `"recheck"`, "no buttons that nobody answers")
	require.Contains(t, plain, `"open_incident"`)

	end := notifytest.Named("resolved", "en")
	over := string(blocksOf(t, slack.Render(notify.NewMessage(end.Report, end.Options), slack.View{Interactive: true})))
	require.NotContains(t, over, "silence_1h", "nothing to silence any more")
	require.Contains(t, over, `"not_quite"`)
}

func TestDecodeActionRefusesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, x := range [][3]string{{"other", "v", ""}, {"silence", "", "silence_99h:i"}, {"silence", "", "silence_1h"}, {"", "", ""}} {
		_, ok := slack.DecodeAction(x[0], x[1], x[2])
		require.False(t, ok, x)
	}
	a, ok := slack.DecodeAction("silence", "", "silence_4h:a:b")
	require.True(t, ok)
	require.Equal(t, slack.Action{Name: slack.Silence4h, IncidentID: "a:b"}, a)
}

func TestTheStateIsSeenFirst(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"kv-longer-outputs": "🟠 KV cache full", "engine-stall": "🔴 Engine stalled", "inconclusive": "🟡 Inconclusive",
		"healthy": "⚪ No bottleneck", "resolved": "🟢 Resolved", "recovered": "🟢 Recovered", "adhoc": "🔎 KV cache full",
	} {
		c := notifytest.Named(name, "en")
		r := slack.Render(notify.NewMessage(c.Report, c.Options), slack.View{})
		header, ok := r.Blocks[0].(*slackgo.HeaderBlock)
		require.True(t, ok)
		require.True(t, strings.HasPrefix(header.Text.Text, want), header.Text.Text)
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	for ask, want := range map[string]bool{
		"here": true, "channel": true, "U012AB3CD": true, "W012AB3CD": true, "S012AB3CD": true,
		"": false, "everyone else": false, "<!here>": false, "U1><!channel>": false, "@here": false, "C012AB3CD": false,
	} {
		require.Equal(t, want, slack.ValidMention(ask), ask)
		m := notify.Message{Headline: "x", Mention: ask}
		require.Equal(t, want, len(accepted(t, ask, slack.Render(m, slack.View{})).Mentions) > 0, ask)
	}
}

func TestNotesNameWhoDidIt(t *testing.T) {
	t.Parallel()
	r := slack.Render(notify.NewNote("i", "en", "U012AB3CD", "marked it *right*", "second <!here> line"), slack.View{})
	found := accepted(t, "note", r)
	require.Equal(t, []string{"<@U012AB3CD>", "<@U012AB3CD>"}, found.Mentions, "in the text and in the blocks")
	require.Contains(t, string(blocksOf(t, r)), `"text":"marked it *right*"`, "rich text needs no escape")
	require.Empty(t, accepted(t, "note", slack.Render(notify.NewNote("i", "en", "<!channel>", "x"), slack.View{})).Mentions)
}

func TestNothingToSayIsStillAMessage(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		accepted(t, string(k), slack.Render(notify.Message{Kind: k}, slack.View{Interactive: true}))
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(notifytest.HostileText))
	f.Add([]byte(strings.Repeat("\xff\x07&<>|!@*", 300)))
	f.Add([]byte(strings.Repeat("\x05<!here", 300)))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := notifytest.Options([]string{"en", "ko"}[len(data)%2])
		m := notify.NewMessage(notifytest.Fuzzed(data), o)
		v := views[len(data)%len(views)]
		for _, k := range kinds {
			found := accepted(t, string(k), slack.Render(m.As(k), v))
			require.Empty(t, found.Mentions)
		}
	})
}

func TestShadowIsSaid(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("adhoc", "ko")
	require.Contains(t, string(blocksOf(t, slack.Render(notify.NewMessage(c.Report, c.Options), slack.View{}))), "섀도 모드")
}

func TestChartsInsideTheMessage(t *testing.T) {
	t.Parallel()
	m := notify.NewMessage(notifytest.KVLongerOutputs(), notifytest.Options("en")).As(notify.KindDetails)
	native := 0
	for _, b := range slack.Render(m, slack.View{Charts: slack.NativeCharts}).Blocks {
		if b.BlockType() == slackgo.MBTDataVisualization {
			native++
		}
	}
	require.Equal(t, 2, native, "Slack takes two charts a message")
	require.Contains(t, string(blocksOf(t, slack.Render(m, slack.View{Charts: slack.TextCharts}))), "▁▁▁")
	require.NotContains(t, string(blocksOf(t, slack.Render(m, slack.View{}))), "▁▁▁")
}

func BenchmarkRender(b *testing.B) {
	m := notify.NewMessage(notifytest.KVLongerOutputs(), notifytest.Options("ko"))
	b.ReportAllocs()
	for b.Loop() {
		slack.Render(m, slack.View{Interactive: true})
		slack.Render(m.As(notify.KindDetails), slack.View{})
	}
}
