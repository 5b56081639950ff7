package web_test

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify/notifytest"
	"vllm-triage/triage"
)

// hostile values are what a model name, a label or a comment can hold.
var hostile = []string{
	`<script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`,
	`' autofocus onfocus=alert(1) x='`,
	`</title></textarea></select></style><svg onload=alert(1)>`,
	`javascript:alert(1)`,
	"\u202Eevil\u202C\u2066x\u2069\u200B",
	"line\nbreak\x00\x1b[31m",
	`{{.CSRF}}{{template "content"}}`,
	`<!-- `,
	`]]>`,
	strings.Repeat("W", 5000),
	"\xff\xfe",
}

// poisoned puts a value wherever a view takes text from outside.
func poisoned(bad string) web.IncidentView {
	c := notifytest.Named("kv-longer-outputs", "en")
	r := c.Report
	r.Incident.Scope = triage.Scope{Model: bad, Namespace: bad, Cluster: bad}
	r.Incident.RunbookURL, r.Incident.ExternalURL = bad, bad
	r.VLLM.Text, r.Knowledge = bad, bad
	for i := range r.Incident.Alerts {
		a := &r.Incident.Alerts[i]
		a.Name, a.GeneratorURL = bad, bad
		a.Labels = map[string]string{"severity": bad, "pod": bad, bad: bad}
		a.Annotations = map[string]string{"summary": bad, "runbook_url": bad}
	}
	for i := range r.Bottlenecks[0].Evidence {
		e := &r.Bottlenecks[0].Evidence[i]
		e.Text, e.Query = triage.Text{Text: bad}, "up # "+bad[:min(len(bad), 200)] // A longer one gets no link.
	}
	r.Bottlenecks[0].Actions[0] = triage.Action{Text: triage.Text{Text: bad}, Option: bad, Cost: triage.Text{Text: bad}}
	r.Bottlenecks = append(r.Bottlenecks, triage.Hypothesis{ID: "x", Title: bad, Probability: 0.01})
	r.RuledOut = []triage.RuledOut{{ID: "x", Title: bad, Why: bad}}
	r.Missing = []triage.Missing{{Signal: "x", State: triage.Failed, Why: bad}}
	r.QueryLog = []triage.QueryRecord{{ID: "x", Query: "up", Outcome: bad, Error: bad}}
	r.Notes = []triage.Text{{Text: bad}}
	v := incident(c, "en")
	v.Report = r
	v.Site.User, v.Site.Version = bad, bad
	v.Feedback = []web.Feedback{{By: bad, At: notifytest.Now(), Opinion: bad, Cause: "x", Comment: bad}}
	v.Steps = []web.StepRecord{{Page: "kv_cache_exhaustion", Step: "shed-load", State: bad, By: bad, Comment: bad}}
	v.Seen = []web.Seen{{IncidentID: "x", Model: bad, Page: "kv_cache_exhaustion", Step: "shed-load", State: bad, By: bad, Comment: bad}}
	v.Checks = []web.Recheck{{At: notifytest.Now(), By: bad, Error: bad}}
	v.Posted = []web.Posted{{Channel: bad, URL: bad}}
	return v
}

// shape is a page without its texts and values: what a value from outside must not change.
func shape(all []*element) []string {
	out := make([]string, 0, len(all))
	for _, e := range all {
		line := e.name
		for _, name := range []string{"class", "id", "name", "method", "type", "role", "scope"} {
			if v, ok := e.attr[name]; ok {
				line += " " + name + "=" + v
			}
		}
		out = append(out, line)
	}
	return out
}

func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	calm := shape(parse(t, incidentText(t, poisoned("calm"))))
	require.Greater(t, len(calm), 300)
	for i, bad := range hostile {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			page := incidentText(t, poisoned(bad))
			all := parse(t, page)
			require.Empty(t, cmp.Diff(calm, shape(all)))
			checkPolicy(t, all)
			checkReferences(t, all)
			for _, r := range "\u202E\u202C\u2066\u2069\u200B\x00\x1b" {
				require.NotContains(t, page, string(r))
			}
			require.NotContains(t, page, strings.Repeat("W", 2500), "texts are cut")
		})
	}
}

