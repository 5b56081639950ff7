package locale_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// TestTheKnowledgeBaseIsTranslated compares the translations with what the knowledge base says today: a sentence without
// one would be told in English in the middle of a Korean message, and a stale one is never used.
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
		var missing, unused []string
		for english := range said {
			if _, ok := c.Lookup("knowledge." + english); !ok {
				missing = append(missing, english)
			}
		}
		for _, k := range c.Keys() {
			english, ok := strings.CutPrefix(k, "knowledge.")
			if !ok {
				continue
			}
			if !said[english] {
				unused = append(unused, english)
			}
			want, got := locale.Names(english), locale.Names(c.Text(k))
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, english)
		}
		for _, x := range kb.Default().Signals {
			if _, ok := c.Find("signal." + x.ID); !ok {
				missing = append(missing, "signal."+x.ID)
			}
		}
		require.Empty(t, missing, "%s.yaml lacks them", language)
		require.Empty(t, unused, "%s.yaml has them and nobody says them", language)
	}
}

// TestTheEngineIsTranslated compares the translations with the sentences and the reasons that stand in the engine's source.
func TestTheEngineIsTranslated(t *testing.T) {
	t.Parallel()
	sentences, reasons := engineWords(t)
	require.Greater(t, len(sentences), 15)
	require.Greater(t, len(reasons), 15)
	for _, language := range locale.Languages() {
		if language == locale.Fallback {
			continue
		}
		c := locale.For(language)
		var missing, unused []string
		for key, english := range sentences {
			translation, ok := c.Lookup("sentence." + key)
			if !ok {
				missing = append(missing, "sentence."+key+": "+english)
				continue
			}
			require.ElementsMatch(t, locale.Names(english), locale.Names(translation), key)
		}
		for why := range reasons {
			if _, ok := c.Lookup("why." + why); !ok {
				missing = append(missing, "why."+why)
			}
		}
		for _, k := range c.Keys() {
			if why, ok := strings.CutPrefix(k, "why."); ok && !reasons[why] {
				unused = append(unused, k)
			}
		}
		require.Empty(t, missing, "%s.yaml lacks them", language)
		require.Empty(t, unused, "%s.yaml has them and nobody says them", language)
	}
}

// engineWords collects from the source of the engine: the templates of text(key, template, …) by key; and what is given as
// reason for which something is not known: what is assigned to why or noBase, and what failure returns.
func engineWords(t *testing.T) (sentences map[string]string, reasons map[string]bool) {
	t.Helper()
	sentences, reasons = map[string]string{}, map[string]bool{}
	files, err := filepath.Glob("../../triage/*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				name, _ := n.Fun.(*ast.Ident)
				if name == nil || len(n.Args) < 2 {
					return true
				}
				switch key := literal(n.Args[0]); {
				case name.Name == "text" && key != "":
					sentences[key] = literal(n.Args[1])
				case name.Name == "word" && key == "why":
					addLiterals(n.Args[1], reasons)
				}
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if name := nameOf(left); (name == "why" || name == "noBase") && i < len(n.Rhs) {
						addLiterals(n.Rhs[i], reasons)
					}
				}
			case *ast.KeyValueExpr:
				if nameOf(n.Key) == "why" {
					addLiterals(n.Value, reasons)
				}
			case *ast.FuncDecl:
				if n.Name.Name == "failure" {
					ast.Inspect(n.Body, func(n ast.Node) bool {
						if r, ok := n.(*ast.ReturnStmt); ok {
							addLiterals(r.Results[0], reasons)
						}
						return true
					})
				}
			}
			return true
		})
	}
	return sentences, reasons
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}

func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if s, err := strconv.Unquote(l.Value); err == nil {
			return s
		}
	}
	return ""
}

// addLiterals collects the texts of an expression that are words, but not those of nested sentences.
func addLiterals(e ast.Expr, out map[string]bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return nameOf(n.Fun) == "Or"
		case *ast.BasicLit:
			if s := strings.TrimSuffix(literal(n), ": "); strings.Contains(s, " ") {
				out[s] = true
			}
		}
		return true
	})
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
