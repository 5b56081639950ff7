package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/alertmanager/template"
	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

const minute = time.Minute

func TestOneIncidentFromSeveralAlerts(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			out := notify(t, s, 0, firing("TTFT", -minute))
			require.True(t, out.Changes[0].Opened)
			id := out.Changes[0].IncidentID
			out = notify(t, s, 5*time.Second, firing("Queue", -2*minute), firing("TTFT", -minute))
			require.Equal(t, store.Change{IncidentID: id, Began: 1}, out.Changes[0])
			notifyModel(t, s, "other", 6*time.Second, firing("Other", -minute))

			in, alerts, err := s.Incident(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, triage.StatusFiring, in.Status)
			require.Equal(t, "demo", in.Scope.Model)
			require.Equal(t, at(-2*minute), in.StartedAt)
			require.Equal(t, at(0), in.OpenedAt)
			require.Equal(t, at(5*time.Second), in.NotifiedAt)
			require.Len(t, alerts, 2)
			require.Equal(t, "Queue", alerts[0].Name, "the earliest first")
			require.Equal(t, map[string]string{"alertname": "Queue", "model_name": "demo"}, alerts[0].Labels)

			// One job for both, when the debounce time of the first is over.
			noJob(t, s, 19*time.Second)
			j := claim(t, s, "w", 20*time.Second)
			require.Equal(t, id, j.IncidentID)
			require.Equal(t, "joined", j.Reason)
			claim(t, s, "w", 26*time.Second) // The other model's.
			noJob(t, s, 27*time.Second)

			all, err := s.Incidents(t.Context(), store.Filter{})
			require.NoError(t, err)
			require.Len(t, all, 2)
			require.Equal(t, "other", all[0].Scope.Model, "the newest first")
			models, err := s.Models(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"demo", "other"}, models)
		})
	}
}

func TestCopiesAndRepeats(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("TTFT", -minute)).Changes[0].IncidentID
			out := notify(t, s, time.Second, firing("TTFT", -minute))
			require.True(t, out.Duplicate)
			require.Equal(t, store.Change{IncidentID: id}, out.Changes[0])
			require.Zero(t, incident(t, s, id).Repeats)
			out = notify(t, s, 4*time.Hour, firing("TTFT", -minute))
			require.False(t, out.Duplicate, "after the window it is a repeat")
			require.Equal(t, 1, incident(t, s, id).Repeats)
			require.Equal(t, at(4*time.Hour), incident(t, s, id).NotifiedAt)
		})
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("A", -minute), firing("B", -minute)).Changes[0].IncidentID
			// The root status of the notification does not count: one alert of it has ended.
			out := notify(t, s, minute, resolved("A", -minute, 30*time.Second), firing("B", -minute))
			require.Equal(t, store.Change{IncidentID: id, Ended: 1}, out.Changes[0])
			require.Equal(t, triage.StatusFiring, incident(t, s, id).Status)
			out = notify(t, s, 2*minute, resolved("B", -minute, 90*time.Second))
			require.Equal(t, store.Change{IncidentID: id, Ended: 1, Resolved: true}, out.Changes[0])
			in, alerts, err := s.Incident(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, triage.StatusResolved, in.Status)
			require.Equal(t, at(90*time.Second), in.ResolvedAt)
			require.Equal(t, triage.StatusResolved, alerts[1].Status)
			require.Equal(t, at(90*time.Second), alerts[1].EndsAt)
			f, r, err := s.AlertCounts(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, [2]int{0, 2}, [2]int{f, r})
			// A resolve without an end ends now.
			other := notifyModel(t, s, "m", 0, firing("A", 0)).Changes[0].IncidentID
			x := resolved("A", 0, 0)
			x.EndsAt = time.Time{}
			notifyModel(t, s, "m", 3*minute, x)
			require.Equal(t, at(3*minute), incident(t, s, other).ResolvedAt)
		})
	}
}

func TestResolveNeverOpens(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			out := notify(t, s, 0, resolved("A", -minute, 0))
			require.Equal(t, store.Change{}, out.Changes[0])
			all, err := s.Incidents(t.Context(), store.Filter{})
			require.NoError(t, err)
			require.Empty(t, all)
			noJob(t, s, time.Hour)
			// The late notification that it began changes nothing, but it is looked into.
			out = notify(t, s, time.Second, firing("A", -minute))
			require.Equal(t, store.Change{Doubts: 1}, out.Changes[0])
			suspects, err := s.Suspects(t.Context(), at(minute), at(0), 10)
			require.NoError(t, err)
			require.Len(t, suspects, 1)
			require.True(t, suspects[0].Doubted)
			require.Equal(t, "A", suspects[0].Alert.Name)
			require.NoError(t, s.ClearDoubt(t.Context(), suspects[0]))
			suspects, err = s.Suspects(t.Context(), at(minute), at(0), 10)
			require.NoError(t, err)
			require.Empty(t, suspects)
			// A new period opens an incident.
			require.True(t, notify(t, s, minute, firing("A", 30*time.Second)).Changes[0].Opened)
		})
	}
}

