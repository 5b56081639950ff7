package runbook_test

import (
	"io/fs"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"vllm-triage/triage/kb/runbook"
)

// source reads a shipped page as it is written.
func source(t *testing.T, lang, id string) string {
	t.Helper()
	data, err := fs.ReadFile(runbook.Embedded(), path.Join(lang, id+".md"))
	require.NoError(t, err)
	return string(data)
}

// pages yields every shipped page in every language, with its source.
func pages(t *testing.T) iter.Seq2[*runbook.Page, string] {
	t.Helper()
	return func(yield func(*runbook.Page, string) bool) {
		for _, lang := range runbook.Languages() {
			for _, id := range runbook.IDs() {
				p, ok := runbook.Get(lang, id)
				require.True(t, ok)
				require.Equal(t, lang, p.Lang, "%s is not translated", id)
				if !yield(p, source(t, lang, id)) {
					return
				}
			}
		}
	}
}

func TestEveryCauseHasAPage(t *testing.T) {
	t.Parallel()
	_, err := runbook.Load(runbook.Embedded())
	require.NoError(t, err)
	var want []string
	for _, k := range []runbook.Kind{runbook.Bottleneck, runbook.Trigger, runbook.General} {
		ids := runbook.Required(k)
		require.True(t, slices.IsSorted(ids))
		require.Equal(t, ids, runbook.Default().Of(k))
		want = append(want, ids...)
	}
	slices.Sort(want)
	require.Len(t, want, 24+13+2)
	require.Empty(t, cmp.Diff(want, runbook.IDs()))
	require.Empty(t, runbook.Default().Of(runbook.Site))
}

func TestPagesAreShortEnoughForAPhone(t *testing.T) {
	t.Parallel()
	for p, src := range pages(t) {
		t.Run(p.Lang+"/"+p.ID, func(t *testing.T) {
			t.Parallel()
			lines := strings.Count(src, "\n")
			require.GreaterOrEqual(t, lines, 40)
			require.LessOrEqual(t, lines, 90)
			require.GreaterOrEqual(t, len(p.Steps), 3)
			for line := range strings.Lines(src) {
				require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimRight(line, "\n"), "trailing space")
			}
		})
	}
}

