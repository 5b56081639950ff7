package web_test

import (
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/web"
)

func style(t *testing.T) string {
	t.Helper()
	data, err := fs.ReadFile(web.Assets(), "style.css")
	require.NoError(t, err)
	return string(data)
}

func TestAssets(t *testing.T) {
	t.Parallel()
	var names []string
	require.NoError(t, fs.WalkDir(web.Assets(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	}))
	require.Equal(t, []string{"icon.svg", "style.css"}, names)
	css := style(t)
	require.NotRegexp(t, `(?i)url\(|@import|expression`, css, "a style sheet must load nothing")
	require.Equal(t, strings.Count(css, "{"), strings.Count(css, "}"))
	require.Contains(t, css, "@media print")
	require.Contains(t, css, ":focus-visible")
	page := incidentText(t, web.IncidentView{Site: site("en")})
	for _, name := range names {
		require.Regexp(t, `href="`+regexp.QuoteMeta(web.AssetsPath+name)+`\?v=[0-9a-f]{12}"`, page)
	}
}

var (
	colourPattern = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`)
	classPattern  = regexp.MustCompile(`class="([^"{]*)"`)
)

// colours reads the colours of one theme: those of the dark one lie over the light ones.
func colours(css string, dark bool) map[string]string {
	light, rest, _ := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	out := map[string]string{}
	read := func(s string) {
		for _, m := range colourPattern.FindAllStringSubmatch(s, -1) {
			out[m[1]] = m[2]
		}
	}
	read(light)
	if dark {
		block, _, _ := strings.Cut(rest, "\n  }\n}")
		read(block)
	}
	return out
}

// luminance is the relative luminance of WCAG 2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		require.NoError(t, err, hex)
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func TestContrast(t *testing.T) {
	t.Parallel()
	css := style(t)
	for _, dark := range []bool{false, true} {
		c := colours(css, dark)
		want := func(least float64, ink string, grounds ...string) {
			for _, ground := range grounds {
				require.Contains(t, c, ink)
				require.Contains(t, c, ground)
				a, b := luminance(t, c[ink]), luminance(t, c[ground])
				ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05)
				require.GreaterOrEqual(t, ratio, least, "%s on %s, dark %v", ink, ground, dark)
			}
		}
		want(4.5, "ink", "ground", "card", "sunk")
		want(4.5, "soft", "ground", "card", "sunk")
		want(4.5, "link", "ground", "card", "sunk")
		want(4.5, "card", "link") // The words of the main button.
		want(4.5, "top-ink", "top")
		want(4.5, "top-soft", "top")
		want(3, "mark", "top")
		want(3, "focus", "ground", "card", "sunk")
		want(3, "soft", "card") // The edge of a field.
		for _, tone := range []string{"bad", "warn", "good", "calm", "unsure"} {
			want(4.5, tone, tone+"-soft", "card")
			want(3, tone, "ground", "sunk") // Bars and edges.
		}
		want(3, "amber", "card", "sunk")
		want(3, "fill", "card", "track")
	}
}

// TestEveryClassHasAStyle finds classes that the style sheet forgot, and styles that no page uses.
func TestEveryClassHasAStyle(t *testing.T) {
	t.Parallel()
	css := style(t)
	used := map[string]bool{}
	for _, s := range samples(t) {
		for _, m := range classPattern.FindAllStringSubmatch(s.page, -1) {
			for class := range strings.FieldsSeq(m[1]) {
				used[class] = true
			}
		}
	}
	used["tone-bad"] = true // Only some incidents are critical.
	bare := []string{
		// Names of parts that look like what they stand in.
		"book-head", "outcome", "next", "change", "answer-bottleneck", "answer-trigger", "is-critical", "chain-consequence",
		"next-step", "check-head", "rank-title", "rank-bar", "language-promql", "language-sh", "language-yaml", "language-text",
		"language-json", "for", "records", "level-medium", "reading",
	}
	defined := map[string]bool{}
	for _, m := range regexp.MustCompile(`\.([a-z][a-z0-9-]*)`).FindAllStringSubmatch(regexp.MustCompile(`(?s)/\*.*?\*/|\{[^{}]*\}`).ReplaceAllString(css, ";"), -1) {
		defined[m[1]] = true
	}
	var missing, dead []string
	for class := range used {
		if !defined[class] && !slices.Contains(bare, class) {
			missing = append(missing, class)
		}
	}
	for class := range defined {
		if !used[class] {
			dead = append(dead, class)
		}
	}
	require.Empty(t, missing, "classes without a style")
	require.Empty(t, dead, "styles that no page uses")
}