func TestFlapsContinueTheIncident(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("A", -minute)).Changes[0].IncidentID
			notify(t, s, minute, resolved("A", -minute, 50*time.Second))
			out := notify(t, s, 10*minute, firing("A", 9*minute))
			require.Equal(t, store.Change{IncidentID: id, Reopened: true, Began: 1}, out.Changes[0])
			in := incident(t, s, id)
			require.Equal(t, 1, in.Flaps)
			require.Equal(t, at(10*minute), in.FiringSince)
			require.True(t, in.ResolvedAt.IsZero())
			notify(t, s, 11*minute, resolved("A", 9*minute, 11*minute))
			// Another alert of the scope within the window continues it too.
			require.True(t, notify(t, s, 20*minute, firing("B", 20*minute)).Changes[0].Reopened)
			notify(t, s, 21*minute, resolved("B", 20*minute, 21*minute))
			out = notify(t, s, time.Hour, firing("A", 59*minute))
			require.True(t, out.Changes[0].Opened, "after the flap window it is another incident")
			require.NotEqual(t, id, out.Changes[0].IncidentID)
			_, alerts, err := s.Incident(t.Context(), out.Changes[0].IncidentID)
			require.NoError(t, err)
			require.Len(t, alerts, 1)
		})
	}
}

func TestLateAlertThatOverlapsJoins(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
			notify(t, s, 10*minute, resolved("A", 0, 9*minute))
			// Its notification was held up for an hour, longer than the flap window; it began while A fired.
			out := notify(t, s, time.Hour, firing("B", 5*minute))
			require.Equal(t, store.Change{IncidentID: id, Reopened: true, Began: 1}, out.Changes[0])
		})
	}
}

func TestEndOfAnEarlierPeriodChangesNothing(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("A", 10*minute)).Changes[0].IncidentID
			out := notify(t, s, minute, resolved("A", 0, 5*minute))
			require.Equal(t, store.Change{IncidentID: id}, out.Changes[0])
			require.Equal(t, triage.StatusFiring, incident(t, s, id).Status)
			// Prometheus servers of a pair give start times some seconds apart; the end counts all the same.
			require.True(t, notify(t, s, 20*minute, resolved("A", 10*minute-5*time.Second, 15*minute)).Changes[0].Resolved)
		})
	}
}

func TestAnAlertBackWithItsOldStart(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
			notify(t, s, minute, resolved("A", 0, minute))
			out := notify(t, s, 2*minute, firing("A", 0))
			require.Equal(t, store.Change{IncidentID: id, Doubts: 1}, out.Changes[0])
			require.Equal(t, triage.StatusResolved, incident(t, s, id).Status)
			suspects, err := s.Suspects(t.Context(), at(2*minute), at(0), 10)
			require.NoError(t, err)
			require.Len(t, suspects, 1)
			require.Equal(t, id, suspects[0].IncidentID)
			// Asked, Prometheus says that it does fire: the next period begins after the end that was not true.
			x := suspects[0].Alert
			x.Status, x.StartsAt, x.EndsAt = triage.StatusFiring, x.EndsAt.Add(time.Millisecond), time.Time{}
			require.True(t, notify(t, s, 3*minute, x).Changes[0].Reopened)
			suspects, err = s.Suspects(t.Context(), at(time.Hour), at(0), 10)
			require.NoError(t, err)
			require.Empty(t, suspects)
			// Much later, after its end, the same start once more: the same alert, the same incident.
			notify(t, s, 4*minute, resolved("A", 0, 4*minute))
			d := delivery("demo", 10*time.Hour, firing("A", 5*minute))
			d.Incidents[0].ID = id
			again, err := s.Intake(t.Context(), d, policy)
			require.NoError(t, err)
			require.Equal(t, store.Change{IncidentID: id, Reopened: true, Began: 1}, again.Changes[0])
		})
	}
}

