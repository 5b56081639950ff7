package store_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

const lease = 20 * time.Second

func TestJobLife(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			next, err := s.NextJob(ctx)
			require.NoError(t, err)
			require.True(t, next.IsZero())
			require.NoError(t, s.Enqueue(ctx, store.KindSweep, "", "start", at(minute)))
			require.NoError(t, s.Enqueue(ctx, store.KindSweep, "", "later", at(2*minute)))
			require.NoError(t, s.Enqueue(ctx, store.KindPrune, "", "x", at(5*minute)))
			next, err = s.NextJob(ctx)
			require.NoError(t, err)
			require.Equal(t, at(minute), next, "the earlier time counts")
			noJob(t, s, 59*time.Second)

			j := claim(t, s, "a", minute)
			require.Equal(t, store.KindSweep, j.Kind)
			require.Equal(t, 1, j.Attempts)
			noJob(t, s, minute)
			next, err = s.NextJob(ctx)
			require.NoError(t, err)
			require.Equal(t, at(minute+lease), next, "when the lease ends it is due again")

			// The holder prolongs its lease, then dies; another takes over.
			require.NoError(t, s.Renew(ctx, j, at(2*minute)))
			noJob(t, s, 2*minute-time.Second)
			k := claim(t, s, "b", 2*minute)
			require.Equal(t, j.ID, k.ID)
			require.Equal(t, 2, k.Attempts)
			for name, err := range map[string]error{
				"renew":  s.Renew(ctx, j, at(3*minute)),
				"finish": s.Finish(ctx, j, time.Time{}),
				"retry":  s.Retry(ctx, j, at(0), errors.New("x")),
				"bury":   s.Bury(ctx, j, errors.New("x")),
			} {
				require.ErrorIs(t, err, store.ErrLeaseLost, name)
			}

			require.NoError(t, s.Retry(ctx, k, at(3*minute), errors.New("prometheus is down")))
			k = claim(t, s, "b", 3*minute)
			require.Equal(t, 3, k.Attempts)
			require.Equal(t, "prometheus is down", k.Error)
			require.NoError(t, s.Bury(ctx, k, errors.New(strings.Repeat("é", 600))))
			noJob(t, s, 4*minute)
			dead, err := s.DeadJobs(ctx)
			require.NoError(t, err)
			require.Len(t, dead, 1)
			require.Len(t, []rune(dead[0].Error), 500)
			require.NoError(t, s.ReviveJob(ctx, k.ID, at(4*minute)))
			require.ErrorIs(t, s.ReviveJob(ctx, k.ID, at(4*minute)), store.ErrNotFound)
			k = claim(t, s, "b", 4*minute)
			require.Equal(t, 1, k.Attempts)
			require.NoError(t, s.Finish(ctx, k, time.Time{}))
			all, err := s.Jobs(ctx)
			require.NoError(t, err)
			require.Len(t, all, 1, "a finished job is gone")
		})
	}
}

func TestJobWantedWhileItRuns(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			require.NoError(t, s.Enqueue(ctx, store.KindTriage, "i", "opened", at(0)))
			j := claim(t, s, "a", 0)
			require.NoError(t, s.Enqueue(ctx, store.KindTriage, "i", "joined", at(10*time.Second)))
			require.NoError(t, s.Enqueue(ctx, store.KindTriage, "i", "resolved", at(5*time.Second)))
			noJob(t, s, 15*time.Second)
			require.NoError(t, s.Finish(ctx, j, at(minute)))
			noJob(t, s, 4*time.Second)
			j = claim(t, s, "a", 5*time.Second)
			require.Equal(t, "resolved", j.Reason)
			require.NoError(t, s.Finish(ctx, j, at(minute)))
			j = claim(t, s, "a", minute)
			require.NoError(t, s.Finish(ctx, j, time.Time{}))
			// A dead one is revived by news of its incident.
			require.NoError(t, s.Enqueue(ctx, store.KindTriage, "i", "opened", at(0)))
			require.NoError(t, s.Bury(ctx, claim(t, s, "a", 0), errors.New("x")))
			require.NoError(t, s.Enqueue(ctx, store.KindTriage, "i", "joined", at(minute)))
			noJob(t, s, 59*time.Second)
			require.Equal(t, 1, claim(t, s, "a", minute).Attempts)
		})
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			id := shown(t, s)
			require.NoError(t, s.Enqueue(ctx, store.KindSweep, "", "x", at(0)))
			j := claim(t, s, "a", minute)
			c := claimConversation(t, s, "a", minute)
			require.Equal(t, id, c.IncidentID)
			require.NoError(t, s.Release(ctx, "b"))
			require.NoError(t, s.Renew(ctx, j, at(2*minute)), "others' leases stay")
			require.NoError(t, s.Release(ctx, "a"))
			require.Equal(t, 1, claim(t, s, "b", minute).Attempts, "the released attempt does not count")
			claimConversation(t, s, "b", minute)
		})
	}
}

// However many workers claim, each job runs once.
func TestConcurrentClaims(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			stores := []*store.Store{storetest.Open(t, address), storetest.Open(t, address)}
			const jobs = 60
			for i := range jobs {
				require.NoError(t, stores[0].Enqueue(t.Context(), store.KindTriage, string(rune('A'+i)), "x", at(0)))
			}
			var mu sync.Mutex
			ran := map[string]int{}
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					s := stores[i%2]
					for {
						j, found, err := s.Claim(t.Context(), string(rune('a'+i)), at(minute), time.Hour)
						if err != nil {
							t.Error(err)
							return
						}
						if !found {
							return
						}
						mu.Lock()
						ran[j.IncidentID]++
						mu.Unlock()
						if err := s.Finish(t.Context(), j, time.Time{}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			require.Len(t, ran, jobs)
			for id, n := range ran {
				require.Equal(t, 1, n, id)
			}
		})
	}
}
