package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

// A commit waits for the disk (FULL), or what was answered with 200 would not survive a power cut; only who asks for it goes
// without.
func TestCommitsWaitForTheDisk(t *testing.T) {
	t.Parallel()
	for noSync, want := range map[bool]string{false: "2", true: "0"} {
		s, err := store.Open(t.Context(), storetest.SQLite(t), store.Options{NoSync: noSync})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		got, err := s.Setting(t.Context(), "synchronous")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