func TestPagesCiteASource(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(https://[^)]+\)`)
	for p, src := range pages(t) {
		t.Run(p.Lang+"/"+p.ID, func(t *testing.T) {
			t.Parallel()
			if p.Kind == runbook.General || p.ID == "healthy" {
				return // They send the reader on to the pages that do.
			}
			require.Regexp(t, link, src)
		})
	}
}

// Advice that public runbooks give and that makes it worse. It may stand only where the page says not to do it.
func TestStepsNeverAdviseHarm(t *testing.T) {
	t.Parallel()
	memory := []*regexp.Regexp{
		regexp.MustCompile(`(?i)(lower|reduc\w*|decreas\w*|cut)\W+(the )?.{0,12}--gpu-memory-utilization`),
		regexp.MustCompile(`--gpu-memory-utilization[^.]{0,12}[을를]? ?(낮추|줄이|내리)`),
	}
	slots := []*regexp.Regexp{
		regexp.MustCompile(`(?i)(rais\w*|increas\w*|more)\W+(the )?.{0,12}--max-num-seqs`),
		regexp.MustCompile(`--max-num-seqs[^.]{0,12}[을를]? ?(높이|늘리|올리)`),
	}
	full := []string{
		"admission_blocked", "cpu_swapping", "decode_bound", "kv_cache_exhaustion", "longer_outputs", "longer_prompts",
		"lora_slots", "oversize_request", "prefill_bound", "sampling_n", "traffic_surge",
	}
	for p := range pages(t) {
		t.Run(p.Lang+"/"+p.ID, func(t *testing.T) {
			t.Parallel()
			for _, s := range p.Steps {
				text := string(s.HTML) + s.Check
				for _, re := range memory {
					require.NotRegexp(t, re, text)
				}
				for _, re := range slots {
					if slices.Contains(full, p.ID) {
						require.NotRegexp(t, re, text)
					}
				}
				require.NotRegexp(t, `(?i)clear(ing)? the cache|캐시를 비우`, text)
			}
		})
	}
}

// A query that uses a renamed metric is of no use on the other side of the rename, so the page must name both.
func TestOldNamesAreNoted(t *testing.T) {
	t.Parallel()
	renamed := map[string]string{
		"vllm:kv_cache_usage_perc":        "vllm:gpu_cache_usage_perc",
		"vllm:inter_token_latency_second": "vllm:time_per_output_token_second",
		"vllm:prefix_cache_hits_total":    "vllm:gpu_prefix_cache_",
		"vllm:num_requests_waiting_by_re": "0.20",
	}
	for p, src := range pages(t) {
		t.Run(p.Lang+"/"+p.ID, func(t *testing.T) {
			t.Parallel()
			for _, fence := range fences(src) {
				for name, old := range renamed {
					if strings.Contains(fence, name) {
						require.Contains(t, src, old)
					}
				}
			}
		})
	}
}

var (
	fencePattern = regexp.MustCompile("(?s)```(?:promql|sh|yaml)\n(.*?)```")
	fieldPattern = regexp.MustCompile(`\{\{[^}]*\}\}`)
	linkPattern  = regexp.MustCompile(`\]\(([^)]*)\)`)
)

func fences(src string) []string { return fencePattern.FindAllString(src, -1) }

// A translation tells the same: same queries, same links, same numbers.
func TestTranslationsAgree(t *testing.T) {
	t.Parallel()
	for p, src := range pages(t) {
		t.Run(p.Lang+"/"+p.ID, func(t *testing.T) {
			t.Parallel()
			original := source(t, "en", p.ID)
			sorted := func(s []string) []string { slices.Sort(s); return s }
			require.Empty(t, cmp.Diff(fences(original), fences(src)), "fences")
			require.Empty(t, cmp.Diff(sorted(linkPattern.FindAllString(original, -1)),
				sorted(linkPattern.FindAllString(src, -1))), "links")
			require.Empty(t, cmp.Diff(sorted(fieldPattern.FindAllString(original, -1)),
				sorted(fieldPattern.FindAllString(src, -1))), "placeholders")
		})
	}
}

func TestEverySignalIsUsed(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, id := range runbook.IDs() {
		all.WriteString(source(t, "en", id))
	}
	unused := slices.DeleteFunc(runbook.Default().Signals(), func(s string) bool {
		return strings.Contains(all.String(), `{{num "`+s+`"`)
	})
	require.Empty(t, unused)
}

func TestGet(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"en", "EN", "en-US", "en_GB.UTF-8"} {
		p, ok := runbook.Get(tag, "healthy")
		require.True(t, ok)
		require.Equal(t, "en", p.Lang)
		require.Empty(t, p.Asked)
	}
	p, ok := runbook.Get("ko-KR", "healthy")
	require.True(t, ok)
	require.Equal(t, "ko", p.Lang)
	require.Equal(t, "병목 없음", p.Title)
	_, ok = runbook.Get("en", "no_such_cause")
	require.False(t, ok)
}

func TestGetFallsBackToEnglishAndSaysSo(t *testing.T) {
	t.Parallel()
	p, ok := runbook.Get(`fr"><script>`, "healthy")
	require.True(t, ok)
	require.Equal(t, "en", p.Lang)
	require.Equal(t, `fr"><script>`, p.Asked)
	out, err := p.Render(nil)
	require.NoError(t, err)
	require.Contains(t, string(out), `<p class="note">There is no page in the language `)
	require.NotContains(t, string(out), "<script")

	again, _ := runbook.Get("en", "healthy")
	require.Empty(t, again.Asked, "the fallback must not leak into the shared page")

	noLang, _ := runbook.Get("", "healthy")
	require.Empty(t, noLang.Asked)
}

func TestStep(t *testing.T) {
	t.Parallel()
	p, ok := runbook.Get("en", "kv_cache_exhaustion")
	require.True(t, ok)
	s, ok := p.Step("shed-load")
	require.True(t, ok)
	require.Equal(t, "Limit the load at the door", s.Title)
	require.Equal(t, "waiting falls within a minute or two, preemptions follow.", s.Check)
	require.Contains(t, string(s.HTML), "<p>Rate-limit or reroute")
	require.NotContains(t, string(s.HTML), "Check:")
	_, ok = p.Step("nothing")
	require.False(t, ok)
}

// page is a small valid page to break in tests.
const page = `---
id: healthy
title: Title
summary: One sentence.
---

## What it means {#meaning}

Text. {{with_incident}}Now {{num "kv_usage" "during"}} at {{where}}.{{end}}

## How to confirm {#confirm}

` + "```promql" + `
sum(rate(vllm:prompt_tokens_total{{{matchers}}}[5m]))
` + "```" + `

## Steps {#steps}

### Do it {#do-it}

Turn [the page](runbook:none#steps).

Check: it is done.

## How you know it is over {#over}

Over.

## What not to do {#avoid}

- No.

## Prevention {#prevention}

Prevent.
`

