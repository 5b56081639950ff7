package web_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify/notifytest"
	"vllm-triage/triage"
	"vllm-triage/triage/kb/runbook"
)

// languages are the ones that pages are written in.
var languages = []string{"en", "ko"}

func site(language string) web.Site {
	return web.Site{
		Language: language, Location: notifytest.Seoul(), Now: notifytest.Now().Add(30 * time.Second),
		CSRF: "token-1", User: "mina", Version: "1.2.3",
	}
}

// incident is the page of a ready-made report with everything that people can have added to it.
func incident(c notifytest.Case, language string) web.IncidentView {
	at := notifytest.Now()
	if alerts := c.Report.Incident.Alerts; len(alerts) > 0 {
		alerts[0].GeneratorURL = "http://prometheus:9090/graph?g0.expr=up&g0.tab=1"
		alerts[0].Annotations = map[string]string{
			"summary": "61 requests wait for demo", "runbook_url": "https://runbooks.example.org/vllm/queue",
		}
		c.Report.QueryLog = append(c.Report.QueryLog,
			triage.QueryRecord{ID: "ttft", Query: "histogram_quantile(0.95, x)", Outcome: "error", DurationMS: 10_000, Error: "context deadline exceeded"},
			triage.QueryRecord{ID: "swapped", Query: "sum(vllm:num_requests_swapped)", Outcome: "empty", DurationMS: 2},
			triage.QueryRecord{ID: "itl", Query: "sum(rate(x[1m]))", Outcome: "partial", DurationMS: 31})
	}
	return web.IncidentView{
		Site: site(language), Report: c.Report, Options: c.Options,
		Feedback: []web.Feedback{
			{By: "jun", At: at.Add(time.Minute), Opinion: web.OpinionRight},
			{By: "mina", At: at.Add(2 * time.Minute), Opinion: web.OpinionWrong, Cause: "decode_bound", Comment: "ITL grew first"},
			{By: "sora", At: at.Add(3 * time.Minute), Opinion: web.OpinionNotQuite, Cause: "other"},
		},
		Steps: steps(),
		Checks: []web.Recheck{
			web.NewRecheck(c.Report, later(c.Report), "mina"),
			{At: at.Add(5 * time.Minute), Error: "Prometheus did not answer within 10 s"},
		},
		History: []web.Revision{
			{At: at.Add(-time.Minute), Verdict: triage.Inconclusive},
			{At: at.Add(-30 * time.Second), Verdict: triage.CauseFound, Bottleneck: "prefill_bound", Trigger: "longer_prompts", Probability: 0.6},
		},
		Seen:   seen(),
		Posted: []web.Posted{{Channel: "#llm-oncall", URL: "https://example.slack.com/archives/C1/p1"}, {Channel: "#llm-dev"}},
	}
}

func steps() []web.StepRecord {
	at := notifytest.Now()
	return []web.StepRecord{
		{Page: "kv_cache_exhaustion", Step: "find-driver", State: web.StateDone, By: "mina", At: at.Add(time.Minute)},
		{Page: "kv_cache_exhaustion", Step: "shed-load", State: web.StateHelped, By: "jun", At: at.Add(2 * time.Minute), Comment: "2 req/s for the batch client"},
		{Page: "kv_cache_exhaustion", Step: "cap-output", State: web.StateOpen, By: "jun", At: at.Add(3 * time.Minute)},
		{Page: "kv_cache_exhaustion", State: web.StateHelped, By: "jun", At: at.Add(9 * time.Minute)},
	}
}

func seen() []web.Seen {
	at := notifytest.Now().AddDate(0, 0, -5)
	return []web.Seen{
		{IncidentID: "77ab", At: at, Model: "demo", Page: "kv_cache_exhaustion", Step: "cap-output", State: web.StateHelped, By: "jun", Comment: "max_tokens was gone"},
		{IncidentID: "12cd", At: at, Model: "demo", Page: "kv_cache_exhaustion", Step: "enlarge-pool", State: web.StateDidNotHelp, By: "mina"},
	}
}

// later is the same report two minutes on, with half of the load and the queue gone.
func later(r triage.Report) triage.Report {
	r.GeneratedAt = r.GeneratedAt.Add(2 * time.Minute)
	half := func(hs []triage.Hypothesis) []triage.Hypothesis {
		out := slices.Clone(hs)
		for i, h := range out {
			out[i].Evidence = slices.Clone(h.Evidence)
			for j, e := range out[i].Evidence {
				if e.During != nil {
					v := *e.During / 2
					out[i].Evidence[j].During = &v
				}
			}
		}
		return out
	}
	r.Bottlenecks, r.Triggers = half(r.Bottlenecks), half(r.Triggers)
	return r
}

