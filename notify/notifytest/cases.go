// Package notifytest holds hand-made reports that between them show everything a message can have to say. The tests of
// every notifier render all of them; so does anybody who wants to see a message without an incident.
package notifytest

import (
	"fmt"
	"strings"
	"time"

	"vllm-triage/notify"
	"vllm-triage/triage"
)

// Case is a report and how it is told.
type Case struct {
	Name    string
	Report  triage.Report
	Options notify.Options
}

// Now is the "now" of every report: 14:09 in Seoul.
func Now() time.Time { return time.Date(2026, 11, 29, 5, 9, 30, 0, time.UTC) }

// Seoul is the readers' time zone. It does not depend on the machine's zone files.
func Seoul() *time.Location { return time.FixedZone("KST", 9*3600) }

// Options are the options of an ordinary installation.
func Options(language string) notify.Options {
	return notify.Options{
		Language:       language,
		Location:       Seoul(),
		BaseURL:        "https://triage.example.org",
		PrometheusURL:  "https://prometheus.example.org",
		GrafanaExplore: notify.GrafanaExplore("https://grafana.example.org", "prom-llm"),
	}
}

// Cases returns all cases in one language. The values are fresh: callers may change them.
func Cases(language string) []Case {
	o := Options(language)
	var out []Case
	add := func(name string, r triage.Report, options ...func(*notify.Options)) {
		c := Case{Name: name, Report: r, Options: o}
		for _, f := range options {
			f(&c.Options)
		}
		out = append(out, c)
	}
	previous := func(r triage.Report) func(*notify.Options) {
		return func(o *notify.Options) { o.Previous = &r }
	}

	add("kv-longer-outputs", KVLongerOutputs())
	for _, c := range causes() {
		add(c.name, c.report())
	}
	add("inconclusive", Inconclusive())
	add("healthy", Healthy())
	add("low-traffic", LowTraffic())
	add("resolved", Resolved(), previous(KVLongerOutputs()), func(o *notify.Options) { o.Updates = 4 })
	add("recovered", recovered(), previous(KVLongerOutputs()))
	add("changed", changed(), previous(Inconclusive()), func(o *notify.Options) { o.Updates = 1 })
	add("huge-fleet", HugeFleet())
	add("hostile", Hostile(), func(o *notify.Options) { o.Mention = "S0ONCALL" })
	add("missing-data", MissingData())
	add("late-flapping", KVLongerOutputs(), func(o *notify.Options) {
		o.Late, o.Flaps, o.Updates, o.Mention = 14*time.Minute, 3, 7, "here"
	})
	add("no-baseline", noBaseline())
	add("adhoc", adhoc(), func(o *notify.Options) { o.Shadow = true })
	add("bare", triage.Report{}, func(o *notify.Options) {
		o.BaseURL, o.PrometheusURL, o.GrafanaExplore, o.Location = "", "", "", nil
	})
	return out
}

// Named returns one case by its name; it panics when there is none, which a caller's test would show at once.
func Named(name, language string) Case {
	for _, c := range Cases(language) {
		if c.Name == name {
			return c
		}
	}
	panic("no case " + name)
}

