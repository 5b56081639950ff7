package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// program returns the path of a program, from bin/tools or PATH. Without it the test is skipped, and fails where all
// programs are required (CI).
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if found, err := filepath.Glob(filepath.Join("..", "bin", "tools", name+"-v*")); err == nil && len(found) > 0 {
			abs, err := filepath.Abs(found[len(found)-1])
			require.NoError(t, err)
			return abs
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("VLLM_TRIAGE_REQUIRE_TOOLS") != "" {
		t.Fatalf("%v: not installed, and VLLM_TRIAGE_REQUIRE_TOOLS is set", names)
	}
	t.Skipf("%v: not installed", names)
	return ""
}

// run runs a program and returns what it printed to both streams; a failure ends the test with it.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", filepath.Base(name), args, out)
	return string(out)
}
