package promq_test

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
)

var promQL = parser.NewParser(parser.Options{})

func TestTemplateExpand(t *testing.T) {
	t.Parallel()
	model := promq.Equal("model_name", "llama")
	tests := map[string]struct {
		src, name string
		window    time.Duration
		matchers  []*labels.Matcher
		want      string
	}{
		"rate": {
			src: `sum by (instance) (rate(metric[1w]))`, name: "vllm:prompt_tokens_total", window: time.Minute,
			matchers: []*labels.Matcher{model},
			want:     `sum by (instance) (rate(vllm:prompt_tokens_total{model_name="llama"}[1m]))`,
		},
		"own matchers stay": {
			src: `metric{engine!="9"}`, name: "vllm:num_requests_running",
			matchers: []*labels.Matcher{model},
			want:     `vllm:num_requests_running{engine!="9",model_name="llama"}`,
		},
		"same matcher once": {
			src: `metric{model_name="llama"}`, name: "x", matchers: []*labels.Matcher{model, model},
			want: `x{model_name="llama"}`,
		},
		"histogram parts": {
			src: `rate(metric_sum[1w]) / rate(metric_count[1w])`, name: "vllm:ttft_seconds", window: 90 * time.Second,
			want: `rate(vllm:ttft_seconds_sum[1m30s]) / rate(vllm:ttft_seconds_count[1m30s])`,
		},
		"other selectors get matchers too": {
			src: `metric * on (instance) up`, name: "x", matchers: []*labels.Matcher{model},
			want: `x{model_name="llama"} * on (instance) up{model_name="llama"}`,
		},
		"other ranges stay": {
			src: `max_over_time(rate(metric[1w])[10m:15s]) + metric offset 5m`, name: "x", window: 30 * time.Second,
			want: `max_over_time(rate(x[30s])[10m:15s]) + x offset 5m`,
		},
		"subquery window": {
			src: `max_over_time(metric[1w:15s])`, name: "x", window: time.Hour,
			want: `max_over_time(x[1h:15s])`,
		},
		"utf-8 name": {
			src: `sum(rate(metric[1w]))`, name: "vllm.prompt tokens", window: time.Minute, matchers: []*labels.Matcher{model},
			want: `sum(rate({__name__="vllm.prompt tokens",model_name="llama"}[1m]))`,
		},
		"name that is a word of the language": {
			src: `metric`, name: "NaN",
			want: `{__name__="NaN"}`,
		},
		"name that is an expression": {
			src: `metric`, name: `up{a="b"} or vector(1)`,
			want: `{__name__="up{a=\"b\"} or vector(1)"}`,
		},
		"quotes in values": {
			src: `metric`, name: "x", matchers: []*labels.Matcher{promq.Equal("model_name", `a"} or up{b="\`)},
			want: `x{model_name="a\"} or up{b=\"\\"}`,
		},
		"several values": {
			src: `metric`, name: "x", matchers: []*labels.Matcher{promq.AnyOf("pod", []string{"b|c", "a.1", "a.1"})},
			want: `x{pod=~"a\\.1|b\\|c"}`,
		},
		"name given as a matcher": {
			src: `metric`, name: "x", matchers: []*labels.Matcher{promq.Equal("__name__", "y")},
			want: `{__name__="x",__name__="y"}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tpl, err := promq.ParseTemplate(tt.src)
			require.NoError(t, err)
			got := tpl.Expand(tt.name, tt.window, tt.matchers...)
			require.Equal(t, tt.want, got)
			_, err = promQL.ParseExpr(got)
			require.NoError(t, err)
			require.Equal(t, tt.src, tpl.String())
			require.Equal(t, got, tpl.Expand(tt.name, tt.window, tt.matchers...), "a template keeps nothing of an expansion")
		})
	}
}

func TestParseTemplateErrors(t *testing.T) {
	t.Parallel()
	_, err := promq.ParseTemplate(`sum(rate(metric[1w])`)
	require.ErrorContains(t, err, "unclosed left parenthesis")
	_, err = promq.ParseTemplate(`rate(up[1w])`)
	require.ErrorContains(t, err, "no selector is named metric")
}

func TestAddMatchers(t *testing.T) {
	t.Parallel()
	got, err := promq.AddMatchers(`sum(rate(a[5m])) / sum(rate({__name__=~"b|c"}[5m])) > bool 2`, promq.Equal("namespace", "prod"))
	require.NoError(t, err)
	require.Equal(t, `sum(rate(a{namespace="prod"}[5m])) / sum(rate({__name__=~"b|c",namespace="prod"}[5m])) > bool 2`, got)

	got, err = promq.AddMatchers(`up`, promq.Equal("k8s.pod", "x"))
	require.NoError(t, err)
	require.Equal(t, `up{"k8s.pod"="x"}`, got)

	_, err = promq.AddMatchers(`up{`)
	require.Error(t, err)
	_, err = promq.AddMatchers(`up`, promq.Equal("", "x"))
	require.Error(t, err, "a label without a name")
}

func TestOr(t *testing.T) {
	t.Parallel()
	got, err := promq.Or(`rate(a[1m])`)
	require.NoError(t, err)
	require.Equal(t, `rate(a[1m])`, got)

	got, err = promq.Or(`a`, `b + c`, `a{}`, `d and e`)
	require.NoError(t, err)
	require.Equal(t, `a or (b + c) or (d and e)`, got)

	got, err = promq.Or(`-a`, `b`)
	require.NoError(t, err)
	require.Equal(t, `(-a) or b`, got)

	for _, bad := range [][]string{{}, {`a`, `(`}, {`a`, `1`}, {`a[5m]`, `b`}} {
		_, err = promq.Or(bad...)
		require.Error(t, err, bad)
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	require.Equal(t, `vllm:x{a="b"}`, promq.Selector("vllm:x", promq.Equal("a", "b")))
	require.Equal(t, `{__name__="vllm.x"}`, promq.Selector("vllm.x"))
	require.Equal(t, `{a="b"}`, promq.Selector("", promq.Equal("a", "b")))
}

func TestAnyOf(t *testing.T) {
	t.Parallel()
	none := promq.AnyOf("a", nil)
	for _, v := range []string{"", "a", "\n", "é", "\U0010FFFF", "\x00"} {
		require.False(t, none.Matches(v), "%q", v)
	}
	one := promq.AnyOf("a", []string{"x.y", "x.y"})
	require.Equal(t, labels.MatchEqual, one.Type)
	several := promq.AnyOf("a", []string{"", "x.y", "(z"})
	for v, want := range map[string]bool{"": true, "x.y": true, "xzy": false, "(z": true, "(zz": false} {
		require.Equal(t, want, several.Matches(v), "%q", v)
	}
	require.Equal(t, several.String(), promq.AnyOf("a", []string{"(z", "", "x.y", ""}).String())
	require.False(t, promq.AnyOf("a", []string{"\xff"}).Matches("\xff"), "no label holds invalid UTF-8")
}

// FuzzTemplateExpand proves that neither a metric name nor a label value can leave its matcher: the expansion parses to the
// tree of the template, with exactly the matchers asked for and no others.
func FuzzTemplateExpand(f *testing.F) {
	f.Add("vllm:x", "model_name", "llama", "b")
	f.Add("a.b", "k8s.pod", `"} or up{a="`, "`")
	f.Add("sum", "by", "\\", "\xff")
	f.Add("or", "__name__x", "\n#", "|")
	f.Add(`x{a="1"}`, "é", "\u2028", "$(x)")
	f.Add("start()", "on", "'", "a|b")
	const src = `sum by (instance) (rate(metric{engine="0"}[1w])) or max_over_time(metric[1w:15s])`
	f.Fuzz(func(t *testing.T, name, label, value, other string) {
		if name == "" || label == "" || label == "__name__" || label == "engine" ||
			!utf8.ValidString(name) || !utf8.ValidString(label) {
			t.Skip()
		}
		tpl, err := promq.ParseTemplate(src)
		require.NoError(t, err)
		equal, anyOf := promq.Equal(label, value), promq.AnyOf(label, []string{value, other})
		expanded := tpl.Expand(name, time.Minute, equal, anyOf)
		tree, err := promQL.ParseExpr(expanded)
		require.NoError(t, err, expanded)

		var found []*parser.VectorSelector
		nodes := 0
		parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
			if n != nil {
				nodes++
			}
			if vs, ok := n.(*parser.VectorSelector); ok {
				found = append(found, vs)
			}
			return nil
		})
		plain, err := promQL.ParseExpr(src)
		require.NoError(t, err)
		want := 0
		parser.Inspect(plain, func(n parser.Node, _ []parser.Node) error {
			if n != nil {
				want++
			}
			return nil
		})
		require.Equal(t, want, nodes, expanded)
		require.Len(t, found, 2)
		require.ElementsMatch(t, texts(unique(promq.Equal("__name__", name), promq.Equal("engine", "0"), equal, anyOf)),
			texts(found[0].LabelMatchers), expanded)
		require.ElementsMatch(t, texts(unique(promq.Equal("__name__", name), equal, anyOf)),
			texts(found[1].LabelMatchers), expanded)
		for _, v := range []string{value, other} {
			if utf8.ValidString(v) {
				require.True(t, anyOf.Matches(v))
			}
		}
	})
}

func unique(ms ...*labels.Matcher) []*labels.Matcher {
	var out []*labels.Matcher
	seen := map[string]bool{}
	for _, m := range ms {
		if s := m.String(); !seen[s] {
			seen[s] = true
			out = append(out, m)
		}
	}
	return out
}

func texts(ms []*labels.Matcher) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.String())
	}
	return out
}
