package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

func TestStateSurvivesReopening(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s, err := store.Open(t.Context(), address, store.Options{})
			require.NoError(t, err)
			id := shown(t, s)
			require.NoError(t, s.Close())
			require.NoError(t, s.Close(), "closing twice is harmless")
			_, err = s.Intake(t.Context(), delivery("demo", 0), policy)
			require.ErrorIs(t, err, store.ErrClosed)

			s = storetest.Open(t, address)
			require.NoError(t, s.Ping(t.Context()))
			require.True(t, notify(t, s, time.Second, firing("A", 0)).Duplicate, "keys survive a restart")
			require.Equal(t, id, claimConversation(t, s, "a", minute).IncidentID)
		})
	}
}

func TestFeedbackAndSteps(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
			first := store.Feedback{IncidentID: id, Author: "U1", At: at(0), Opinion: "right"}
			require.NoError(t, s.SaveFeedback(ctx, first))
			require.NoError(t, s.SaveFeedback(ctx, store.Feedback{IncidentID: id, Author: "U2", At: at(minute), Opinion: "right"}))
			changed := store.Feedback{IncidentID: id, Author: "U1", At: at(2 * minute), Opinion: "wrong", Cause: "lora_slots", Comment: "c"}
			require.NoError(t, s.SaveFeedback(ctx, changed))
			got, err := s.Feedback(ctx, id)
			require.NoError(t, err)
			require.Len(t, got, 2)
			require.Equal(t, changed, got[1])
			require.ErrorIs(t, s.SaveFeedback(ctx, store.Feedback{IncidentID: "nope"}), store.ErrNotFound)

			step := store.Step{IncidentID: id, Cause: "decode_bound", Step: "limit", Author: "U1", At: at(0), State: "done"}
			require.NoError(t, s.SaveStep(ctx, step))
			step.State, step.Note, step.At = "helped", "n", at(minute)
			require.NoError(t, s.SaveStep(ctx, step))
			steps, err := s.Steps(ctx, id)
			require.NoError(t, err)
			require.Equal(t, []store.Step{step}, steps)
			require.ErrorIs(t, s.SaveStep(ctx, store.Step{IncidentID: "nope"}), store.ErrNotFound)
		})
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			a, b := storetest.Open(t, address), storetest.Open(t, address)
			one, err := a.SettingOrNew(t.Context(), "key", func() string { return "one" })
			require.NoError(t, err)
			two, err := b.SettingOrNew(t.Context(), "key", func() string { return "two" })
			require.NoError(t, err)
			require.Equal(t, "one", one)
			require.Equal(t, "one", two)
			last, err := a.LastBeat(t.Context(), "Watchdog")
			require.NoError(t, err)
			require.True(t, last.IsZero())
			require.NoError(t, a.Beat(t.Context(), "Watchdog", at(0)))
			require.NoError(t, b.Beat(t.Context(), "Watchdog", at(minute)))
			last, err = a.LastBeat(t.Context(), "Watchdog")
			require.NoError(t, err)
			require.Equal(t, at(minute), last)
		})
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			ctx := t.Context()
			old := shown(t, s)
			c := claimConversation(t, s, "a", minute)
			require.NoError(t, s.Posted(ctx, c, store.PartCard, store.Ref{Channel: "C", ID: "1"}, 1, at(0)))
			require.NoError(t, s.SaveFeedback(ctx, store.Feedback{IncidentID: old, Author: "U"}))
			require.NoError(t, s.SaveStep(ctx, store.Step{IncidentID: old, Cause: "c", Step: "s"}))
			notify(t, s, minute, resolved("A", 0, minute))
			notifyModel(t, s, "orphan", minute, resolved("A", 0, minute))
			open := notifyModel(t, s, "open", minute, firing("A", 0)).Changes[0].IncidentID
			day := 24 * time.Hour
			recent := notifyModel(t, s, "recent", 89*day, firing("A", 89*day)).Changes[0].IncidentID
			notifyModel(t, s, "recent", 89*day+minute, resolved("A", 89*day, 89*day+minute))

			n, err := s.Prune(ctx, at(10*day), at(100*day))
			require.NoError(t, err)
			require.Equal(t, 1, n)
			all, err := s.Incidents(ctx, store.Filter{})
			require.NoError(t, err)
			require.Len(t, all, 2, "what fires or is recent stays: %s, %s", open, recent)
			_, _, err = s.Incident(ctx, old)
			require.ErrorIs(t, err, store.ErrNotFound)
			left := rows(t, address)
			require.Equal(t, map[string]int{
				"incidents": 2, "alerts": 2, "deliveries": 0, "jobs": 2, "reports": 0, "conversations": 0, "posts": 0, "feedback": 0, "steps": 0,
			}, left)
			n, err = s.Prune(ctx, at(100*day), at(100*day))
			require.NoError(t, err)
			require.Equal(t, 1, n)
		})
	}
}

// rows counts the rows of each table.
func rows(t *testing.T, address string) map[string]int {
	t.Helper()
	db := open(t, address)
	out := map[string]int{}
	for _, table := range []string{
		"incidents", "alerts", "deliveries", "jobs", "reports", "conversations", "posts", "feedback", "steps",
	} {
		var n int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
		out[table] = n
	}
	return out
}

