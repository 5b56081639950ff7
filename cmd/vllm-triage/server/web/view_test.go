package web_test

import (
	"errors"
	"html"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify/notifytest"
	"vllm-triage/triage"
	"vllm-triage/triage/kb/runbook"
)

func kv() notifytest.Case { return notifytest.Named("kv-longer-outputs", "en") }

func TestIncidentTellsTheVerdictWithItsNumber(t *testing.T) {
	t.Parallel()
	page := html.UnescapeString(incidentText(t, incident(kv(), "en")))
	require.Contains(t, page, `<h1 id="verdict">KV cache full</h1>
<p class="sure"><span class="percent">93 %</span> <span class="level level-high">high confidence</span></p>`)
	require.Contains(t, page, `<h2>Outputs got longer</h2>
<p class="sure"><span class="percent">90 %</span>`)
	require.Contains(t, page, "<dt>Since</dt><dd><bdi>14:02 KST ± 20 s</bdi></dd>")
	require.Contains(t, page, `<code class="option">--max-num-seqs</code>`)
	require.Contains(t, page, `<span class="weight">+2.5</span>`)
	require.Contains(t, page, `<span class="mark">against</span> <span class="weight">−0.4</span>`)
	require.Contains(t, page, `<a class="button" href="https://runbooks.example.org/vllm/queue" rel="noopener noreferrer">Alert's runbook</a>`)
	require.Contains(t, page, `<img src="/incidents/demo-9f3a1c/chart.png" alt="`)
	require.Contains(t, page, `<a href="/incidents/demo-9f3a1c.json">`)
	require.Contains(t, page, "6 steps, 2 done", "a step that was undone does not count")
	require.Contains(t, page, "<bdi>ITL grew first</bdi>")
	require.NotContains(t, page, "as of", "a young report needs no age")
}

func TestIncidentSaysHowOldItIs(t *testing.T) {
	t.Parallel()
	v := incident(kv(), "en")
	v.Site.Now = notifytest.Now().Add(2 * time.Minute)
	require.Contains(t, incidentText(t, v), "firing for 3 min · as of 14:09 KST")
}

func TestResolvedIncidentShowsThenAndNow(t *testing.T) {
	t.Parallel()
	page := incidentText(t, incident(notifytest.Named("resolved", "en"), "en"))
	require.Contains(t, page, `<span class="tag">Resolved</span>`)
	require.Contains(t, page, "What bound")
	require.Contains(t, page, `<h1 id="verdict">KV cache full</h1>`)
	require.Contains(t, page, `<span class="percent">93 %</span>`, "the number is that of the report that found the cause")
	require.Contains(t, page, `<h2 id="then-now">Then and now</h2>`)
	require.Contains(t, page, `<h2 id="next">What was advised</h2>`)
	require.NotContains(t, page, "What binds now</p>")
}

func TestInconclusiveIncidentSaysWhatBlocks(t *testing.T) {
	t.Parallel()
	page := incidentText(t, incident(notifytest.Named("inconclusive", "en"), "en"))
	require.Contains(t, page, `<h1 id="verdict">Inconclusive</h1>`)
	require.Contains(t, page, "KV cache and prefill fit equally well")
	require.Contains(t, page, "Query that decides")
	require.Equal(t, 3, strings.Count(page, `<p class="kicker">Candidate</p>`))
	require.Contains(t, page, `href="/runbooks/unknown?incident=demo-9f3a1c"`)
}

func TestUntriagedIncident(t *testing.T) {
	t.Parallel()
	v := web.IncidentView{Site: site("en"), Report: triage.Report{Incident: kv().Report.Incident}}
	page := incidentText(t, v)
	require.Contains(t, page, `<meta http-equiv="refresh" content="5">`)
	require.Contains(t, page, "Not triaged yet")
	require.Contains(t, page, "<bdi>VLLMPreempting</bdi>")
	require.NotContains(t, page, "<form")
	v.Report.Incident.Status = triage.StatusResolved
	page = incidentText(t, v)
	require.NotContains(t, page, "refresh")
	require.Contains(t, page, "The alert resolved before it was triaged.")
}

func TestAddressesOfAPrefixedSite(t *testing.T) {
	t.Parallel()
	v := incident(kv(), "ko")
	v.Site.Prefix, v.Site.Grant = "/triage", "expires=1764400000&sig=a%2Bb"
	v.Report.Incident.ID = "a/b c"
	page := html.UnescapeString(incidentText(t, v))
	for _, want := range []string{
		`src="/triage/incidents/a%2Fb%20c/chart.png?expires=1764400000&lang=ko&sig=a%2Bb"`,
		`href="/triage/incidents/a%2Fb%20c.json?expires=1764400000&lang=ko&sig=a%2Bb"`,
		`href="/triage/runbooks/kv_cache_exhaustion?expires=1764400000&incident=a%2Fb+c&lang=ko&sig=a%2Bb"`,
		`href="/triage/incidents/a%2Fb%20c?expires=1764400000&sig=a%2Bb" hreflang="en"`,
		`action="/triage/incidents/a%2Fb%20c/feedback?expires=1764400000&lang=ko&sig=a%2Bb"`,
		`href="/triage/incidents?lang=ko"`,
		`href="/triage/incidents/77ab?lang=ko"`, // Another incident: the link that was signed does not open it.
		`href="/triage/assets/style.css?v=`,
	} {
		require.Contains(t, page, want)
	}
	require.NotRegexp(t, `(href|src|action)="/(incidents|runbooks|assets)`, page)

	v.Site.Default = "ko"
	page = html.UnescapeString(incidentText(t, v))
	require.Contains(t, page, `href="/triage/incidents"`)
	require.Contains(t, page, `lang=en&sig=a%2Bb" hreflang="en"`)
}

