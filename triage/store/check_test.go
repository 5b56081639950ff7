package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

func TestChecks(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, address(t))
			id := notify(t, s, 0, firing("a", 0)).Changes[0].IncidentID
			ctx := t.Context()
			c := store.Check{IncidentID: id, Author: "mina", Cause: "kv_cache_exhaustion", Step: "lower", AskedAt: at(time.Second)}
			require.NoError(t, s.AskCheck(ctx, c))
			require.NoError(t, s.AskCheck(ctx, c), "a double click")
			all, err := s.Checks(ctx, id)
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.True(t, all[0].DoneAt.IsZero())
			require.Nil(t, all[0].Body)
			j := claim(t, s, "w", time.Second) // Before the debounce has ended.
			require.Equal(t, id, j.IncidentID)

			require.NoError(t, s.FinishCheck(ctx, all[0].ID, json.RawMessage(`{"n":1}`), at(2*time.Second)))
			require.NoError(t, s.FinishCheck(ctx, all[0].ID, json.RawMessage(`{"n":2}`), at(3*time.Second)))
			require.NoError(t, s.AskCheck(ctx, c), "again, after the first was made")
			all, err = s.Checks(ctx, id)
			require.NoError(t, err)
			require.Len(t, all, 2)
			require.JSONEq(t, `{"n":1}`, string(all[0].Body))
			require.Equal(t, at(2*time.Second), all[0].DoneAt)

			c.IncidentID = "nobody"
			require.ErrorIs(t, s.AskCheck(ctx, c), store.ErrNotFound)

			notify(t, s, time.Hour, resolved("a", 0, time.Hour))
			n, err := s.Prune(ctx, at(2*time.Hour), at(2*time.Hour))
			require.NoError(t, err)
			require.Equal(t, 1, n)
			all, err = s.Checks(ctx, id)
			require.NoError(t, err)
			require.Empty(t, all)
		})
	}
}