func list(language string) web.ListView {
	at := notifytest.Now()
	return web.ListView{
		Site: site(language), Firing: 3, Total: 1204, Older: "2026-11-29T01:00:00Z,77ab",
		Models: []string{"demo", "meta-llama/Llama-3.1-70B-Instruct"},
		Rows: []web.ListRow{
			{
				ID: "demo-9f3a1c", Status: triage.StatusFiring, StartedAt: at.Add(-3 * time.Minute), Model: "demo", Namespace: "llm",
				Verdict: triage.CauseFound, Bottleneck: "kv_cache_exhaustion", Trigger: "longer_outputs", Probability: 0.93, Alerts: 3,
			},
			{
				ID: "b", Status: triage.StatusFiring, StartedAt: at.Add(-2 * time.Hour), Model: "/models/org/Llama-3.1-70B-Instruct",
				Verdict: triage.Inconclusive, Bottleneck: "decode_bound", Trigger: "none", Probability: 0.3, Alerts: 1, Flaps: 2, Repeats: 7,
			},
			{
				ID: "c", Status: triage.StatusResolved, StartedAt: at.Add(-26 * time.Hour), EndedAt: at.Add(-25 * time.Hour), Model: "demo",
				Verdict: triage.NoBottleneck, Bottleneck: "low_traffic", Trigger: "none", Probability: 0.7, Alerts: 1, Shadow: true,
			},
			{ID: "d", Status: triage.StatusFiring, StartedAt: at, Namespace: "llm", Alerts: 12},
			{ID: "e", Status: triage.StatusAdhoc, StartedAt: at.Add(-time.Hour), Model: "demo", Verdict: triage.CauseFound, Bottleneck: "prefill_bound", Trigger: "none", Probability: 0.5},
		},
	}
}

func book(t testing.TB, language, id string, c notifytest.Case) web.RunbookView {
	t.Helper()
	p, ok := runbook.Get(language, id)
	require.True(t, ok, id)
	check := web.NewRecheck(c.Report, later(c.Report), "mina")
	check.Page = id
	atStep := check
	atStep.Step = p.Steps[0].ID
	return web.RunbookView{
		Site: site(language), Page: p, Report: &c.Report, Steps: steps(), Seen: seen(), Checks: []web.Recheck{check, atStep},
	}
}

// sample is a page by name.
type sample struct {
	name  string
	write func(w io.Writer) error
	page  string
}

// samples are all pages that there are, in all their forms. They are rendered once for all tests.
func samples(t testing.TB) []sample {
	t.Helper()
	rendering.Do(func() {
		rendered = forms(t)
		for i, s := range rendered {
			rendered[i].page = text(t, s.write)
		}
	})
	require.NotEmpty(t, rendered)
	return rendered
}

var (
	rendering sync.Once
	rendered  []sample
)

func forms(t testing.TB) []sample {
	t.Helper()
	var out []sample
	add := func(name string, write func(w io.Writer) error) { out = append(out, sample{name: name, write: write}) }
	for _, language := range languages {
		for _, c := range notifytest.Cases(language) {
			v := incident(c, language)
			add("incident-"+c.Name+"."+language, func(w io.Writer) error { return web.Incident(w, v) })
			if c.Name != "kv-longer-outputs" && c.Name != "resolved" {
				continue
			}
			bare := web.IncidentView{Site: site(language), Report: c.Report, Options: c.Options}
			bare.Site.CSRF = ""
			add("incident-"+c.Name+"-read-only."+language, func(w io.Writer) error { return web.Incident(w, bare) })
		}
		kv := notifytest.Named("kv-longer-outputs", language)
		waiting := incident(kv, language)
		waiting.Report = triage.Report{Incident: waiting.Report.Incident}
		add("incident-untriaged."+language, func(w io.Writer) error { return web.Incident(w, waiting) })
		add("list."+language, func(w io.Writer) error { return web.List(w, list(language)) })
		filtered := list(language)
		filtered.Rows, filtered.Older, filtered.Status, filtered.Model, filtered.Cursor = nil, "", "firing", "gone", "x"
		add("list-no-match."+language, func(w io.Writer) error { return web.List(w, filtered) })
		empty := web.ListView{Site: site(language), WebhookURL: "https://triage.example.org/webhook/alertmanager"}
		add("list-empty."+language, func(w io.Writer) error { return web.List(w, empty) })
		for _, id := range runbook.IDs() {
			v := book(t, language, id, kv)
			add("runbook-"+id+"-incident."+language, func(w io.Writer) error { return web.Runbook(w, v) })
			alone := web.RunbookView{Site: v.Site, Page: v.Page}
			add("runbook-"+id+"."+language, func(w io.Writer) error { return web.Runbook(w, alone) })
		}
		for _, status := range []int{400, 401, 403, 404, 410, 418, 429, 500, 502, 503, 599} {
			v := web.ErrorView{Site: site(language), Status: status, Thing: "incident 9f3a1c", RequestID: "r-7"}
			add(fmt.Sprintf("error-%d.%s", status, language), func(w io.Writer) error { return web.Error(w, v) })
		}
	}
	return out
}

func text(t testing.TB, write func(w io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	return b.String()
}

func incidentText(t testing.TB, v web.IncidentView) string {
	t.Helper()
	return text(t, func(w io.Writer) error { return web.Incident(w, v) })
}

// between is what stands between two texts.
func between(t testing.TB, s, from, to string) string {
	t.Helper()
	_, s, ok := strings.Cut(s, from)
	require.True(t, ok, from)
	s, _, ok = strings.Cut(s, to)
	require.True(t, ok, to)
	return s
}
