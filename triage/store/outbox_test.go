package store_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

// shown opens an incident of that moment and stores a first report that is wanted in #llm.
func shown(t *testing.T, s *store.Store) string {
	t.Helper()
	id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
	finish(t, s, 20*time.Second, report("decode_bound", 20*time.Second, "firing"), store.Target{Channel: "#llm"})
	return id
}

// finish runs the job that is due and stores its report.
func finish(t *testing.T, s *store.Store, now time.Duration, r triage.Report, targets ...store.Target) int64 {
	t.Helper()
	revision, err := s.FinishTriage(t.Context(), claim(t, s, "w", now), store.Result{Report: r, Targets: targets}, at(now))
	require.NoError(t, err)
	return revision
}

func claimConversation(t *testing.T, s *store.Store, owner string, now time.Duration) store.Conversation {
	t.Helper()
	c, found, err := s.ClaimConversation(t.Context(), owner, at(now), lease)
	require.NoError(t, err)
	require.True(t, found, "a conversation is due at %s", now)
	return c
}

func noConversation(t *testing.T, s *store.Store, now time.Duration) {
	t.Helper()
	_, found, err := s.ClaimConversation(t.Context(), "nobody", at(now), lease)
	require.NoError(t, err)
	require.False(t, found)
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			id := shown(t, s)
			next, err := s.NextDelivery(ctx)
			require.NoError(t, err)
			require.False(t, next.IsZero())

			c := claimConversation(t, s, "a", 21*time.Second)
			require.Equal(t, id, c.IncidentID)
			require.Equal(t, int64(1), c.Wanted)
			require.Equal(t, int64(0), c.Shown)
			require.Equal(t, at(20*time.Second), c.WantedAt)
			require.Empty(t, c.Posts)
			require.False(t, c.Post(store.PartCard).Doubtful())
			noConversation(t, s, 22*time.Second)

			require.NoError(t, s.Intend(ctx, c, store.PartCard, at(22*time.Second)))
			require.NoError(t, s.Posted(ctx, c, store.PartCard, store.Ref{Channel: "C1", ID: "1.1"}, 1, at(23*time.Second)))
			require.NoError(t, s.Delivered(ctx, c, 1, at(23*time.Second), at(53*time.Second)))
			noConversation(t, s, time.Hour)
			next, err = s.NextDelivery(ctx)
			require.NoError(t, err)
			require.True(t, next.IsZero())

			// Two changes before the next edit are one edit, with a line in the thread for the one that says so.
			notify(t, s, 30*time.Second, firing("B", 30*time.Second))
			finish(t, s, 35*time.Second, report("decode_bound", 35*time.Second, "firing"), store.Target{Channel: "#llm"})
			notify(t, s, 40*time.Second, firing("C", 40*time.Second))
			require.Equal(t, int64(3), finish(t, s, 45*time.Second, report("prefill_bound", 45*time.Second, "firing"),
				store.Target{Channel: "#llm", Changed: json.RawMessage(`{"changed":1}`), Settings: json.RawMessage(`{"a":1}`)}))
			noConversation(t, s, 52*time.Second)
			c = claimConversation(t, s, "b", 53*time.Second)
			require.Equal(t, int64(3), c.Wanted)
			require.Equal(t, at(35*time.Second), c.WantedAt)
			require.JSONEq(t, `{"a":1}`, string(c.Settings))
			require.Equal(t, store.Ref{Channel: "C1", ID: "1.1"}, c.Post(store.PartCard).Ref)
			require.Equal(t, int64(1), c.Post(store.PartCard).Shown)
			change := c.Post("change-3")
			require.JSONEq(t, `{"changed":1}`, string(change.Body))
			require.Zero(t, change.Shown)
			require.NoError(t, s.Posted(ctx, c, "change-3", store.Ref{Channel: "C1", ID: "1.2"}, 1, at(54*time.Second)))
			require.NoError(t, s.Delivered(ctx, c, 3, at(54*time.Second), at(84*time.Second)))
			noConversation(t, s, time.Hour)

			all, err := s.Conversations(ctx, id)
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Len(t, all[0].Posts, 2)
			found, err := s.ConversationAt(ctx, store.Ref{Channel: "C1", ID: "1.2"})
			require.NoError(t, err)
			require.Equal(t, all[0].ID, found.ID)
			_, err = s.ConversationAt(ctx, store.Ref{Channel: "C1", ID: "9"})
			require.ErrorIs(t, err, store.ErrNotFound)
		})
	}
}