// KVLongerOutputs is an incident with everything in it: outputs grew, the KV cache filled, three replicas suffer.
func KVLongerOutputs() triage.Report {
	onset := Now().Add(-7*time.Minute - 20*time.Second)
	r := base("kv_cache_exhaustion", 0.93, "longer_outputs", 0.90, onset)
	top := &r.Bottlenecks[0]
	top.Evidence = []triage.Evidence{
		row("kv_headroom", 41, 0.6, triage.Requests, true, 2.5, "kv.headroom", "the pool has room for 0.6 more prompts, 41 before",
			`(1 - avg(vllm:kv_cache_usage_perc{model_name="demo"})) * 18432 / 310`),
		row("preemptions", 0, 0.74, triage.PerSecond, true, 2.4, "kv.preempting", "0.74 preemptions a second, none before",
			`sum(rate(vllm:num_preemptions_total{model_name="demo"}[30s]))`),
		row("kv_usage", 0.05, 0.982, triage.Ratio, true, 1.6, "kv.usage", "the cache is 98 % full, 5 % before",
			`avg(vllm:kv_cache_usage_perc{model_name="demo"})`),
		row("waiting", 0, 61, triage.Requests, true, 0.7, "queue.waiting", "61 requests wait, none before",
			`sum(vllm:num_requests_waiting{model_name="demo"})`),
		row("itl", 0.031, 0.034, triage.Seconds, false, -0.4, "itl.flat", "steps are as fast as before",
			`sum(rate(vllm:inter_token_latency_seconds_sum{model_name="demo"}[30s])) / sum(rate(vllm:inter_token_latency_seconds_count{model_name="demo"}[30s]))`),
	}
	top.Actions = []triage.Action{
		action("cap_outputs", "Ask the client for max_tokens of at most 400: outputs grew from 120 tok to 1.6k tok", "", ""),
		action("more_replicas", "Add 4 replicas, or take 57 % of the load away, to bring the queue back to 0", "", "4 more GPUs"),
		action("fewer_seqs", "Lower the cap from 256 to 96 so that running requests fit", "--max-num-seqs", "a longer queue, but no preemption"),
	}
	top.Consequences = []string{"preemptions", "waiting", "ttft"}
	r.Triggers[0].Evidence = []triage.Evidence{
		row("output_length", 121, 1590, triage.Tokens, true, 2.2, "outputs.longer", "requests generate 1.6k tok, 121 tok before (13×)",
			`sum(rate(vllm:request_generation_tokens_sum{model_name="demo"}[30s])) / sum(rate(vllm:request_generation_tokens_count{model_name="demo"}[30s]))`),
		row("arrivals", 2.05, 1.98, triage.RequestsPerSec, true, 0.6, "arrivals.flat", "as many requests arrive as before", ""),
	}
	r.Chain = []triage.ChainLink{
		{ID: "longer_outputs", Kind: "trigger", Title: "Outputs got longer", Since: onset},
		{ID: "kv_cache_exhaustion", Kind: "bottleneck", Title: "KV cache full", Since: onset.Add(40 * time.Second)},
		{ID: "preemptions", Kind: "consequence", Title: "preemptions", Since: onset.Add(50 * time.Second)},
		{ID: "waiting", Kind: "consequence", Title: "waiting requests", Since: onset.Add(55 * time.Second)},
		{ID: "ttft", Kind: "consequence", Title: "mean time to first token", Since: onset.Add(90 * time.Second)},
	}
	r.RunnerUp = text("runner_up.cap", "All running slots taken lost: running fell from 96 to 31 while the queue grew, so slots are free")
	r.Impact.Lines = []triage.Text{
		text("impact.waiting", "61 requests wait; a new one waits about 31 s"),
		text("impact.ttft", "p95 TTFT 6.1 s, 3.0× the alert's threshold of 2 s"),
	}
	r.RuledOut = []triage.RuledOut{
		ruled("concurrency_cap", "running is 31, far below its plateau of 96"),
		ruled("decode_bound", "ITL is 34 ms, 31 ms before"),
		ruled("prefill_bound", "computed prompt tokens fell to 610 tok/s; the plateau here is 5.2k tok/s"),
		ruled("replica_down", "all 3 replicas answered every scrape"),
		ruled("traffic_surge", "2 req/s arrive, 2.1 req/s before"),
	}
	r.NotChecked = []triage.RuledOut{ruled("device_slowdown", "no DCGM metrics in this Prometheus")}
	r.Missing = []triage.Missing{{Signal: "waiting_deferred", State: triage.Absent, Why: "vLLM exports it since 0.20"}}
	r.Incident.Alerts = []triage.Alert{
		alert("VLLMQueueGrowing", "warning", -3*time.Minute),
		alert("VLLMPreempting", "warning", -2*time.Minute-45*time.Second),
		alert("VLLMHighTTFT", "warning", -2*time.Minute-45*time.Second),
	}
	r.Incident.RunbookURL = "https://runbooks.example.org/vllm/queue"
	r.Panels = []triage.Panel{
		panel("waiting", "waiting requests", triage.Requests, "alert", 0, 61),
		panel("kv_usage", "KV cache usage", triage.Ratio, "evidence", 0.05, 0.98),
		panel("preemptions", "preemptions", triage.PerSecond, "evidence", 0, 0.74),
		panel("output_length", "tokens per finished request", triage.Tokens, "trigger", 121, 1590),
	}
	return r
}

