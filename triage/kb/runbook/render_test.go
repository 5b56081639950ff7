package runbook_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"vllm-triage/triage/kb/runbook"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// filling has every number that a page can show, all with the same text.
func filling(text string) *runbook.Filling {
	in := &runbook.Filling{Numbers: map[string]map[string]string{}, Scope: text, Where: text, Since: text}
	for _, s := range runbook.Default().Signals() {
		in.Numbers[s] = map[string]string{"before": text, "during": text}
	}
	return in
}

var tagPattern = regexp.MustCompile(`<[^>]*>`)

func tags(html string) []string { return tagPattern.FindAllString(html, -1) }

func render(t *testing.T, p *runbook.Page, in *runbook.Filling) string {
	t.Helper()
	out, err := p.Render(in)
	require.NoError(t, err)
	return string(out)
}

func TestRenderWithAndWithoutIncident(t *testing.T) {
	t.Parallel()
	for p, src := range pages(t) {
		t.Run(p.Lang+"/"+p.ID, func(t *testing.T) {
			t.Parallel()
			without := render(t, p, nil)
			require.Equal(t, without, render(t, p, &runbook.Filling{}), "an empty filling is no incident")
			with := render(t, p, filling("42 units"))
			for _, out := range []string{without, with} {
				require.NotContains(t, out, "{{")
				require.NotContains(t, out, "}}")
				require.NotContains(t, out, "\ue000")
				require.NotContains(t, out, "raw HTML omitted")
				require.NotContains(t, out, "<p></p>")
				require.NotContains(t, out, "**", "emphasis that did not take")
				require.NotContains(t, out, "](", "a link that did not take")
				require.NotContains(t, out, "runbook:")
			}
			require.NotContains(t, without, "42 units")
			if strings.Contains(src, "{{num") {
				require.Contains(t, with, "42 units")
			}
			require.Equal(t, strings.Contains(src, "{{matchers}}"), strings.Contains(without, `model_name=&#34;MODEL&#34;`))
			for _, s := range p.Steps {
				require.Contains(t, without, `<h3 id="`+s.ID+`">`)
				require.Contains(t, without, `</strong> `+string(s.CheckHTML)+"</p>")
				require.NotContains(t, s.Check, "`")
			}
		})
	}
}

func TestRenderLeavesOutWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	p, err := runbook.ParsePage("en", "healthy", []byte(strings.Replace(page, "Text. {{with_incident}}", `First.
{{with_incident}}Usage was {{num "kv_usage" "before"}}.{{end}}
{{with_incident}}Waiting: {{num "waiting" "during"}}.{{end}}
{{with_incident}}An incident is open.{{end}}
Text. {{with_incident}}`, 1)))
	require.NoError(t, err)
	paragraph := func(in *runbook.Filling) string {
		_, out, _ := strings.Cut(render(t, p, in), "<p>")
		first, _, _ := strings.Cut(out, "</p>")
		return first
	}
	require.Equal(t, "First.\nText.", paragraph(nil))
	require.Equal(t, "First.\nText.", paragraph(&runbook.Filling{Matchers: `a="b"`, Link: strings.ToUpper}),
		"addresses and matchers alone are no incident")
	require.Equal(t, "First.\nWaiting: 31.\nAn incident is open.\nText.", paragraph(&runbook.Filling{
		Numbers: map[string]map[string]string{"waiting": {"during": "31"}},
	}))
	require.Equal(t, "First.\nUsage was 5%.\nAn incident is open.\nText. Now 98% at pod-1.", paragraph(&runbook.Filling{
		Numbers: map[string]map[string]string{"kv_usage": {"before": "5%", "during": "98%"}}, Where: "pod-1",
	}))
}

func TestRenderMatchers(t *testing.T) {
	t.Parallel()
	p, ok := runbook.Get("en", "prefill_bound")
	require.True(t, ok)
	out := render(t, p, &runbook.Filling{Matchers: `model_name="a<b>&\"c",namespace=~"x|y"`})
	require.Contains(t, out, `model_name=&#34;a&lt;b&gt;&amp;\&#34;c&#34;,namespace=~&#34;x|y&#34;}[5m]`)
	require.NotContains(t, out, "MODEL")

	for name, matchers := range map[string]string{
		"second selector": `a="b"} or up{c="d"`,
		"comment":         `a="b"} #`,
		"no quotes":       `a=b`,
		"control":         "a=\"b\x01\"",
		"line break":      "a=\"b\"\n,c=\"d\"",
		"direction":       "a=\"\u202eb\"",
		"holder":          "a=\"\ue0000\ue001\"",
	} {
		_, err := p.Render(&runbook.Filling{Matchers: matchers})
		require.ErrorContains(t, err, "fill runbook: matchers", name)
	}
}

