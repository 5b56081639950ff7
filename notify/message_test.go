package notify_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
	"vllm-triage/notify/notifytest"
	"vllm-triage/triage"
)

func message(name, language string) notify.Message {
	c := notifytest.Named(name, language)
	return notify.NewMessage(c.Report, c.Options)
}

// TestTheFirstTwoLinesSayIt is what a phone shows at 3 a.m.: what binds, what changed, where, how sure, since when.
func TestTheFirstTwoLinesSayIt(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, language, headline, lead string }{
		{
			"kv-longer-outputs", "en", "KV cache full · demo (llm)",
			"Outputs got longer · all 3 replicas · high confidence · since 14:02 KST ± 20 s",
		},
		{
			"kv-longer-outputs", "ko", "KV 캐시 고갈 · demo (llm)",
			"출력이 길어짐 · 레플리카 3개 전체 · 확신 높음 · 14:02 KST부터 (± 20초)",
		},
		{
			"device-slow", "en", "GPU slower than before · demo (llm)",
			"1 of 3 replicas: vllm-demo-1 · medium confidence · since 14:04 KST ± 20 s · No change found",
		},
		{
			"lora-slots", "en", "LoRA slots taken · demo (llm)",
			"Probably: More LoRA adapters in use · all 3 replicas · high confidence · since 14:04 KST ± 20 s",
		},
		{
			"client-aborts", "en", "Clients give up · demo (llm)",
			"Possibly: Outputs got longer · all 3 replicas · medium confidence · since 14:04 KST ± 20 s",
		},
		{
			"no-baseline", "en", "KV cache full · demo (llm)",
			"all 3 replicas · high confidence · since 14:02 KST ± 20 s · What changed is unclear",
		},
		{
			"inconclusive", "en", "Inconclusive · demo (llm)",
			"KV cache and prefill fit equally well: the prompt length could not be read for the last 4 min · " +
				"since 14:05 KST ± 20 s",
		},
		{
			"healthy", "en", "No bottleneck found · demo (llm)",
			"Nothing binds the server now; the likely causes are refuted by data.",
		},
		{
			"low-traffic", "ko", "트래픽이 적어 판단 불가 · demo (llm)",
			"요청 몇 건이 알림의 분위수를 좌우합니다. 고칠 것은 없습니다.",
		},
		{
			"resolved", "en", "Resolved: KV cache full · demo (llm)",
			"Outputs got longer · all 3 replicas · since 14:02 KST ± 20 s · resolved after 12 min",
		},
		{
			"recovered", "en", "Recovered: KV cache full · demo (llm)",
			"Outputs got longer · all 3 replicas · since 14:02 KST ± 20 s · back to normal after 13 min; the alert still fires",
		},
		{
			"huge-fleet", "en", "KV cache full · demo (llm)",
			"Outputs got longer · 2,000 of 2,500 replicas: vllm-demo-0, vllm-demo-1, vllm-demo-2 and 1,997 more · " +
				"high confidence · since 14:02 KST ± 20 s",
		},
		{"bare", "en", "Inconclusive · vLLM", "The data does not separate the likely causes."},
	}
	for _, tt := range tests {
		m := message(tt.name, tt.language)
		require.Equal(t, tt.headline, m.Headline, "%s %s", tt.name, tt.language)
		require.Equal(t, tt.lead, m.Lead, "%s %s", tt.name, tt.language)
		require.True(t, strings.HasPrefix(m.Summary, tt.headline), m.Summary)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for p, want := range map[float64]notify.Level{
		1: notify.High, 0.8: notify.High, 0.79: notify.Medium, 0.6: notify.Medium, 0.59: notify.Low, 0.4: notify.Low,
		0.39: notify.None, 0: notify.None,
	} {
		require.Equal(t, want, notify.LevelOf(p), "%g", p)
	}
}

func TestInconclusiveSaysWhatBlocksAndTheQueryThatDecides(t *testing.T) {
	t.Parallel()
	m := message("inconclusive", "en")
	require.NotNil(t, m.Blocked)
	require.NotNil(t, m.Blocked.Query)
	require.Contains(t, m.Blocked.Query.PromQL, "vllm:time_to_first_token_seconds_count")
	require.Contains(t, m.Links.Prometheus, url.QueryEscape(m.Blocked.Query.PromQL), "the button opens the deciding query")
	titles := []string{}
	for _, c := range m.Candidates {
		titles = append(titles, c.Title)
	}
	require.Equal(t, []string{"KV cache full", "Prefill-bound", "Decode-bound"}, titles)
	require.Empty(t, m.Steps, "no advice without a cause")
	require.Empty(t, m.Links.Runbook)
}