func TestNewsDuringADelivery(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			shown(t, s)
			c := claimConversation(t, s, "a", 21*time.Second)
			notify(t, s, 30*time.Second, firing("B", 30*time.Second))
			finish(t, s, 35*time.Second, report("decode_bound", 35*time.Second, "firing"), store.Target{Channel: "#llm"})
			require.NoError(t, s.Delivered(t.Context(), c, c.Wanted, at(36*time.Second), at(66*time.Second)))
			noConversation(t, s, 65*time.Second)
			c = claimConversation(t, s, "a", 66*time.Second)
			require.Equal(t, int64(2), c.Wanted)
			require.Equal(t, int64(1), c.Shown)
			require.Equal(t, at(36*time.Second), c.WantedAt)
		})
	}
}

// Whoever takes over from somebody who died between the post and its record sees that the message may be there.
func TestDoubtfulPost(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			shown(t, s)
			c := claimConversation(t, s, "a", 21*time.Second)
			require.NoError(t, s.Intend(ctx, c, store.PartCard, at(22*time.Second)))
			noConversation(t, s, 40*time.Second)
			d := claimConversation(t, s, "b", 42*time.Second)
			require.True(t, d.Post(store.PartCard).Doubtful())
			require.Equal(t, at(22*time.Second), d.Post(store.PartCard).IntentAt)
			// The first one is alive after all, but too late.
			for name, err := range map[string]error{
				"renew":       s.RenewConversation(ctx, c, at(time.Hour)),
				"intend":      s.Intend(ctx, c, store.PartCard, at(0)),
				"posted":      s.Posted(ctx, c, store.PartCard, store.Ref{Channel: "C", ID: "1"}, 1, at(0)),
				"unposted":    s.Unposted(ctx, c, store.PartCard),
				"lost":        s.Lost(ctx, c, store.PartCard),
				"delivered":   s.Delivered(ctx, c, 1, at(0), at(0)),
				"undelivered": s.Undelivered(ctx, c, store.Failure{}),
			} {
				require.ErrorIs(t, err, store.ErrLeaseLost, name)
			}
			require.NoError(t, s.RenewConversation(ctx, d, at(2*minute)))
			noConversation(t, s, 100*time.Second)
			// Looked for and not found: it may be posted, with a new intent.
			require.NoError(t, s.Unposted(ctx, d, store.PartCard))
			require.NoError(t, s.Intend(ctx, d, store.PartCard, at(50*time.Second)))
			require.NoError(t, s.Posted(ctx, d, store.PartCard, store.Ref{Channel: "C", ID: "7"}, 0, at(51*time.Second)))
			require.NoError(t, s.Undelivered(ctx, d, store.Failure{Reason: "timeout", Err: errors.New("x"), Next: at(minute)}))
			e := claimConversation(t, s, "a", 3*minute)
			require.False(t, e.Post(store.PartCard).Doubtful())
			require.Equal(t, "7", e.Post(store.PartCard).Ref.ID)
			require.Equal(t, "timeout", e.Reason)
			require.Equal(t, 3, e.Attempts)
		})
	}
}

func TestDeletedMessage(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			shown(t, s)
			c := claimConversation(t, s, "a", 21*time.Second)
			require.NoError(t, s.Posted(ctx, c, store.PartCard, store.Ref{Channel: "C", ID: "1"}, 1, at(0)))
			require.NoError(t, s.Posted(ctx, c, store.PartDetails, store.Ref{Channel: "C", ID: "2"}, 1, at(0)))
			require.NoError(t, s.Lost(ctx, c, store.PartCard))
			require.NoError(t, s.Undelivered(ctx, c, store.Failure{Next: at(0)}))
			c = claimConversation(t, s, "a", 21*time.Second)
			require.Equal(t, 1, c.Post(store.PartCard).Reposts)
			require.Empty(t, c.Post(store.PartCard).Ref.ID)
			require.False(t, c.Post(store.PartCard).Doubtful())
			require.Empty(t, c.Post(store.PartDetails).Ref.ID, "its thread is gone with it")
		})
	}
}