// Inconclusive is a report that cannot decide between two causes.
func Inconclusive() triage.Report {
	r := base("kv_cache_exhaustion", 0.37, "none", 0.44, Now().Add(-4*time.Minute))
	r.Verdict = triage.Inconclusive
	r.Bottlenecks = append(r.Bottlenecks,
		hypothesis("prefill_bound", "Prefill-bound", 0.33, row("prompt_tokens", 900, 2600, triage.TokensPerSec, true, 0.8, "", "", "")),
		hypothesis("decode_bound", "Decode-bound", 0.12))
	r.Bottlenecks[0].Evidence = []triage.Evidence{
		row("kv_usage", 0.61, 0.86, triage.Ratio, true, 0.9, "kv.usage", "the cache is 86 % full, 61 % before", `avg(vllm:kv_cache_usage_perc)`),
	}
	r.Inconclusive = &triage.Blocked{
		Text: text("blocked.two_rivals", "KV cache and prefill fit equally well: the prompt length could not be read for the last 4 min"),
		Query: `sum(rate(vllm:prompt_tokens_total{model_name="demo"}[1m])) / ` +
			`sum(rate(vllm:time_to_first_token_seconds_count{model_name="demo"}[1m])) > 0`,
	}
	r.Missing = []triage.Missing{
		{Signal: "first_tokens", State: triage.Stale, Why: "no sample for 4 min"},
		{Signal: "prompt_tokens_computed", State: triage.Failed, Why: "query processing would load too many samples"},
	}
	r.Incident.Alerts = []triage.Alert{alert("VLLMHighTTFT", "warning", -2*time.Minute)}
	return r
}

// Healthy is an alert behind which there is nothing.
func Healthy() triage.Report {
	r := base("healthy", 0.91, "none", 0.95, time.Time{})
	r.Verdict = triage.NoBottleneck
	r.Bottlenecks[0].Evidence = []triage.Evidence{
		row("waiting", 0, 0, triage.Requests, true, 1.5, "queue.empty", "nothing waits", `sum(vllm:num_requests_waiting)`),
		row("kv_usage", 0.22, 0.21, triage.Ratio, true, 1.2, "kv.room", "the cache is 21 % full", `avg(vllm:kv_cache_usage_perc)`),
	}
	r.RuledOut = []triage.RuledOut{
		ruled("kv_cache_exhaustion", "the cache is 21 % full"),
		ruled("concurrency_cap", "nothing waits"),
	}
	r.Incident.Alerts = []triage.Alert{alert("VLLMHighITL", "warning", -time.Minute)}
	return r
}

// LowTraffic is an alert whose quantile stands on a handful of requests.
func LowTraffic() triage.Report {
	r := Healthy()
	r.Bottlenecks[0] = hypothesis("low_traffic", "Low traffic", 0.86,
		row("first_tokens", 0.05, 0.03, triage.RequestsPerSec, true, 2.1, "traffic.few", "4 first tokens in 2 min; a p95 needs 20",
			`sum(increase(vllm:time_to_first_token_seconds_count[2m]))`))
	r.Bottlenecks[0].Actions = []triage.Action{
		action("guard", "Give the rule a floor on traffic: … and sum(rate(vllm:request_success_total[5m])) > 0.2", "", ""),
	}
	return r
}

