package main_test

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "vllm-triage/"

// layout says which folders of ours the code of a folder may import, itself apart. The same table stands in
// .golangci.yml (depguard); this one needs no linter and knows tests from code.
var layout = map[string]struct{ code, tests []string }{
	"promq":  {},
	"triage": {code: []string{"promq"}},
	// Rendering never queries; its tests may make a report from a recording.
	"notify": {code: []string{"triage"}, tests: []string{"promq"}},
	"config": {},
	"cmd":    {code: []string{"config", "notify", "promq", "triage"}},
	"deploy": {tests: []string{"cmd", "config", "notify", "promq", "triage"}},
}

// heavy are packages that no file may import, with the reason. An entry that ends in a slash bans what is below it too.
var heavy = map[string]string{
	"github.com/prometheus/alertmanager/config/":          "pulls the notifiers",
	"github.com/prometheus/alertmanager/notify/":          "doubles the binary; embed template.Data",
	"github.com/prometheus/prometheus/config/":            "pulls the cloud SDKs",
	"github.com/prometheus/prometheus/discovery/":         "pulls the cloud SDKs",
	"github.com/prometheus/prometheus/promql/promqltest/": "pulls tsdb; use promq/promqtest",
	"github.com/prometheus/prometheus/storage/remote/":    "pulls the cloud SDKs",
	"github.com/prometheus/prometheus/tsdb":               "pulls the cloud SDKs; use promq/recording",
	"github.com/prometheus/prometheus/util/teststorage/":  "pulls tsdb; use promq/promqtest",
}

// fault returns what is wrong with one import of a file, or "". The file's path is relative to the module's root.
func fault(file, imported string) string {
	for banned, why := range heavy {
		below := strings.TrimSuffix(banned, "/")
		if imported == below || (below != banned && strings.HasPrefix(imported, banned)) {
			return why
		}
	}
	own, ours := strings.CutPrefix(imported, module)
	if !ours {
		return ""
	}
	from, _, _ := strings.Cut(file, "/")
	to, _, _ := strings.Cut(own, "/")
	rule, known := layout[from]
	if !known {
		return from + " is no folder of the layout"
	}
	allowed := append([]string{from}, rule.code...)
	if strings.HasSuffix(file, "_test.go") {
		allowed = append(allowed, rule.tests...)
	}
	if slices.Contains(allowed, to) {
		return ""
	}
	return from + " must not import " + to
}

// goFiles lists the Go files of the repository, relative to its root: those that git tracks or would, and all of them where
// there is no git.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	if out, err := list.Output(); err == nil {
		return strings.Fields(string(out))
	}
	var files []string
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(file string, _ fs.DirEntry, err error) error {
		if path.Ext(file) == ".go" {
			files = append(files, file)
		}
		return err
	}))
	return files
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	files := goFiles(t, root)
	require.Greater(t, len(files), 20, "the test must see the repository")
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
		if errors.Is(err, fs.ErrNotExist) {
			continue // Deleted, and the deletion not committed yet.
		}
		require.NoError(t, err)
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if why := fault(file, imported); why != "" {
				t.Errorf("%s imports %s: %s", file, imported, why)
			}
		}
	}
}

func TestImportRulesRefuse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		file, imported string
		refused        bool
	}{
		{"promq/client.go", "vllm-triage/triage", true},
		{"promq/recording/serve.go", "vllm-triage/promq/memstore", false},
		{"triage/engine.go", "vllm-triage/promq", false},
		{"triage/store/jobs.go", "vllm-triage/notify", true},
		{"triage/engine_test.go", "vllm-triage/config", true},
		{"notify/slack/post.go", "vllm-triage/triage", false},
		{"notify/slack/post.go", "vllm-triage/promq", true},
		{"notify/slack/post_test.go", "vllm-triage/promq/recording", false},
		{"config/load.go", "vllm-triage/promq", true},
		{"cmd/vllm-triage/server/server.go", "vllm-triage/notify/slack", false},
		{"deploy/rules_test.go", "vllm-triage/config", false},
		{"deploy/sbom/main.go", "vllm-triage/config", true},
		{"tools/main.go", "vllm-triage/promq", true},
		{"promq/client.go", "github.com/prometheus/prometheus/tsdb", true},
		{"promq/client.go", "github.com/prometheus/prometheus/tsdb/index", false},
		{"promq/promqtest/server.go", "github.com/prometheus/prometheus/promql", false},
		{"triage/payload.go", "github.com/prometheus/alertmanager/notify/webhook", true},
		{"triage/payload.go", "github.com/prometheus/alertmanager/template", false},
	} {
		require.Equal(t, tc.refused, fault(tc.file, tc.imported) != "", "%s imports %s", tc.file, tc.imported)
	}
}
