package chatops_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/notify/locale"
	"vllm-triage/notify/slack"
)

func readLocale(t *testing.T, language string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("locale", language+".yaml"))
	require.NoError(t, err)
	out := map[string]string{}
	require.NoError(t, yaml.Unmarshal(data, &out))
	return out
}

var literal = regexp.MustCompile(`"([a-z]+(?:\.[a-z0-9_]+)*)"`)

// TestWordsAreCompleteAndUsed finds keys that a language lacks, that nobody says, and placeholders that differ.
func TestWordsAreCompleteAndUsed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	said := map[string]bool{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		code, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range literal.FindAllStringSubmatch(string(code), -1) {
			said[m[1]] = true
			said[m[1]+".one"], said[m[1]+".other"] = true, true
		}
	}
	// Keys that are put together.
	for _, a := range chatops.Acts() {
		said["act."+string(a)] = true
	}
	for _, o := range []string{"right", "partly", "wrong"} {
		said["opinion."+o], said["note."+o], said["note."+o+"_cause"] = true, true, true
	}
	for _, s := range []string{slack.Silence1h, slack.Silence4h, slack.Silence24h} {
		said["length."+s] = true
	}
	said["explain.axis.bottleneck"], said["explain.axis.trigger"] = true, true

	english := readLocale(t, "en")
	for key := range english {
		require.True(t, said[key], "nobody says %s", key)
	}
	for _, a := range chatops.Acts() {
		if a != chatops.ActHelp && a != chatops.ActLink && a != chatops.ActOther {
			require.Contains(t, english, "act."+string(a))
		}
	}
	for _, language := range locale.Languages() {
		words := readLocale(t, language)
		for key, text := range english {
			other, ok := words[key]
			require.True(t, ok, "%s lacks %s", language, key)
			require.NotEmpty(t, other)
			want, got := locale.Names(text), locale.Names(other)
			slices.Sort(want)
			slices.Sort(got)
			if !strings.HasSuffix(key, ".one") {
				require.Equal(t, want, got, "placeholders of %s in %s", key, language)
			}
		}
		require.Len(t, words, len(english), "%s has keys of its own", language)
	}
	// What the code says exists: the literals that look like keys of ours.
	prefixes := map[string]bool{}
	for key := range english {
		prefix, _, _ := strings.Cut(key, ".")
		prefixes[prefix] = true
	}
	for key := range said {
		prefix, rest, ok := strings.Cut(key, ".")
		if !ok || !prefixes[prefix] || strings.HasSuffix(key, ".one") || strings.HasSuffix(key, ".other") ||
			rest == "yaml" || prefix == "act" || prefix == "note" || prefix == "opinion" {
			continue
		}
		_, plain := english[key]
		_, counted := english[key+".other"]
		require.True(t, plain || counted, "nobody wrote %s", key)
	}
}