func TestDeadAndExpiredConversations(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			shown(t, s)
			c := claimConversation(t, s, "a", 21*time.Second)
			require.NoError(t, s.Undelivered(ctx, c, store.Failure{Reason: "auth", Err: errors.New("token revoked"), State: store.Dead}))
			noConversation(t, s, time.Hour)
			dead, err := s.DeadConversations(ctx)
			require.NoError(t, err)
			require.Len(t, dead, 1)
			require.Equal(t, "token revoked", dead[0].Error)

			// News do not revive it: the token is as wrong as before.
			notify(t, s, 30*time.Second, firing("B", 30*time.Second))
			finish(t, s, 35*time.Second, report("decode_bound", 35*time.Second, "firing"), store.Target{Channel: "#llm"})
			noConversation(t, s, time.Hour)
			n, err := s.ReviveConversation(ctx, 0, at(minute))
			require.NoError(t, err)
			require.Equal(t, int64(1), n)
			c = claimConversation(t, s, "a", minute)
			require.Equal(t, int64(2), c.Wanted, "it shows the newest state at once")

			require.NoError(t, s.Undelivered(ctx, c, store.Failure{Reason: "age", State: store.Expired}))
			n, err = s.ReviveConversation(ctx, 0, at(minute))
			require.NoError(t, err)
			require.Zero(t, n, "what is too old is revived by its id only")
			_, err = s.ReviveConversation(ctx, c.ID+1, at(minute))
			require.ErrorIs(t, err, store.ErrNotFound)
			n, err = s.ReviveConversation(ctx, c.ID, at(minute))
			require.NoError(t, err)
			require.Equal(t, int64(1), n)
			c = claimConversation(t, s, "a", minute)
			require.NoError(t, s.Undelivered(ctx, c, store.Failure{Reason: "age", State: store.Expired}))
			// News do revive one that expired.
			notify(t, s, 2*minute, firing("C", 2*minute))
			finish(t, s, 3*minute, report("decode_bound", 3*minute, "firing"), store.Target{Channel: "#llm"})
			require.Equal(t, at(3*minute), claimConversation(t, s, "a", 3*minute).WantedAt)
		})
	}
}

func TestShadow(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
			finish(t, s, 20*time.Second, report("decode_bound", 20*time.Second, "firing"),
				store.Target{Channel: "#quiet", Shadow: true}, store.Target{Channel: "#llm"})
			require.Equal(t, "#llm", claimConversation(t, s, "a", minute).Channel)
			noConversation(t, s, minute)
			all, err := s.Conversations(t.Context(), id)
			require.NoError(t, err)
			require.Len(t, all, 2)
			require.Equal(t, store.Shadow, all[0].State)
			pending, err := s.PendingConversations(t.Context())
			require.NoError(t, err)
			require.Len(t, pending, 1)
		})
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			id := shown(t, s)
			c := claimConversation(t, s, "a", 21*time.Second)
			require.NoError(t, s.Delivered(ctx, c, 1, at(22*time.Second), at(52*time.Second)))
			for range 2 { // The name makes it happen once.
				require.NoError(t, s.AddNote(ctx, id, "feedback-U1", json.RawMessage(`{"note":1}`), at(25*time.Second)))
			}
			c = claimConversation(t, s, "a", 26*time.Second) // A note does not wait for the next edit.
			require.Equal(t, at(25*time.Second), c.WantedAt)
			require.Len(t, c.Posts, 1)
			require.Equal(t, "note-feedback-U1", c.Posts[0].Part)
			require.NoError(t, s.Posted(ctx, c, c.Posts[0].Part, store.Ref{Channel: "C", ID: "1"}, 1, at(26*time.Second)))
			require.NoError(t, s.Delivered(ctx, c, c.Wanted, at(26*time.Second), at(0)))
			require.NoError(t, s.AddNote(ctx, id, "second", json.RawMessage(`{"note":2}`), at(27*time.Second)))
			c = claimConversation(t, s, "a", 28*time.Second)
			require.Len(t, c.Posts, 1, "what was said is not read again")
			require.Equal(t, "note-second", c.Posts[0].Part)
		})
	}
}