func TestResolvedComparesThenAndNow(t *testing.T) {
	t.Parallel()
	m := message("resolved", "en")
	require.Equal(t, notify.Resolved, m.Status)
	require.Equal(t, triage.CauseFound, m.Verdict, "the card keeps the cause that was found")
	require.Contains(t, m.Compare, notify.Compare{Label: "Waiting requests", During: "61", Now: "0"})
	require.Contains(t, m.Compare, notify.Compare{Label: "Preemptions", During: "0.74/s", Now: "0/s"})
	require.Equal(t, "3 resolved: VLLMQueueGrowing, VLLMPreempting, VLLMHighTTFT", m.AlertsText)
	require.Equal(t, []string{"updated 4 times"}, m.Counters)
	require.Nil(t, m.Change, "the end is no change of verdict")
}

func TestResolvedWithoutACause(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("resolved", "en")
	c.Options.Previous = nil
	require.Equal(t, "Resolved: nothing bound demo (llm)", notify.NewMessage(c.Report, c.Options).Headline)
	c.Report.Verdict = triage.Inconclusive
	m := notify.NewMessage(c.Report, c.Options)
	require.Equal(t, "Resolved, cause unclear · demo (llm)", m.Headline)
	require.Contains(t, m.Lead, "resolved after 12 min")
	require.Empty(t, m.Compare)
}

func TestChangeOfVerdictSaysWhy(t *testing.T) {
	t.Parallel()
	m := message("changed", "en")
	require.NotNil(t, m.Change)
	require.Equal(t, "Verdict changed: inconclusive → Prefill-bound (high confidence)", m.Change.Text)
	require.Equal(t, []string{"Prompt length 310 tok → 2.9k tok", "KV cache usage moved from 86 % to 79 %"}, m.Change.Because)
	require.Equal(t, "KV cache full", m.Also.Title)
	require.Equal(t, notify.Critical, m.Severity)

	c := notifytest.Named("kv-longer-outputs", "en")
	same := notifytest.KVLongerOutputs()
	c.Options.Previous = &same
	require.Nil(t, notify.NewMessage(c.Report, c.Options).Change)

	other := notifytest.Healthy()
	c.Options.Previous = &other
	require.Equal(t, "Verdict changed: No bottleneck found → KV cache full (high confidence)",
		notify.NewMessage(c.Report, c.Options).Change.Text)

	back := notifytest.Inconclusive()
	c.Options.Previous = &c.Report
	m = notify.NewMessage(back, c.Options)
	require.Equal(t, []string{m.Blocked.Text}, m.Change.Because)
}

func TestLateness(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("kv-longer-outputs", "en")
	c.Options.Late = 59 * time.Second
	require.Empty(t, notify.NewMessage(c.Report, c.Options).Late)
	c.Options.Late = 14 * time.Minute
	require.Equal(t, "Posted 14 min late; the alert still fires.", notify.NewMessage(c.Report, c.Options).Late)
	c.Report.Incident.Status = triage.StatusResolved
	require.Equal(t, "Posted 14 min late; the alert has resolved meanwhile.", notify.NewMessage(c.Report, c.Options).Late)
	require.Equal(t, []string{"came back 3 times", "updated 7 times"}, message("late-flapping", "en").Counters)
}

func TestAlertsAreCountedByTheirOwnStatus(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("kv-longer-outputs", "en")
	c.Report.Incident.Alerts[1].Status = triage.StatusResolved
	c.Report.Incident.Alerts[1].EndsAt = notifytest.Now()
	c.Report.Incident.Truncated = 12
	m := notify.NewMessage(c.Report, c.Options)
	require.Equal(t, "2 alerts fire, 1 resolved, at least 12 more that Alertmanager left out: "+
		"VLLMQueueGrowing, VLLMPreempting, VLLMHighTTFT", m.AlertsText)
	require.Equal(t, notify.Firing, m.Status)
	last := m.Timeline[len(m.Timeline)-1]
	require.Equal(t, "VLLMPreempting resolved", last.Text)
	require.Equal(t, "14:09:30", last.Clock)
}

func TestManyAlertsBecomeFewEvents(t *testing.T) {
	t.Parallel()
	m := message("huge-fleet", "en")
	require.Less(t, len(m.Timeline), 60)
	require.True(t, slices.ContainsFunc(m.Timeline, func(e notify.Event) bool { return strings.Contains(e.Text, "VLLMAlert7 ×75") }))
	require.Len(t, m.Places, notify.MaxPlaces)
	require.Equal(t, 2000-notify.MaxPlaces, m.MorePlaces)
}