func TestQuietIncidentsAreSuspects(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			id := notify(t, s, 0, firing("A", 0), resolved("B", -minute, 0)).Changes[0].IncidentID
			suspects, err := s.Suspects(t.Context(), at(0), at(-minute), 10)
			require.NoError(t, err)
			require.Empty(t, suspects)
			suspects, err = s.Suspects(t.Context(), at(0), at(minute), 10)
			require.NoError(t, err)
			require.Len(t, suspects, 1)
			require.Equal(t, id, suspects[0].IncidentID)
			require.False(t, suspects[0].Doubted)
			require.Equal(t, "A", suspects[0].Alert.Name)
		})
	}
}

func TestTruncatedIsCountedByGroup(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			send := func(group string, truncated int, received time.Duration) string {
				d := delivery("demo", received, firing("A", 0))
				d.Key, d.Incidents[0].GroupKey, d.Incidents[0].Truncated = fmt.Sprint(group, received), group, truncated
				out, err := s.Intake(t.Context(), d, policy)
				require.NoError(t, err)
				return out.Changes[0].IncidentID
			}
			id := send("g1", 7, 0)
			send("g2", 5, time.Second)
			require.Equal(t, 12, incident(t, s, id).Truncated)
			send("g1", 0, 2*time.Second)
			require.Equal(t, 5, incident(t, s, id).Truncated)
		})
	}
}

func TestFloodOfAlerts(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			var alerts []triage.Alert
			for i := range 2000 {
				alerts = append(alerts, firing("A"+strconv.Itoa(i), 0))
			}
			id := notify(t, s, 0, alerts...).Changes[0].IncidentID
			_, kept, err := s.Incident(t.Context(), id)
			require.NoError(t, err)
			require.Len(t, kept, 500, "the rest is only counted")
			f, r, err := s.AlertCounts(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, [2]int{2000, 0}, [2]int{f, r})
			for i := range alerts {
				alerts[i].Status, alerts[i].EndsAt = triage.StatusResolved, at(minute)
			}
			require.False(t, notify(t, s, minute, alerts[:1999]...).Changes[0].Resolved)
			require.True(t, notify(t, s, minute, alerts[1999:]...).Changes[0].Resolved)
		})
	}
}

// Whatever the order, and however often each arrives, the notifications of one story lead to the same state.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	story := []store.Delivery{
		delivery("demo", 0, firing("A", 0)),
		delivery("demo", 10*time.Second, firing("A", 0), firing("B", 10*time.Second)),
		delivery("demo", 60*time.Second, resolved("A", 0, 50*time.Second), firing("B", 10*time.Second)),
		delivery("demo", 70*time.Second, firing("B", 10*time.Second), firing("C", 60*time.Second)),
		delivery("demo", 200*time.Second, resolved("B", 10*time.Second, 150*time.Second), resolved("C", 60*time.Second, 160*time.Second)),
	}
	type state struct {
		Status   string
		Started  time.Time
		Resolved time.Time
		Alerts   []triage.Alert
	}
	final := func(ctx context.Context, s *store.Store) state {
		all, err := s.Incidents(ctx, store.Filter{})
		require.NoError(t, err)
		require.Len(t, all, 1)
		in, alerts, err := s.Incident(ctx, all[0].ID)
		require.NoError(t, err)
		for i := range alerts {
			alerts[i].Labels = nil
		}
		return state{in.Status, in.StartedAt, in.ResolvedAt, alerts}
	}
	straight := storetest.Open(t, storetest.SQLite(t))
	for _, d := range story {
		_, err := straight.Intake(t.Context(), d, policy)
		require.NoError(t, err)
	}
	want := final(t.Context(), straight)
	require.Equal(t, triage.StatusResolved, want.Status)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := storetest.Open(t, storetest.SQLite(t))
		order := append(r.Perm(len(story)), r.Perm(len(story))...)
		// The incident is opened by what fires first; everything else may come in any order, twice.
		for _, i := range append([]int{0}, order...) {
			_, err := s.Intake(t.Context(), story[i], policy)
			require.NoError(t, err)
		}
		require.Empty(t, cmp.Diff(want, final(t.Context(), s)), "order %v", order)
	}
}