func TestLoadReportsMistakes(t *testing.T) {
	t.Parallel()
	fence := func(lang, body string) string { return "```" + lang + "\n" + body + "\n```\n" }
	confirm := "## How to confirm {#confirm}\n"
	tests := map[string]struct{ old, new, want string }{
		"no front matter":       {"---\nid", "id", "the first line must be ---"},
		"open front matter":     {"sentence.\n---\n", "sentence.\n", "front matter does not end"},
		"unknown field":         {"title:", "author: x\ntitle:", "author"},
		"wrong id":              {"id: healthy", "id: other", `id "other" does not match`},
		"no title":              {"title: Title", "title: ''", "title is empty"},
		"long title":            {"title: Title", "title: " + strings.Repeat("x", 81), "title is longer than 80"},
		"no full stop":          {"One sentence.", "One sentence", "full stop"},
		"placeholder in title":  {"title: Title", "title: 'T {{scope}}'", "title holds a placeholder"},
		"text before heading":   {"\n## What it", "\nText.\n\n## What it", "before the first heading"},
		"missing section":       {"## Prevention {#prevention}\n\nPrevent.\n", "", "5 of 6 sections"},
		"renamed section":       {"## Prevention {", "## Prevent {", `section 6 is "Prevent`},
		"swapped anchor":        {"{#avoid}", "{#avoided}", `section 5 is`},
		"no anchor":             {"### Do it {#do-it}", "### Do it", "is not \"## Title {#anchor}\""},
		"deep heading":          {"- No.", "#### Deep {#deep}", "is not \"## Title {#anchor}\""},
		"step elsewhere":        {"- No.", "### Do {#do}\n\nText.\n\nCheck: x.", "only steps are level three"},
		"same anchor":           {"{#do-it}", "{#steps}", `anchor "steps" stands twice`},
		"no step":               {"### Do it {#do-it}\n\nTurn [the page](runbook:none#steps).\n\nCheck: it is done.\n", "", "no steps"},
		"no check":              {"Check: it is done.", "It is done.", `step do-it: there is no line "Check:"`},
		"two checks":            {"Check: it is done.", "Check: a.\n\nCheck: b.", "more than one line"},
		"check in the middle":   {"Check: it is done.", "Check: a.\n\nMore.", "must be the last paragraph"},
		"check says nothing":    {"Check: it is done.", "Check:", "says nothing"},
		"check in paragraph":    {"steps).\n\nCheck", "steps).\nCheck", "must start a paragraph"},
		"check is a list":       {"Check: it is done.", "Check: - it is done\n- or not", "is not one paragraph"},
		"empty step":            {"Turn [the page](runbook:none#steps).\n", "", "there is no text"},
		"unknown placeholder":   {"Over.", "Over {{action 1}}.", "placeholder \"{{action 1}}"},
		"bare placeholder":      {"Over.", "Over at {{where}}.", "{{where}} stands outside {{with_incident}}"},
		"unknown signal":        {`"kv_usage"`, `"kv_use"`, "the signal is unknown"},
		"unknown moment":        {`"during"`, `"after"`, "is unknown"},
		"open block":            {"{{end}}", "", "{{with_incident}} has no {{end}}"},
		"nested block":          {"Now ", "{{with_incident}}Now ", "inside another one"},
		"end only":              {"Over.", "Over.{{end}}", "{{end}} closes nothing"},
		"stray braces":          {"Over.", "Over }}.", "closes no placeholder"},
		"raw HTML":              {"Over.", "Over <b>now</b>.", "raw HTML"},
		"HTML block":            {"Over.", "<div>\nOver\n</div>", "raw HTML"},
		"image":                 {"Over.", "![x](https://example.org/x.png)", "images"},
		"script link":           {"Over.", "[x](javascript:alert(1))", "is not http"},
		"relative link":         {"Over.", "[x](other)", "is not http"},
		"autolink":              {"Over.", "<https://example.org>", "write a link as"},
		"reference":             {"Over.", "[x][y]\n\n[y]: https://example.org", "link references"},
		"placeholder in link":   {"Over.", "{{with_incident}}[x](https://example.org/{{scope}}){{end}}", "in a link's address"},
		"dead page link":        {"runbook:none#steps", "runbook:nowhere", `link "runbook:nowhere" leads nowhere`},
		"dead step link":        {"runbook:none#steps", "runbook:none#nowhere", "leads nowhere"},
		"dead anchor":           {"runbook:none#steps", "#nowhere", `link "#nowhere" leads nowhere`},
		"indented code":         {"Over.", "    code", "indented code"},
		"fence language":        {"Over.", fence("bash", "ls"), `language "bash"`},
		"open fence":            {"Prevent.", "```sh\nls", "a code fence does not end"},
		"number in fence":       {"Over.", "{{with_incident}}\n" + fence("sh", "{{scope}}") + "{{end}}", "stands in a sh fence"},
		"matchers in text":      {"Over.", "Over {{matchers}}.", "outside a promql fence"},
		"broken query":          {confirm, confirm + fence("promql", "sum(up"), "does not parse"},
		"unknown metric":        {confirm, confirm + fence("promql", "vllm:num_gpu_blocks_free{{{matchers}}}"), "is unknown"},
		"counter without total": {confirm, confirm + fence("promql", "rate(vllm:num_preemptions{{{matchers}}}[5m])"), "is unknown"},
		"nameless selector":     {confirm, confirm + fence("promql", "{{{matchers}}}"), `metric "" is unknown`},
		"no matchers":           {confirm, confirm + fence("promql", "vllm:num_requests_running"), "put {{matchers}}"},
		"matchers on a target":  {confirm, confirm + fence("promql", "up{{{matchers}}}"), "has no label model_name"},
		"bare counter":          {confirm, confirm + fence("promql", "vllm:prompt_tokens_total{{{matchers}}}"), "without rate"},
		"rate of a gauge":       {confirm, confirm + fence("promql", "rate(vllm:num_requests_running{{{matchers}}}[5m])"), "with rate"},
		"private use":           {"Over.", "Over \ue0001\ue001.", "private-use"},
		"not UTF-8":             {"Over.", "Over \xff.", "not UTF-8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, page, tt.old)
			broken := strings.Replace(page, tt.old, tt.new, 1)
			_, err := runbook.ParsePage("en", "healthy", []byte(broken))
			if strings.Contains(tt.want, "leads nowhere") { // Seen once all pages are read.
				require.NoError(t, err)
				_, err = runbook.Load(runbook.Overlay(runbook.Embedded(), fstest.MapFS{
					"en/healthy.md": {Data: []byte(broken)},
				}))
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestLoadAcceptsTheSmallPage(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{"unix": page, "dos": strings.ReplaceAll(page, "\n", "\r\n")} {
		p, err := runbook.ParsePage("en", "healthy", []byte(src))
		require.NoError(t, err, name)
		require.Len(t, p.Steps, 1)
	}
}

func TestLoadReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := runbook.Load(runbook.Overlay(runbook.Embedded(), fstest.MapFS{
		"en/healthy.md":     {Data: []byte("x")},
		"en/none.md":        {Data: []byte("y")},
		"metrics/extra.txt": {Data: []byte("a b c\nfoo gauge\n")},
		"signals/extra.txt": {Data: []byte("Not an id\n")},
	}))
	for _, want := range []string{
		"en/healthy.md: ", "en/none.md: ", "metrics/extra.txt: line 1: scope", "line 2: want", "signals/extra.txt: line 1",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestLoadWantsEveryPage(t *testing.T) {
	t.Parallel()
	_, err := runbook.Load(fstest.MapFS{"README.md": {Data: []byte("not a page")}})
	require.ErrorContains(t, err, "en/kv_cache_exhaustion.md: the bottleneck has no page")
	require.ErrorContains(t, err, "en/sampling_n.md: the trigger has no page")
	require.ErrorContains(t, err, "en/unknown.md: the general has no page")
}

func TestLoadRejectsLargeFiles(t *testing.T) {
	t.Parallel()
	_, err := runbook.ParsePage("en", "healthy", []byte(page+strings.Repeat("word ", 20_000)))
	require.ErrorContains(t, err, "larger than 64 KiB")
}

func FuzzParsePage(f *testing.F) {
	f.Add(page)
	for _, id := range []string{"kv_cache_exhaustion", "index", "metrics_missing"} {
		data, err := fs.ReadFile(runbook.Embedded(), path.Join("en", id+".md"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.Replace(string(data), "id: "+id, "id: healthy", 1))
	}
	f.Add("---\nid: healthy\n---\n## Steps {#steps}\n### A {#a}\n{{with_incident}}{{end}}\nCheck: {{{{")
	full := filling("x")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := runbook.ParsePage("en", "healthy", []byte(src))
		if err != nil {
			return
		}
		for _, in := range []*runbook.Filling{nil, full} {
			out, err := p.Render(in)
			require.NoError(t, err, "a page that loads must render")
			require.NotContains(t, string(out), "\ue000")
			require.NotContains(t, string(out), "<!-- raw HTML omitted -->")
			require.NotRegexp(t, `(?i)<(script|iframe|img|style|form)`, string(out))
		}
		require.NotEmpty(t, p.Steps)
	})
}
