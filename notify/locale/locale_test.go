package locale_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/locale"
	"vllm-triage/triage/kb"
)

func TestEveryLanguageHasTheSameKeys(t *testing.T) {
	t.Parallel()
	require.Contains(t, locale.Languages(), "en")
	require.Contains(t, locale.Languages(), "ko")
	want := own(locale.For("en"))
	for _, language := range locale.Languages() {
		got := own(locale.For(language))
		for _, k := range want {
			require.Contains(t, got, k, "%s.yaml lacks it", language)
		}
		for _, k := range got {
			require.Contains(t, want, k, "%s.yaml has a key that nobody asks for", language)
		}
	}
}

// own lists the keys that all languages share: sentences of the reports are English there and translated here.
func own(c *locale.Catalogue) []string {
	return slices.DeleteFunc(c.Keys(), func(k string) bool {
		return strings.HasPrefix(k, "sentence.") || strings.HasPrefix(k, "knowledge.") || strings.HasPrefix(k, "why.")
	})
}

// TestTheKnowledgeBaseIsTranslated compares the translations with what the knowledge base says today. A sentence without
// one is told in English and a stale one is never used, so a few of either pass: a new cause needs no second language
// to be merged.
func TestTheKnowledgeBaseIsTranslated(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	for _, c := range kb.Default().Causes {
		for i := range c.Evidence {
			said[c.Evidence[i].Say], said[c.Evidence[i].SayAgainst] = true, true
		}
		for _, r := range c.Requires {
			said[r.Say] = true
		}
		for _, a := range c.Actions {
			said[a.Text], said[a.Cost] = true, true
		}
	}
	delete(said, "")
	for _, language := range locale.Languages() {
		if language == locale.Fallback {
			continue
		}
		c := locale.For(language)
		missing, unused := 0, 0
		for english := range said {
			if _, ok := c.Lookup("knowledge." + english); !ok {
				missing++
				t.Logf("%s.yaml lacks %q", language, english)
			}
		}
		for _, k := range c.Keys() {
			english, ok := strings.CutPrefix(k, "knowledge.")
			if !ok {
				continue
			}
			if !said[english] {
				unused++
				t.Logf("%s.yaml: nobody says %q", language, english)
			}
			want, got := locale.Names(english), locale.Names(c.Text(k))
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, english)
		}
		require.LessOrEqual(t, missing, len(said)/10)
		require.LessOrEqual(t, unused, len(said)/10)
	}
}

func TestTranslationsKeepThePlaceholders(t *testing.T) {
	t.Parallel()
	en := locale.For("en")
	for _, language := range locale.Languages() {
		c := locale.For(language)
		for _, k := range own(c) {
			require.NotEmpty(t, strings.TrimSpace(c.Text(k)), "%s %s", language, k)
			if strings.HasSuffix(k, ".one") {
				continue // One may leave the number out.
			}
			want, got := locale.Names(en.Text(k)), locale.Names(c.Text(k))
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, "%s %s", language, k)
		}
	}
}

func TestEveryCauseOfTheDesignHasWords(t *testing.T) {
	t.Parallel()
	bottlenecks := strings.Fields(`kv_cache_exhaustion concurrency_cap prefill_bound decode_bound device_slowdown lora_slots
		structured_output kv_transfer frontend_bound multimodal_encoder speculative_decoding engine_stalled
		admission_blocked oversize_request engine_asleep replica_down replica_imbalance client_aborts request_errors
		admission_rejections cpu_swapping low_traffic metrics_missing healthy`)
	triggers := strings.Fields(`traffic_surge longer_prompts longer_outputs sampling_n prefix_cache_collapse adapter_mix
		structured_output_mix multimodal_mix config_change restart replica_loss routing_change none`)
	for _, language := range locale.Languages() {
		c := locale.For(language)
		for axis, ids := range map[string][]string{"bottleneck": bottlenecks, "trigger": triggers} {
			for _, id := range ids {
				for _, part := range []string{".title", ".explain"} {
					_, ok := c.Lookup(axis + "." + id + part)
					require.True(t, ok, "%s: %s.%s%s", language, axis, id, part)
				}
				require.LessOrEqual(t, len([]rune(c.Text(axis+"."+id+".title"))), 42, "titles fit a header")
			}
		}
	}
}

// TestEveryWordIsUsed looks for the keys of the user interface in the source: a word that no code asks for is dead.
func TestEveryWordIsUsed(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		source.Write(b)
		return err
	}))
	code := source.String()
	for _, k := range locale.For("en").Keys() {
		k = strings.TrimSuffix(strings.TrimSuffix(k, ".one"), ".other")
		switch section, rest, _ := strings.Cut(k, "."); section {
		case "ui":
			prefix := k[:strings.LastIndex(k, ".")+1]
			used := strings.Contains(code, `"`+k+`"`) ||
				strings.Contains(code, `"`+prefix+`"+`) || strings.Contains(code, `"`+prefix+`" +`)
			require.True(t, used, "%s is not used", k)
		case "unit":
			require.True(t, strings.Contains(code, `"`+rest+`"`) || strings.Contains(code, `"`+k+`"`), "%s is not used", k)
		default: // Looked up by the ids of the report.
			require.Contains(t, []string{"name", "state", "bottleneck", "trigger", "signal", "sentence", "knowledge", "why"}, section)
		}
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	for ask, want := range map[string]string{"ko": "ko", "ko-KR": "ko", "KO_kr": "ko", "en": "en", "": "en", "tlh": "en"} {
		require.Equal(t, want, locale.For(ask).Language(), ask)
	}
}

func TestTextFallsBack(t *testing.T) {
	t.Parallel()
	ko := locale.For("ko")
	require.Equal(t, "no.such.key", ko.Text("no.such.key"))
	_, ok := ko.Find("no.such.key")
	require.False(t, ok)
	s, ok := ko.Find("bottleneck.healthy.title")
	require.True(t, ok)
	require.Equal(t, "병목 없음", s)
}

func TestExpand(t *testing.T) {
	t.Parallel()
	values := map[string]string{"n": "3", "list": "{n}"}
	look := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	tests := []struct {
		template, want string
		complete       bool
	}{
		{"{n} of {n}", "3 of 3", true},
		{"{list}", "{n}", true}, // A value is not expanded again.
		{"{missing} {n}", "{missing} 3", false},
		{`up{job="vllm"} {n}`, `up{job="vllm"} 3`, true},
		{`sum by (x) (y{z="{n}"})`, `sum by (x) (y{z="3"})`, true},
		{"{", "{", true},
		{"{}", "{}", true},
		{"", "", true},
	}
	for _, tt := range tests {
		got, complete := locale.Expand(tt.template, look)
		require.Equal(t, tt.want, got)
		require.Equal(t, tt.complete, complete, tt.template)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	en := locale.For("en")
	require.Equal(t, "came back once", en.Count("ui.flaps", 1))
	require.Equal(t, "came back 1,200 times", en.Count("ui.flaps", 1200))
	require.Equal(t, "재발 2회", locale.For("ko").Count("ui.flaps", 2))
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -12: "-12"} {
		require.Equal(t, want, locale.Grouped(n))
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("{n} requests {x", "1")
	f.Add("}{}{{n}}", "{n}")
	f.Fuzz(func(t *testing.T, template, value string) {
		got, complete := locale.Expand(template, func(string) (string, bool) { return value, true })
		require.True(t, complete)
		if len(locale.Names(template)) == 0 {
			require.Equal(t, template, got)
		}
	})
}