// Two replicas and two Alertmanagers at once give one incident and one job.
func TestConcurrentIntake(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			a, b := storetest.Open(t, address), storetest.Open(t, address)
			var wg sync.WaitGroup
			errs := make(chan error, 100)
			for i := range 10 {
				for _, s := range []*store.Store{a, b} {
					wg.Go(func() {
						name := "A" + strconv.Itoa(i%5)
						_, err := s.Intake(t.Context(), delivery("demo", time.Duration(i)*time.Second, firing(name, 0)), policy)
						errs <- err
						d := delivery("m"+strconv.Itoa(i), 0, firing(name, 0))
						e := delivery("m"+strconv.Itoa(9-i), 0, firing(name, 0))
						d.Incidents = append(d.Incidents, e.Incidents...)
						_, err = s.Intake(t.Context(), d, policy)
						errs <- err
					})
				}
			}
			wg.Wait()
			close(errs)
			for err := range errs {
				require.NoError(t, err)
			}
			all, err := a.Incidents(t.Context(), store.Filter{Model: "demo"})
			require.NoError(t, err)
			require.Len(t, all, 1)
			jobs, err := b.Jobs(t.Context())
			require.NoError(t, err)
			require.Len(t, jobs, 11)
		})
	}
}

func TestDeliveryKey(t *testing.T) {
	t.Parallel()
	payload := func(change func(*triage.Payload)) string {
		p := triage.Payload{GroupKey: "g", Version: "4"}
		p.Receiver, p.Status = "r", "firing"
		p.Alerts = template.Alerts{
			{Fingerprint: "a", Status: "firing", StartsAt: at(0)},
			{Fingerprint: "b", Status: "resolved", StartsAt: at(0), EndsAt: at(minute)},
		}
		change(&p)
		return store.DeliveryKey(p)
	}
	same := payload(func(*triage.Payload) {})
	require.Len(t, same, 32)
	require.Equal(t, same, payload(func(p *triage.Payload) { p.ExternalURL = "http://other-replica" }))
	require.Equal(t, same, payload(func(p *triage.Payload) { p.Alerts[0], p.Alerts[1] = p.Alerts[1], p.Alerts[0] }))
	for _, change := range []func(*triage.Payload){
		func(p *triage.Payload) { p.GroupKey = "h" },
		func(p *triage.Payload) { p.Receiver = "s" },
		func(p *triage.Payload) { p.NotificationReason = "repeat interval elapsed" },
		func(p *triage.Payload) { p.Alerts[0].Fingerprint = "c" },
		func(p *triage.Payload) { p.Alerts[0].Status = "resolved" },
		func(p *triage.Payload) { p.Alerts[0].StartsAt = at(time.Second) },
		func(p *triage.Payload) { p.Alerts[1].EndsAt = at(time.Second) },
		func(p *triage.Payload) { p.Alerts = p.Alerts[:1] },
		func(p *triage.Payload) { p.Receiver, p.GroupKey = "rg", "" },
	} {
		require.NotEqual(t, same, payload(change))
	}
}

func TestFailedIntakeLeavesNothing(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := s.Intake(ctx, delivery("demo", 0, firing("A", 0)), policy)
			require.Error(t, err)
			all, err := s.Incidents(t.Context(), store.Filter{})
			require.NoError(t, err)
			require.Empty(t, all)
			require.False(t, notify(t, s, 0, firing("A", 0)).Duplicate, "what was not stored was not seen")
		})
	}
}

func TestIncidentNotFound(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	_, _, err := s.Incident(t.Context(), "nope")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.EqualError(t, err, `incident "nope": not found`)
}

func TestIncidentsPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	for i := range 7 {
		notifyModel(t, s, "m"+strconv.Itoa(i), time.Duration(i/2)*time.Second, firing("A", 0))
	}
	var got []string
	f := store.Filter{Limit: 3, Status: triage.StatusFiring}
	for {
		page, err := s.Incidents(t.Context(), f)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, in := range page {
			got = append(got, in.Scope.Model)
		}
		f.Before, f.BeforeID = page[len(page)-1].OpenedAt, page[len(page)-1].ID
	}
	require.Equal(t, []string{"m6", "m5", "m4", "m3", "m2", "m1", "m0"}, got)
	one, err := s.Incidents(t.Context(), store.Filter{Model: "m3"})
	require.NoError(t, err)
	require.Len(t, one, 1)
	none, err := s.Incidents(t.Context(), store.Filter{Status: triage.StatusResolved})
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestQuestionToTheEngine(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
	in, alerts, err := s.Incident(t.Context(), id)
	require.NoError(t, err)
	q := in.Triage(alerts, at(minute))
	require.Equal(t, at(minute), q.Now)
	require.Equal(t, id, q.ID)
	require.Equal(t, "triage", q.Receiver)
	require.Equal(t, alerts, q.Alerts)
	_, err = json.Marshal(q)
	require.NoError(t, err)
}
