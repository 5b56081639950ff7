package web_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify/locale"
)

func TestEveryLanguageHasTheSameWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, languages, locale.Languages())
	en := web.Words("en")
	for _, language := range languages {
		words := web.Words(language)
		require.Equal(t, slices.Sorted(maps.Keys(en)), slices.Sorted(maps.Keys(words)), language)
		for key, text := range words {
			require.NotEmpty(t, strings.TrimSpace(text), "%s %s", language, key)
			if strings.HasSuffix(key, ".one") {
				continue // One may leave the number out.
			}
			want, got := locale.Names(en[key]), locale.Names(text)
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, "%s %s", language, key)
		}
	}
}

// source is the code and the templates of the package.
func source(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, pattern := range []string{"*.go", "templates/*.html"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				b.Write(data)
			}
		}
	}
	return b.String()
}

// keyPattern finds the keys that the source asks for: T "key" and N "key" in templates, and literals in code.
var keyPattern = regexp.MustCompile(`"([a-z]+\.(?:[a-z_0-9]+\.)*[a-z_0-9]*)"`)

func TestEveryWordIsUsedAndThere(t *testing.T) {
	t.Parallel()
	code := source(t)
	en := web.Words("en")
	asked := map[string]bool{}
	for _, m := range keyPattern.FindAllStringSubmatch(code, -1) {
		asked[m[1]] = true
	}
	stem := func(key string) string { // Without the number's form, where a key has both.
		for _, form := range []string{".one", ".other"} {
			if base, ok := strings.CutSuffix(key, form); ok && en[base+".one"] != "" && en[base+".other"] != "" {
				return base
			}
		}
		return key
	}
	known := map[string]bool{}
	for key := range en {
		known[stem(key)] = true
		// "state." + x asks for all states; "error." + x + ".title" for all of an error.
		prefix, _, _ := strings.Cut(key, ".")
		require.True(t, asked[stem(key)] || asked[prefix+"."] || strings.Contains(code, `"`+stem(key)+`"`), "%s is not used", key)
	}
	for key := range asked {
		section, _, _ := strings.Cut(key, ".")
		if !slices.ContainsFunc(slices.Collect(maps.Keys(en)), func(k string) bool { return strings.HasPrefix(k, section+".") }) {
			continue // Not a key: a file name.
		}
		if prefix := key; strings.HasSuffix(key, ".") {
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(en)), func(k string) bool { return strings.HasPrefix(k, prefix) }), key)
			continue
		}
		require.True(t, known[key], "%s is asked for and not there", key)
	}
}

// TestPagesSpeakOneLanguage wants no English word of the catalogue on a Korean page, and no key on any.
func TestPagesSpeakOneLanguage(t *testing.T) {
	t.Parallel()
	en, ko := web.Words("en"), web.Words("ko")
	for _, s := range samples(t) {
		page := s.page
		for key := range en {
			if strings.Contains(page, ">"+key+"<") {
				t.Errorf("%s shows the key %s", s.name, key)
			}
		}
		if !strings.HasSuffix(s.name, ".ko") {
			continue
		}
		require.Contains(t, page, `<html lang="ko">`)
		for key, english := range en {
			if english != ko[key] && len(english) > 20 && strings.Contains(page, english) {
				t.Errorf("%s says %q", s.name, english)
			}
		}
	}
}