// Resolved is the end of KVLongerOutputs.
func Resolved() triage.Report {
	r := Healthy()
	r.Incident = KVLongerOutputs().Incident
	r.Incident.Status = triage.StatusResolved
	for i := range r.Incident.Alerts {
		r.Incident.Alerts[i].Status = triage.StatusResolved
		r.Incident.Alerts[i].EndsAt = Now().Add(5*time.Minute + time.Duration(i)*time.Second)
	}
	r.GeneratedAt = Now().Add(5*time.Minute + 20*time.Second)
	r.Panels = []triage.Panel{
		panel("waiting", "waiting requests", triage.Requests, "alert", 61, 0),
		panel("kv_usage", "KV cache usage", triage.Ratio, "evidence", 0.98, 0.07),
		panel("preemptions", "preemptions", triage.PerSecond, "evidence", 0.74, 0),
		panel("output_length", "tokens per finished request", triage.Tokens, "trigger", 1590, 133),
	}
	return r
}

func recovered() triage.Report {
	r := Resolved()
	r.Incident = KVLongerOutputs().Incident
	return r
}

// changed is what comes after Inconclusive once the missing signal is back and a second alert has joined.
func changed() triage.Report {
	r := base("prefill_bound", 0.84, "longer_prompts", 0.71, Now().Add(-4*time.Minute))
	r.Bottlenecks[0].Evidence = []triage.Evidence{
		row("prompt_length", 310, 2900, triage.Tokens, true, 2.4, "prompts.length", "prompts are 2.9k tok, 310 tok before", `x`),
		row("kv_usage", 0.61, 0.79, triage.Ratio, true, 0.3, "kv.usage", "the cache is 79 % full", ""),
	}
	r.Bottlenecks = append(r.Bottlenecks, hypothesis("kv_cache_exhaustion", "KV cache full", 0.34,
		row("kv_usage", 0.61, 0.79, triage.Ratio, true, 0.3, "", "", "")))
	r.Incident.Alerts = []triage.Alert{
		alert("VLLMHighTTFT", "warning", -2*time.Minute), alert("VLLMHighITL", "critical", -20*time.Second),
	}
	return r
}

// HugeFleet is an incident of 2,000 replicas and 3,000 alerts.
func HugeFleet() triage.Report {
	r := KVLongerOutputs()
	r.Incident.Replicas = 2500
	r.Incident.Truncated = 1200
	top := &r.Bottlenecks[0]
	top.Where = nil
	for i := range 2000 {
		top.Where = append(top.Where, triage.Place{
			Model: "demo", Instance: fmt.Sprintf("10.42.%d.%d:8000", i/256, i%256), Pod: fmt.Sprintf("vllm-demo-%d", i),
		})
	}
	r.Incident.Alerts = nil
	for i := range 3000 {
		a := alert(fmt.Sprintf("VLLMAlert%d", i%40), "critical", -time.Duration(i)*time.Second)
		a.Fingerprint = fmt.Sprintf("%016x", i)
		r.Incident.Alerts = append(r.Incident.Alerts, a)
	}
	for i := range 60 {
		e := row(fmt.Sprintf("signal_%d", i), float64(i), float64(i*i), triage.Requests, i%3 != 0, 0.1, "",
			strings.Repeat("a long sentence about this signal ", 12), strings.Repeat("sum(rate(vllm:some_metric_total[30s])) + ", 20))
		top.Evidence = append(top.Evidence, e)
		r.RuledOut = append(r.RuledOut, ruled(fmt.Sprintf("cause_%d", i), strings.Repeat("a long reason ", 20)))
		r.Missing = append(r.Missing, triage.Missing{Signal: fmt.Sprintf("signal_%d", i), State: triage.Failed, Why: strings.Repeat("w", 300)})
		top.Actions = append(top.Actions, action("", strings.Repeat("do this and that ", 20), "--some-option", "a cost"))
	}
	return r
}