func TestNoteDuringADelivery(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, fresh(t))
			ctx := t.Context()
			id := shown(t, s)
			c := claimConversation(t, s, "a", 21*time.Second)
			require.NoError(t, s.AddNote(ctx, id, "n", json.RawMessage(`{"note":1}`), at(22*time.Second)))
			require.NoError(t, s.Delivered(ctx, c, c.Wanted, at(23*time.Second), at(53*time.Second)))
			c = claimConversation(t, s, "a", 24*time.Second)
			require.Len(t, c.Posts, 1)
			require.NoError(t, s.Posted(ctx, c, c.Posts[0].Part, store.Ref{Channel: "C7", ID: "1"}, 0, at(25*time.Second)))
			require.NoError(t, s.Delivered(ctx, c, c.Wanted, at(25*time.Second), at(55*time.Second)))
			noConversation(t, s, time.Hour)

			channel, err := s.ChannelID(ctx, "#llm")
			require.NoError(t, err)
			require.Equal(t, "C7", channel)
			channel, err = s.ChannelID(ctx, "#other")
			require.NoError(t, err)
			require.Empty(t, channel)
		})
	}
}

func TestLostLeaseStoresNothing(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
			j := claim(t, s, "a", 20*time.Second)
			claim(t, s, "b", minute)
			_, err := s.FinishTriage(t.Context(), j, store.Result{
				Report: report("decode_bound", minute, "firing"), Targets: []store.Target{{Channel: "#llm"}},
			}, at(minute))
			require.ErrorIs(t, err, store.ErrLeaseLost)
			require.Zero(t, incident(t, s, id).Revision)
			noConversation(t, s, time.Hour)
		})
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
			r, err := s.Reports(ctx, id)
			require.NoError(t, err)
			require.Nil(t, r.Latest)
			tell := func(bottleneck, status string, i int) store.Reports {
				now := time.Duration(i) * minute
				notify(t, s, now-10*time.Second, firing("A"+strconv.Itoa(i), now))
				finish(t, s, now, report(bottleneck, now, status))
				r, err := s.Reports(ctx, id)
				require.NoError(t, err)
				require.Equal(t, bottleneck, r.Latest.Bottlenecks[0].ID)
				return r
			}
			previous := func(r store.Reports) string {
				if r.Previous == nil {
					return ""
				}
				return r.Previous.Bottlenecks[0].ID
			}
			require.Empty(t, previous(tell("decode_bound", "firing", 1)))
			require.Equal(t, "decode_bound", previous(tell("prefill_bound", "firing", 2)))
			require.Equal(t, "prefill_bound", previous(tell("concurrency_cap", "firing", 3)))
			// Over: the last cause is told, however many times it is looked at again.
			require.Equal(t, "concurrency_cap", previous(tell("healthy", "firing", 4)))
			require.Equal(t, "concurrency_cap", previous(tell("healthy", "resolved", 5)))
			require.Equal(t, "concurrency_cap", previous(tell("decode_bound", "resolved", 6)))
			last := tell("healthy", "resolved", 7)
			require.Equal(t, "concurrency_cap", previous(last))
			require.Equal(t, int64(7), last.Revision)

			history, err := s.Verdicts(ctx, id)
			require.NoError(t, err)
			require.Len(t, history, 7)
			require.Equal(t, store.Verdict{
				Revision: 2, At: at(2 * minute), Status: "firing", Verdict: triage.CauseFound, Bottleneck: "prefill_bound",
				Trigger: "traffic_surge", Probability: 0.9,
			}, history[1])
			in := incident(t, s, id)
			require.Equal(t, triage.NoBottleneck, in.Verdict)
			require.Equal(t, "healthy", in.Bottleneck)
		})
	}
}

func TestSimilar(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ids := map[string]string{}
			for i, model := range []string{"demo", "other", "demo-2", "demo"} {
				now := time.Duration(i) * time.Hour
				id := notifyModel(t, s, model, now, firing("A", now)).Changes[0].IncidentID
				ids[model+strconv.Itoa(i)] = id
				cause := "decode_bound"
				if model == "demo-2" {
					cause = "prefill_bound"
				}
				finish(t, s, now+20*time.Second, report(cause, now, "firing"))
				notifyModel(t, s, model, now+minute, resolved("A", now, now+minute))
				finish(t, s, now+2*minute, report(cause, now, "resolved"))
			}
			last := incident(t, s, ids["demo3"])
			got, err := s.Similar(t.Context(), last, 5)
			require.NoError(t, err)
			require.Len(t, got, 2)
			require.Equal(t, ids["demo0"], got[0].ID, "the same model first")
			require.Equal(t, ids["other1"], got[1].ID)
			last.Bottleneck = ""
			got, err = s.Similar(t.Context(), last, 5)
			require.NoError(t, err)
			require.Empty(t, got)
		})
	}
}