func TestList(t *testing.T) {
	t.Parallel()
	v := list("en")
	v.Status, v.Cursor = "firing", "now"
	page := html.UnescapeString(text(t, func(w io.Writer) error { return web.List(w, v) }))
	for _, want := range []string{
		"3 fire · 1,204 kept",
		`<a href="/incidents/demo-9f3a1c">`,
		`<strong>KV cache full</strong> <span class="i-trigger">Outputs got longer</span>`,
		`<span class="level level-high">high confidence</span>`,
		`<span class="meta">for 3 min 30 s</span>`,
		"1 alert · came back 2 times · repeated 7 times",
		`<bdi title="/models/org/Llama-3.1-70B-Instruct">…/org/Llama-3.1-70B-Instruct</bdi>`,
		"<strong>Inconclusive</strong>",
		`<span class="meta">lasted 1 h</span>`,
		"Nov 28 12:09 KST",
		"<strong>Not triaged</strong>",
		`href="/incidents?before=2026-11-29T01%3A00%3A00Z%2C77ab&status=firing" rel="next">Older</a>`,
		`href="/incidents?status=firing">Newest</a>`,
		`<a href="/incidents?status=firing" aria-current="true">Firing</a>`,
		`<input type="hidden" name="status" value="firing">`,
	} {
		require.Contains(t, page, want)
	}
	v.Model = "gone"
	require.Contains(t, text(t, func(w io.Writer) error { return web.List(w, v) }), `<option value="gone" selected>gone</option>`)
}

func TestEmptyListTellsHowToSendAnAlert(t *testing.T) {
	t.Parallel()
	v := web.ListView{Site: site("en"), WebhookURL: "https://triage.example.org/webhook/alertmanager"}
	page := html.UnescapeString(text(t, func(w io.Writer) error { return web.List(w, v) }))
	require.Contains(t, page, "- url: https://triage.example.org/webhook/alertmanager\n")
	body := between(t, page, "-d '", "'</code>")
	p, err := triage.ParsePayload([]byte(body))
	require.NoError(t, err, "the example is taken by the webhook")
	require.Equal(t, "VLLMHighTTFT", p.Alerts[0].Labels["alertname"])
	require.True(t, p.Alerts[0].StartsAt.Before(v.Site.Now))
}

func TestRunbookWithAnIncident(t *testing.T) {
	t.Parallel()
	page := text(t, func(w io.Writer) error {
		return web.Runbook(w, book(t, "en", "kv_cache_exhaustion", kv()))
	})
	for _, want := range []string{
		`<a href="/incidents/demo-9f3a1c">Back to the incident</a>`,
		"demo (llm), since 14:02 KST: KV usage is 98 %, 61 wait.",
		`{model_name=&#34;demo&#34;,namespace=&#34;llm&#34;}`,
		`<a href="#steps">2 of 6 steps done</a>`,
		"Seen before",
		`<input type="hidden" name="page" value="kv_cache_exhaustion"><input type="hidden" name="step" value="cap-output">`,
		`<button type="submit" name="state" value="done">Mark as done`,
		`<button type="submit" name="state" value="open" class="quiet">Undo`,
		`value="helped" class="quiet" aria-pressed="true">`,
		`action="/incidents/demo-9f3a1c/outcome"`,
		`action="/incidents/demo-9f3a1c/recheck"`,
		`Load: 50 % of the incident&#39;s. Judge the comparison with care.`,
		`<bdi>2 req/s for the batch client</bdi>`,
	} {
		require.Contains(t, page, want)
	}
}

func TestRunbookOfAnIncidentThatIsOver(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("resolved", "en")
	v := book(t, "en", "kv_cache_exhaustion", c)
	v.Previous = c.Options.Previous
	page := text(t, func(w io.Writer) error { return web.Runbook(w, v) })
	require.Contains(t, page, "Resolved: KV cache full")
	require.Contains(t, page, "KV usage is 98 %, 61 wait.", "the numbers are the incident's, not those after it")
}