func TestRenderLinks(t *testing.T) {
	t.Parallel()
	p, ok := runbook.Get("en", "adapter_mix")
	require.True(t, ok)
	require.Contains(t, render(t, p, nil), `<a href="/runbooks/lora_slots#raise-max-loras">`)
	out := render(t, p, &runbook.Filling{Link: func(id string) string { return "/r/" + id + "?incident=7&lang=ko" }})
	require.Contains(t, out, `<a href="/r/lora_slots?incident=7&amp;lang=ko#raise-max-loras">`)
	require.Contains(t, out, `rel="noopener noreferrer"`)
	out = render(t, p, &runbook.Filling{Link: func(string) string { return "javascript:alert(1)" }})
	require.NotContains(t, out, "javascript:")
}

func TestFill(t *testing.T) {
	t.Parallel()
	p, ok := runbook.Get("en", "kv_cache_exhaustion")
	require.True(t, ok)
	in := filling("7")
	filled, err := p.Fill(in)
	require.NoError(t, err)
	require.Len(t, filled.Steps, len(p.Steps))
	require.Contains(t, string(filled.Intro), `<h2 id="steps">Steps</h2>`)
	require.True(t, strings.HasPrefix(string(filled.Outro), `<h2 id="over">`))
	whole := render(t, p, in)
	require.True(t, strings.HasPrefix(whole, string(filled.Intro)))
	require.True(t, strings.HasSuffix(whole, string(filled.Outro)))
	for i, s := range filled.Steps {
		require.Equal(t, p.Steps[i].ID, s.ID)
		require.Contains(t, whole, string(s.HTML))
	}
	require.Contains(t, string(filled.Steps[3].HTML), "One holds 7.")
	require.NotContains(t, string(p.Steps[3].HTML), "One holds")
}

// hostile values: what a model name or a label can hold.
var hostile = []string{
	`<script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`,
	"[click](https://evil.example) ![x](https://evil.example/x.png)",
	"# heading\n\n- list\n\n```\nfence\n```\n\n<div>\n",
	"`code` **bold** | table | {#id} {{scope}} {{end}}",
	"\ue0000\ue001 \ue0011\ue000 \ue000999999\ue001",
	"a\u202eb\u0000c\u200bd\u2028e",
	"\xff\xfe",
	"&lt;b&gt; &amp;",
	strings.Repeat("x", 5000),
	"$1 ${1} \\1 %s %!d(MISSING)",
}

func TestValuesNeverBecomeMarkup(t *testing.T) {
	t.Parallel()
	for p := range pages(t) {
		t.Run(p.Lang+"/"+p.ID, func(t *testing.T) {
			t.Parallel()
			values := hostile[1:3]
			if p.ID == "kv_cache_exhaustion" {
				values = hostile
			}
			want := tags(render(t, p, filling("plain")))
			for _, v := range values {
				checkValue(t, p, v, want)
			}
		})
	}
}

// checkValue wants the same tags whatever the values are; a value of which nothing is left takes its passage away.
func checkValue(t *testing.T, p *runbook.Page, value string, want []string) {
	t.Helper()
	out := render(t, p, filling(value))
	got := tags(out)
	if !cmp.Equal(want, got) {
		require.Empty(t, cmp.Diff(tags(render(t, p, nil)), got), "value %q", value)
	}
	require.NotContains(t, out, "\ue000")
	require.NotContains(t, out, "\ue001")
	require.NotContains(t, out, "\u202e")
	require.NotContains(t, out, "\x00")
	require.True(t, utf8.ValidString(out))
}

func FuzzFilling(f *testing.F) {
	for _, v := range hostile {
		f.Add(v, `model_name="`+v+`"`)
	}
	f.Add("x", `a="b"} or up{c="d"`)
	p, _ := runbook.Get("en", "kv_cache_exhaustion")
	out, err := p.Render(filling("plain"))
	if err != nil {
		f.Fatal(err)
	}
	want := tags(string(out))
	f.Fuzz(func(t *testing.T, value, matchers string) {
		checkValue(t, p, value, want)
		in := filling("plain")
		in.Matchers = matchers
		out, err := p.Render(in)
		if err != nil {
			return // Not PromQL: refused.
		}
		require.Empty(t, cmp.Diff(want, tags(string(out))), "matchers %q", matchers)
		require.NotContains(t, string(out), "\ue000")
	})
}

func TestGolden(t *testing.T) {
	t.Parallel()
	in := &runbook.Filling{
		Numbers: map[string]map[string]string{
			"kv_usage": {"before": "31%", "during": "98%"}, "waiting": {"before": "0", "during": "41"},
			"preemptions": {"before": "0/s", "during": "1.3/s"}, "kv_headroom": {"during": "0.6"},
			"pool_tokens": {"during": "76,640"},
		},
		Scope: "meta-llama/Llama-3.1-8B-Instruct (prod)", Where: "vllm-0", Since: "14:02",
		Matchers: `model_name="meta-llama/Llama-3.1-8B-Instruct",namespace="prod"`,
	}
	for _, lang := range runbook.Languages() {
		p, ok := runbook.Get(lang, "kv_cache_exhaustion")
		require.True(t, ok)
		file := filepath.Join("testdata", p.ID+"."+lang+".html")
		got := render(t, p, in)
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(string(want), got), file)
	}
}