// Hostile is a report whose labels try everything: mentions, links, formats, entities, terminal codes, hidden text.
func Hostile() triage.Report {
	r := KVLongerOutputs()
	bad := HostileText
	r.Incident.Scope = triage.Scope{Model: bad, Namespace: "<@U012AB3CD>", Instance: bad}
	r.Incident.RunbookURL = "javascript:alert(1)"
	r.Incident.ExternalURL = "https://am.example.org/|evil>"
	top := &r.Bottlenecks[0]
	top.Where = []triage.Place{{Instance: bad}, {Pod: "<https://evil.example|click>", Engine: "*0*"}}
	for i := range top.Evidence {
		top.Evidence[i].Text = triage.Text{Text: bad}
		top.Evidence[i].Query = `up{pod="` + bad + `"} > 0 and <!channel>`
		top.Evidence[i].Signal = "sig_" + bad
	}
	for i := range top.Actions {
		top.Actions[i].Text = triage.Text{Text: bad}
		top.Actions[i].Option = "--opt `" + bad
		top.Actions[i].Cost = triage.Text{Text: bad}
	}
	r.RunnerUp = triage.Text{Text: bad}
	r.Impact.Lines = []triage.Text{{Text: bad}}
	r.RuledOut = []triage.RuledOut{{ID: bad, Title: bad, Why: bad}}
	r.Missing = []triage.Missing{{Signal: bad, State: triage.State(bad), Why: bad}}
	r.Notes = []triage.Text{{Text: bad}}
	for i := range r.Incident.Alerts {
		r.Incident.Alerts[i].Name = bad
	}
	r.VLLM.Text = bad
	r.Panels[0].Signal = bad
	return r
}

// HostileText is what an attacker who chooses a model name might try.
const HostileText = "<!channel> <!here|x> <@U012AB3CD> <#C1|y> <https://evil.example|Runbook> @here @channel @everyone " +
	"&lt;!channel&gt; *bold* _it_ ~strike~ `code` ```fence``` :fire: <!subteam^S1> \n\r\t\x1b[31mred\x1b[0m \x00 " +
	"\u202Egnp.exe \u200Bzero https://evil.example/auto {{.}} <script>alert(1)</script> \xff\xfe 한글 🔥"

// MissingData is a report of an engine that could read next to nothing.
func MissingData() triage.Report {
	r := base("metrics_missing", 0.35, "none", 0.3, Now().Add(-2*time.Minute))
	r.Verdict = triage.Inconclusive
	r.Inconclusive = &triage.Blocked{
		Text:  text("blocked.prometheus", "Prometheus did not answer 38 of 41 queries: context deadline exceeded"),
		Query: `up{job="vllm"}`,
	}
	for _, s := range []string{"running", "waiting", "kv_usage", "preemptions", "ttft", "itl", "first_tokens", "up"} {
		r.Missing = append(r.Missing, triage.Missing{Signal: s, State: triage.Failed, Why: "timed out after 10 s"})
	}
	r.Missing = append(r.Missing, triage.Missing{Signal: "mm_queries", State: triage.Absent})
	r.NotChecked = []triage.RuledOut{ruled("kv_cache_exhaustion", "its signals could not be read")}
	r.Incident.Alerts = []triage.Alert{alert("VLLMHighTTFT", "critical", -time.Minute)}
	return r
}

func noBaseline() triage.Report {
	r := KVLongerOutputs()
	r.Incident.Baseline = nil
	r.Notes = []triage.Text{text("baseline.young", "the data begins only 3 min before the alert")}
	for _, h := range [][]triage.Hypothesis{r.Bottlenecks, r.Triggers} {
		for i := range h {
			for j := range h[i].Evidence {
				h[i].Evidence[j].Before = nil
			}
		}
	}
	r.Triggers[0].Probability = 0.31
	return r
}

func adhoc() triage.Report {
	r := KVLongerOutputs()
	r.Incident.Status = triage.StatusAdhoc
	r.Incident.Alerts = nil
	r.Incident.RunbookURL = ""
	r.Incident.ExternalURL = ""
	r.Incident.ScopeNote = text("scope.adhoc", "model demo, as asked")
	return r
}