func TestMissingDataIsSaid(t *testing.T) {
	t.Parallel()
	m := message("missing-data", "en")
	require.Len(t, m.Gaps, 9)
	require.Equal(t, notify.Reasoned{Title: "Running requests", Why: "query failed: timed out after 10 s"}, m.Gaps[0])
	require.Equal(t, "not exported here", m.Gaps[8].Why)
	require.Contains(t, message("no-baseline", "en").Notes, "No usable baseline: before-and-after comparisons are missing")
}

func TestSentencesAreTranslatedByKey(t *testing.T) {
	t.Parallel()
	// Texts without a template in the catalogue are told in the report's English.
	n := 61.0
	r := notifytest.KVLongerOutputs()
	r.Impact.Lines = []triage.Text{{Text: "61 requests wait", Key: "no.such.key", Args: map[string]triage.Arg{"n": {Number: &n}}}}
	require.Equal(t, []string{"61 requests wait"}, notify.NewMessage(r, notifytest.Options("ko")).Impact)
}

func TestLinksAreHTTPOnly(t *testing.T) {
	t.Parallel()
	m := message("kv-longer-outputs", "ko")
	require.Equal(t, "https://triage.example.org/incidents/demo-9f3a1c", m.Links.Incident)
	require.Equal(t, "https://triage.example.org/runbooks/kv_cache_exhaustion?incident=demo-9f3a1c&lang=ko", m.Links.Runbook)
	require.Equal(t, "https://runbooks.example.org/vllm/queue", m.Links.AlertRunbook)
	am, err := url.Parse(m.Links.Alertmanager)
	require.NoError(t, err)
	require.Equal(t, `/alerts?filter={model_name="demo",namespace="llm"}`, am.Fragment)

	prom, err := url.Parse(m.Links.Prometheus)
	require.NoError(t, err)
	require.Equal(t, "/graph", prom.Path)
	require.Equal(t, m.Queries[0].PromQL, prom.Query().Get("g0.expr"))
	require.Equal(t, "3000s", prom.Query().Get("g0.range_input"), "baseline and incident")
	require.Equal(t, "2026-11-29 05:09:30", prom.Query().Get("g0.end_input"))

	grafana, err := url.Parse(m.Links.Grafana)
	require.NoError(t, err)
	var panes map[string]struct {
		Datasource string `json:"datasource"`
		Queries    []struct {
			Expr string `json:"expr"`
		} `json:"queries"`
		Range struct{ From, To string } `json:"range"`
	}
	require.NoError(t, json.Unmarshal([]byte(grafana.Query().Get("panes")), &panes))
	require.Equal(t, "prom-llm", panes["t"].Datasource)
	require.Equal(t, m.Queries[0].PromQL, panes["t"].Queries[0].Expr)
	require.Equal(t, "1795928970000", panes["t"].Range.To)

	for _, bad := range []string{
		"javascript:alert(1)", "ftp://x/y", "//x", "x", "https://", "https://user:pw@x/", "data:text/html,x", "kubectl get pods",
		"https://x/" + strings.Repeat("a", 3000),
	} {
		r := notifytest.KVLongerOutputs()
		r.Incident.RunbookURL, r.Incident.ExternalURL = bad, bad
		m := notify.NewMessage(r, notify.Options{BaseURL: bad, PrometheusURL: bad, GrafanaExplore: bad + "{query}"})
		require.Equal(t, notify.Links{}, m.Links, bad)
	}
	require.NotContains(t, message("hostile", "en").Links.Alertmanager, "|")
	require.NotContains(t, message("hostile", "en").Links.Alertmanager, ">")
}