func TestHostileRunbookListAndError(t *testing.T) {
	t.Parallel()
	write := map[string]func(bad string) func(w io.Writer) error{
		"runbook": func(bad string) func(w io.Writer) error {
			v := poisoned(bad)
			b := book(t, "en", "kv_cache_exhaustion", notifytest.Case{Report: v.Report})
			b.Steps, b.Seen, b.Checks, b.Site = v.Steps, v.Seen, v.Checks, v.Site
			return func(w io.Writer) error { return web.Runbook(w, b) }
		},
		"list": func(bad string) func(w io.Writer) error {
			v := web.ListView{Site: site("en"), Models: []string{bad}, Model: bad, Status: "firing", Older: bad, Total: 1, WebhookURL: bad}
			v.Rows = []web.ListRow{{
				ID: "x", Status: bad, StartedAt: notifytest.Now(), Model: bad, Namespace: bad, Verdict: triage.CauseFound, Bottleneck: bad,
				Trigger: bad, Alerts: 1,
			}}
			return func(w io.Writer) error { return web.List(w, v) }
		},
		"error": func(bad string) func(w io.Writer) error {
			v := web.ErrorView{Site: site("en"), Status: 404, Thing: bad, Reason: bad, Next: bad, RequestID: bad}
			return func(w io.Writer) error { return web.Error(w, v) }
		},
	}
	for name, page := range write {
		calm := shape(parse(t, text(t, page("calm"))))
		for _, bad := range hostile {
			all := parse(t, text(t, page(bad)))
			require.Empty(t, cmp.Diff(calm, shape(all)), "%s %q", name, bad)
			checkPolicy(t, all)
		}
	}
}

func TestOnlyHTTPLinks(t *testing.T) {
	t.Parallel()
	for address, linked := range map[string]bool{
		"https://runbooks.example.org/a?b=c&d=\"e\"":       true,
		"http://vm:8190/graph?g0.expr=up&g0.tab=1":         true,
		"javascript:alert(1)":                              false,
		"JaVaScRiPt:alert(1)":                              false,
		"\tjavascript:alert(1)":                            false,
		"java\nscript:alert(1)":                            false,
		"data:text/html,<script>alert(1)</script>":         false,
		"vbscript:x":                                       false,
		"//evil.example/":                                  false,
		"/incidents":                                       false,
		"https://":                                         false,
		"https://user:secret@example.org/":                 false,
		"ftp://example.org/":                               false,
		"https://example.org/" + strings.Repeat("a", 5000): false,
	} {
		v := web.IncidentView{Site: site("en"), Report: notifytest.KVLongerOutputs(), Options: notifytest.Options("en")}
		v.Report.Incident.RunbookURL = ""
		v.Report.Incident.Alerts = v.Report.Incident.Alerts[:1]
		v.Report.Incident.Alerts[0].GeneratorURL = address
		v.Report.Incident.Alerts[0].Annotations = map[string]string{"runbook_url": address}
		page := incidentText(t, v)
		alerts := between(t, page, `<h2 id="alerts">`, "</section>")
		require.Equal(t, map[bool]int{true: 2, false: 0}[linked], strings.Count(alerts, "<a "), address)
		require.NotContains(t, strings.ToLower(page), "script:alert", address)
		require.NotContains(t, page, "secret@")
	}
}

func TestManyAlertsAreCounted(t *testing.T) {
	t.Parallel()
	v := web.IncidentView{Site: site("en"), Report: notifytest.KVLongerOutputs(), Options: notifytest.Options("en")}
	one := v.Report.Incident.Alerts[0]
	one.Labels = map[string]string{"severity": "warning"}
	for i := range 200 {
		one.Labels[fmt.Sprintf("label_%03d", i)] = strings.Repeat("v", 1000)
	}
	v.Report.Incident.Alerts = nil
	for i := range 10_000 {
		a := one
		a.Fingerprint = strconv.Itoa(i)
		v.Report.Incident.Alerts = append(v.Report.Incident.Alerts, a)
	}
	v.Report.Incident.Truncated = 5
	page := incidentText(t, v)
	alerts := between(t, page, `<h2 id="alerts">`, "</section>")
	require.Equal(t, 100, strings.Count(alerts, "</time>"))
	require.Contains(t, alerts, `<p class="meta">and 9,905 more</p>`)
	require.Equal(t, 100*30, strings.Count(alerts, "<code>"))
	require.Equal(t, 100, strings.Count(alerts, "<li>and 170 more</li>"))
	require.Less(t, len(page), 1<<20)
}

func TestHugeFleetIsBounded(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("huge-fleet", "en")
	start := time.Now()
	page := incidentText(t, web.IncidentView{Site: site("en"), Report: c.Report, Options: c.Options})
	require.Less(t, time.Since(start), 5*time.Second)
	require.Less(t, len(page), 1<<20)
	require.Contains(t, page, "<li><bdi>vllm-demo-0 (10.42.0.0:8000)</bdi></li>")
	require.Contains(t, page, "<li>and 1,950 more</li>")
}

func FuzzIncident(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x04evil\xff\x02<a\x01\x02\x03\x04"))
	f.Add([]byte(strings.Repeat("\xff\x07<script>", 40)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := notifytest.Fuzzed(data)
		v := web.IncidentView{Site: site("ko"), Report: r, Options: notifytest.Options("ko")}
		all := parse(t, incidentText(t, v))
		checkPolicy(t, all)
		checkReferences(t, all)
	})
}