func open(t *testing.T, address string) *sql.DB {
	t.Helper()
	driver, name := "sqlite", strings.TrimPrefix(address, "sqlite:")
	if store.IsPostgres(address) {
		driver, name = "pgx", address
	}
	db, err := sql.Open(driver, name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestStats(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s := storetest.Open(t, address)
			shown(t, s)
			require.NoError(t, s.Enqueue(t.Context(), store.KindSweep, "", "x", at(minute)))
			got, err := s.Stats(t.Context(), at(2*minute))
			require.NoError(t, err)
			require.Equal(t, map[string]int{"firing": 1, "resolved": 0}, got.Incidents)
			require.Equal(t, map[string]int{"ready": 1, "running": 0, "dead": 0}, got.Jobs)
			require.Equal(t, map[string]int{"active": 1, "shadow": 0, "dead": 0, "expired": 0}, got.Conversations)
			require.Equal(t, minute, got.OldestJob)
			require.Equal(t, 100*time.Second, got.OldestConversation)
			require.Positive(t, got.Bytes)
		})
	}
}

func TestBackupWhileRunning(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
	file := filepath.Join(t.TempDir(), "backup.db")
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := s.Intake(t.Context(), delivery("m", time.Duration(i)*time.Second, firing("A", 0)), policy); err != nil {
				t.Error(err)
			}
		}
	})
	err := s.Backup(t.Context(), file)
	stop.Store(true)
	wg.Wait()
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	restored := storetest.Open(t, "sqlite:"+file)
	require.Equal(t, triage.StatusFiring, incident(t, restored, id).Status)
	require.ErrorContains(t, s.Backup(t.Context(), file), "exists already")
	require.Error(t, s.Backup(t.Context(), filepath.Join(t.TempDir(), "no", "dir")))
}

func TestBackupOfPostgres(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Postgres(t))
	require.ErrorContains(t, s.Backup(t.Context(), "x"), "use pg_dump")
}

func TestBrokenDatabases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fresh := func(name string) string {
		path := filepath.Join(dir, name)
		s, err := store.Open(t.Context(), path, store.Options{})
		require.NoError(t, err)
		for i := range 200 {
			notify(t, s, time.Duration(i)*time.Hour, firing(strings.Repeat("A", 500), time.Duration(i)*time.Hour))
			notify(t, s, time.Duration(i)*time.Hour+minute, resolved(strings.Repeat("A", 500), 0, time.Duration(i)*time.Hour+minute))
		}
		require.NoError(t, s.Close())
		return path
	}
	noise := func(path string, offset int) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for i := offset; i < len(data); i++ {
			data[i] = 0x5a
		}
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	for name, offset := range map[string]int{"head": 0, "middle": 8192} {
		path := fresh(name)
		noise(path, offset)
		_, err := store.Open(t.Context(), path, store.Options{})
		require.Error(t, err, name)
		require.Equal(t, store.Corrupt, store.KindOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "restore a backup")
		require.ErrorContains(t, err, path, "the file is named")
	}
	_, err := store.Open(t.Context(), filepath.Join(dir, "no", "dir.db"), store.Options{})
	require.ErrorContains(t, err, "create it or mount a volume there")
	_, err = store.Open(t.Context(), filepath.Join(dir, "head", "x.db"), store.Options{})
	require.Error(t, err)
	_, err = store.Open(t.Context(), "postgres://user:hunter2@%zz/x", store.Options{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestUnreachablePostgres(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), "postgres://u:hunter2@127.0.0.1:1/db?connect_timeout=1", store.Options{})
	require.Error(t, err)
	require.Equal(t, store.Unreachable, store.KindOf(err), "%v", err)
	require.NotContains(t, err.Error(), "hunter2")
}

// The disk is full: the notification is refused with a reason, and taken once there is space.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	address := storetest.SQLite(t)
	s := storetest.Open(t, address)
	notify(t, s, 0, firing("A", 0))
	limit := func(pages string) {
		require.NoError(t, s.Pragma(t.Context(), "max_page_count="+pages))
	}
	limit("1") // SQLite takes the present size instead.
	big := firing("B", 0)
	big.Annotations = map[string]string{"x": strings.Repeat("x", 1<<20)}
	_, err := s.Intake(t.Context(), delivery("demo", minute, big), policy)
	require.Error(t, err)
	require.Equal(t, store.Full, store.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "free space")
	limit("1000000")
	require.Equal(t, 1, notify(t, s, minute, big).Changes[0].Began)
}

func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	require.NoError(t, s.Pragma(t.Context(), "query_only=1"))
	_, err := s.Intake(t.Context(), delivery("demo", 0, firing("A", 0)), policy)
	require.Equal(t, store.ReadOnly, store.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "must be writable")
}

// A statement that fails takes nothing of its neighbours in the same commit with it.
func TestGroupCommitIsolatesFailures(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	var wg sync.WaitGroup
	var failed, stored atomic.Int64
	for i := range 200 {
		wg.Go(func() {
			d := delivery("m"+string(rune('a'+i%26)), time.Duration(i)*time.Second, firing("A", 0))
			ctx := t.Context()
			if i%3 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				cancel()
			}
			if i%3 == 1 {
				_, err := s.ReviveConversation(ctx, 999, at(0))
				if err != nil {
					failed.Add(1)
				}
				return
			}
			if _, err := s.Intake(ctx, d, policy); err != nil {
				failed.Add(1)
			} else {
				stored.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(66), stored.Load())
	require.Equal(t, int64(134), failed.Load())
	all, err := s.Incidents(t.Context(), store.Filter{})
	require.NoError(t, err)
	require.NotEmpty(t, all)
}

func TestSettingsOfTheReportSurviveJSON(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	id := notify(t, s, 0, firing("A", 0)).Changes[0].IncidentID
	r := report("decode_bound", 0, "firing")
	before := 1.5
	r.Bottlenecks[0].Evidence = []triage.Evidence{{Signal: "x", Before: &before, Weight: 2}}
	finish(t, s, 20*time.Second, r)
	got, err := s.Reports(t.Context(), id)
	require.NoError(t, err)
	want, err := json.Marshal(r)
	require.NoError(t, err)
	have, err := json.Marshal(got.Latest)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(have))
}
