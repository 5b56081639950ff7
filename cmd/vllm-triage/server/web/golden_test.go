package web_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden are the pages that are kept as files: one of each kind, and each kind of verdict.
var golden = []string{
	"incident-kv-longer-outputs.en", "incident-kv-longer-outputs.ko", "incident-kv-longer-outputs-read-only.en",
	"incident-inconclusive.en", "incident-healthy.ko", "incident-low-traffic.en", "incident-resolved.en", "incident-recovered.ko",
	"incident-changed.en", "incident-missing-data.en", "incident-hostile.en", "incident-late-flapping.en", "incident-adhoc.en",
	"incident-no-baseline.en", "incident-untriaged.en", "incident-untriaged.ko",
	"list.en", "list.ko", "list-empty.en", "list-no-match.ko",
	"runbook-kv_cache_exhaustion-incident.en", "runbook-kv_cache_exhaustion-incident.ko", "runbook-unknown.en",
	"error-404.en", "error-503.ko",
}

// versionPattern is the hash of the style sheet, whose every change would change every golden file.
var versionPattern = regexp.MustCompile(`\?v=[0-9a-f]{12}`)

func TestGolden(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for _, s := range samples(t) {
		pages[s.name] = versionPattern.ReplaceAllString(s.page, "?v=HASH")
	}
	for _, name := range golden {
		got, ok := pages[name]
		require.True(t, ok, name)
		file := filepath.Join("testdata", "golden", name+".html")
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if *update {
		return
	}
	files, err := filepath.Glob("testdata/golden/*.html")
	require.NoError(t, err)
	require.Len(t, files, len(golden), "files that no test reads")
}