func TestRunbookAlone(t *testing.T) {
	t.Parallel()
	p, ok := runbook.Get("en", "kv_cache_exhaustion")
	require.True(t, ok)
	page := text(t, func(w io.Writer) error { return web.Runbook(w, web.RunbookView{Site: site("en"), Page: p}) })
	require.NotContains(t, page, "<form")
	require.NotContains(t, page, "wait.")
	require.Contains(t, page, `{model_name=&#34;MODEL&#34;}`)
	require.Contains(t, page, `href="/runbooks/concurrency_cap"`)
	require.Contains(t, page, `hreflang="ko"`)
}

func TestErrorNamesThingReasonAndNextStep(t *testing.T) {
	t.Parallel()
	for status, title := range map[int]string{
		401: "Who are you?", 403: "Not allowed", 404: "Not found", 410: "This link has expired", 429: "Too many requests",
		500: "Something broke", 503: "Not available now", 502: "Not available now", 418: "The request was not understood",
		599: "Something broke",
	} {
		page := text(t, func(w io.Writer) error {
			return web.Error(w, web.ErrorView{Site: site("en"), Status: status, Thing: "incident 9f3a1c", RequestID: "r-7"})
		})
		require.Contains(t, page, `<h1 id="title">`+title+"</h1>")
		require.Contains(t, page, "<bdi>incident 9f3a1c</bdi>")
		require.Contains(t, page, "<strong>Next:</strong> ")
		require.Contains(t, page, "<code>r-7</code>")
	}
	page := text(t, func(w io.Writer) error {
		return web.Error(w, web.ErrorView{Status: 404, Reason: "It was pruned.", Next: "Look elsewhere."})
	})
	require.Contains(t, page, "<p>It was pruned.</p>")
	require.Contains(t, page, "Look elsewhere.")
}

func TestNewRecheck(t *testing.T) {
	t.Parallel()
	before := kv().Report
	c := web.NewRecheck(before, later(before), "mina")
	require.Equal(t, later(before).GeneratedAt, c.At)
	require.Equal(t, "kv_cache_exhaustion", c.Bottleneck)
	require.NotNil(t, c.Load)
	require.InDelta(t, 0.5, *c.Load, 1e-9)
	require.Len(t, c.Readings, 7, "five of the bottleneck and two of the trigger")
	require.Equal(t, "kv_headroom", c.Readings[0].Signal)
	require.InDelta(t, 0.6, *c.Readings[0].During, 1e-9)
	require.InDelta(t, 0.3, *c.Readings[0].Now, 1e-9)

	c = web.NewRecheck(before, triage.Report{Verdict: triage.Inconclusive}, "")
	require.Nil(t, c.Load)
	require.Nil(t, c.Readings[0].Now, "what was not read is not 0")
	c = web.NewRecheck(triage.Report{}, triage.Report{}, "")
	require.Empty(t, c.Readings)
	require.Nil(t, c.Load)
}

func TestNewFilling(t *testing.T) {
	t.Parallel()
	r := kv().Report
	r.Bottlenecks[0].Actions[0].Args = map[string]triage.Arg{"pool_tokens": {Number: new(4800.0), Unit: triage.Tokens}}
	in := web.NewFilling(r, "en", notifytest.Seoul())
	require.Equal(t, "98 %", in.Numbers["kv_usage"]["during"])
	require.Equal(t, "5 %", in.Numbers["kv_usage"]["before"])
	require.Equal(t, "4.8k tok", in.Numbers["pool_tokens"]["during"])
	require.Equal(t, "demo (llm)", in.Scope)
	require.Equal(t, "14:02 KST", in.Since)
	require.Equal(t, `model_name="demo",namespace="llm"`, in.Matchers)

	r.Incident.Scope = triage.Scope{Model: "a\"b}\n\u202e\\", Pod: `x"} or up{`}
	in = web.NewFilling(r, "en", nil)
	p, ok := runbook.Get("en", "kv_cache_exhaustion")
	require.True(t, ok)
	_, err := p.Fill(in)
	require.NoError(t, err, "any label value makes valid matchers")

	// The engine reads the fullest replica where runbooks speak of the pool; panels have the level before.
	r = triage.Report{Incident: kv().Report.Incident, Panels: []triage.Panel{{
		Signal: "kv_usage_max", Unit: triage.Ratio, Start: kv().Report.Incident.Baseline.Start, StepMS: 60_000,
		Values: []*float64{new(0.2), new(0.4), new(0.3), nil, new(math.NaN()), new(0.9)},
	}}}
	r.Incident.Baseline.End = r.Incident.Baseline.Start.Add(4 * time.Minute)
	in = web.NewFilling(r, "en", nil)
	require.Equal(t, map[string]string{"before": "30 %", "during": "90 %"}, in.Numbers["kv_usage"])
}

// full is a connection that is gone.
type full struct{}

var errFull = errors.New("connection reset")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, web.Incident(full{}, incident(kv(), "en")), errFull)
	require.ErrorIs(t, web.List(full{}, list("en")), errFull)
	require.ErrorIs(t, web.Error(full{}, web.ErrorView{Status: 404}), errFull)
}
