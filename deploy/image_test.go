package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"
)

// dockerignore is what the builder does not get to see.
func dockerignore(t *testing.T) *patternmatcher.PatternMatcher {
	t.Helper()
	text, err := os.ReadFile("../.dockerignore")
	require.NoError(t, err)
	patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	return matcher
}

// sent says whether a file of the repository goes to the builder.
func sent(t *testing.T, ignored *patternmatcher.PatternMatcher, file string) bool {
	t.Helper()
	drop, err := ignored.MatchesOrParentMatches(file)
	require.NoError(t, err)
	return !drop
}

// TestImageHasItsSources holds the Dockerfile against the repository: what it copies is there, and .dockerignore lets
// everything through that the binary is made of, embedded files too.
func TestImageHasItsSources(t *testing.T) {
	t.Parallel()
	ignored := dockerignore(t)
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	copied := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "COPY" || strings.HasPrefix(fields[1], "--from") {
			continue
		}
		for _, source := range fields[1 : len(fields)-1] {
			copied++
			_, err := os.Stat(filepath.Join("..", source))
			require.NoError(t, err)
			if source != "." {
				require.True(t, sent(t, ignored, source), source)
			}
		}
	}
	require.Greater(t, copied, 3)

	root, err := filepath.Abs("..")
	require.NoError(t, err)
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,GoFiles,EmbedFiles,Standard,Module", "./cmd/vllm-triage")
	list.Dir, list.Env = root, append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := list.Output()
	require.NoError(t, err)
	files := 0
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir                 string
			GoFiles, EmbedFiles []string
			Module              *struct{ Main bool }
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if p.Module == nil || !p.Module.Main {
			continue
		}
		dir, err := filepath.Rel(root, p.Dir)
		require.NoError(t, err)
		for _, name := range append(p.GoFiles, p.EmbedFiles...) {
			files++
			file := filepath.Join(dir, name)
			require.True(t, sent(t, ignored, file), "%s is part of the binary and does not reach the builder", file)
		}
	}
	require.Greater(t, files, 200)
}

// TestImageHasNothingElse: tests and recordings make the context big, and what is no source has no business in it.
func TestImageHasNothingElse(t *testing.T) {
	t.Parallel()
	ignored := dockerignore(t)
	for _, file := range []string{
		".git/config", "bin/vllm-triage", "deploy/config.yaml", "triage/engine_test.go",
		"triage/testdata/incidents/README.md", "Makefile", "secrets/token",
	} {
		require.False(t, sent(t, ignored, file), file)
	}
}
