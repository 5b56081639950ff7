package runbook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/kb/runbook"
)

func TestLoadEmbedded(t *testing.T) {
	t.Parallel()
	_, err := runbook.Load(runbook.Embedded())
	require.NoError(t, err)
}
