package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

// A channel takes one message a second. When more than that is to be told, an incident of which nobody knows yet comes before
// the edits of those that are known, however long these have waited.
func TestFirstMessagesComeFirst(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, fresh(t))
			known := shown(t, s)
			c := claimConversation(t, s, "a", 21*time.Second)
			require.NoError(t, s.Delivered(t.Context(), c, 1, at(22*time.Second), at(22*time.Second)))
			notify(t, s, 30*time.Second, firing("B", 30*time.Second))
			finish(t, s, 35*time.Second, report("decode_bound", 35*time.Second, "firing"), store.Target{Channel: "#llm"})
			unknown := notifyModel(t, s, "other", 40*time.Second, firing("A", 40*time.Second)).Changes[0].IncidentID
			finish(t, s, 60*time.Second, report("decode_bound", 60*time.Second, "firing"), store.Target{Channel: "#llm"})
			require.Equal(t, unknown, claimConversation(t, s, "a", 61*time.Second).IncidentID)
			require.Equal(t, known, claimConversation(t, s, "b", 61*time.Second).IncidentID)
		})
	}
}
