package notify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/locale"
	"vllm-triage/triage/kb"
)

// A cause has one name: in the knowledge base, which the API and the command line print, and in messages.
func TestCausesAreCalledTheSameEverywhere(t *testing.T) {
	t.Parallel()
	en := locale.For("en")
	for _, c := range kb.Default().Causes {
		title, ok := en.Find(string(c.Axis) + "." + c.ID + ".title")
		require.True(t, ok, c.ID)
		require.Equal(t, title, c.Title, c.ID)
	}
}