func TestMessagesAreDataAndDeterministic(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages() {
		again := notifytest.Cases(language)
		for i, c := range notifytest.Cases(language) {
			m := notify.NewMessage(c.Report, c.Options)
			require.Empty(t, cmp.Diff(m, notify.NewMessage(again[i].Report, again[i].Options)), c.Name)
			b, err := json.Marshal(m)
			require.NoError(t, err)
			var back notify.Message
			require.NoError(t, json.Unmarshal(b, &back))
			b2, err := json.Marshal(back)
			require.NoError(t, err)
			require.JSONEq(t, string(b), string(b2), c.Name)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":               "plain",
		"  a\n\tb  c ":        "a b c",
		"\x1b[31mred\x00":     "[31mred",
		"\u202Egnp.exe\u200B": "gnp.exe",
		"\xff\xfeA":           "\uFFFD\uFFFDA",
		"한글 🔥":                "한글 🔥",
		"":                    "",
		"12345678901":         "123456789…",
		"123456789 1":         "123456789…",
		"가나다라마바사아자차카":         "가나다라마바사아자…",
		"1234567890 ":         "1234567890",
		"1234567890\n":        "1234567890",
	} {
		require.Equal(t, want, notify.Clean(in, 10), "%q", in)
	}
}

func TestLinksToPrometheusMayBeATemplate(t *testing.T) {
	t.Parallel()
	o := notifytest.Options("en")
	o.PrometheusURL = "https://vm.example.org/vmui/?g0.expr={query}&g0.end={to}"
	m := notify.NewMessage(notifytest.KVLongerOutputs(), o)
	u, err := url.Parse(m.Links.Prometheus)
	require.NoError(t, err)
	require.Equal(t, "vm.example.org", u.Host)
	require.Equal(t, m.Queries[0].PromQL, u.Query().Get("g0.expr"))
	require.Equal(t, strconv.FormatInt(notifytest.Now().UnixMilli(), 10), u.Query().Get("g0.end"))
	require.Equal(t, m.Links.Prometheus, m.Queries[0].URL)
}

func TestNewAlertsAreNamed(t *testing.T) {
	t.Parallel()
	r := notifytest.KVLongerOutputs()
	o := notifytest.Options("en")
	require.NotContains(t, notify.NewMessage(r, o).AlertsText, "new", "all are, at first")
	before := r
	before.Incident.Alerts = r.Incident.Alerts[:1]
	o.Previous = &before
	require.Equal(t, "3 alerts fire, 2 of them new (VLLMPreempting, VLLMHighTTFT): VLLMQueueGrowing, VLLMPreempting, VLLMHighTTFT",
		notify.NewMessage(r, o).AlertsText)
	o.Language = "ko"
	require.Contains(t, notify.NewMessage(r, o).AlertsText, "알림 3건 발생 중, 신규 2건(VLLMPreempting, VLLMHighTTFT)")
	o.Previous = &r
	require.NotContains(t, notify.NewMessage(r, o).AlertsText, "신규")
}

func TestNote(t *testing.T) {
	t.Parallel()
	m := notify.NewNote("i1", "ko", "U1", "silenced\nfor 4 h", strings.Repeat("x", 5000))
	require.Equal(t, notify.KindNote, m.Kind)
	require.Equal(t, "silenced for 4 h", m.Note.Lines[0])
	require.LessOrEqual(t, len(m.Note.Lines[1]), 1000)
	require.Equal(t, notify.KindChange, m.As(notify.KindChange).Kind)
}

func TestSparkline(t *testing.T) {
	t.Parallel()
	p := func(vs ...float64) []*float64 {
		out := make([]*float64, len(vs))
		for i := range vs {
			out[i] = &vs[i]
		}
		return out
	}
	require.Equal(t, "▁▅█", notify.Sparkline(p(0, 5, 10), 3))
	require.Equal(t, "▁█", notify.Sparkline(p(0, 1, 10, 2), 2), "peaks survive")
	require.Equal(t, "▁▁", notify.Sparkline(p(7, 7), 5), "flat is low")
	require.Equal(t, "▁ █", notify.Sparkline([]*float64{p(1)[0], nil, p(2)[0]}, 3), "holes stay holes")
	require.Empty(t, notify.Sparkline(nil, 5))
	require.Equal(t, "▁█", notify.Sparkline(p(-1.7e308, 1.7e308), 2), "no overflow")
}

func FuzzNewMessage(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(notifytest.HostileText))
	f.Add([]byte(strings.Repeat("\xff\x07<!here>", 200)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := notifytest.Fuzzed(data)
		o := notifytest.Options("ko")
		previous := notifytest.KVLongerOutputs()
		if len(data)%2 == 0 {
			o.Previous = &previous
		}
		m := notify.NewMessage(r, o)
		require.NotEmpty(t, m.Headline)
		b, err := json.Marshal(m.As(notify.KindDetails))
		require.NoError(t, err)
		require.True(t, utf8.Valid(b))
		for _, s := range []string{m.Headline, m.Lead, m.Summary, m.AlertsText, m.Where} {
			require.NotContains(t, s, "\n")
			require.False(t, strings.ContainsFunc(s, unicode.IsControl), "%q", s)
		}
	})
}

func BenchmarkMessage(b *testing.B) {
	for _, name := range []string{"kv-longer-outputs", "huge-fleet"} {
		b.Run(name, func(b *testing.B) {
			c := notifytest.Named(name, "ko")
			notify.NewMessage(c.Report, c.Options) // Catalogues and knowledge are read once in a process.
			b.ReportAllocs()
			for b.Loop() {
				notify.NewMessage(c.Report, c.Options)
			}
		})
	}
}
