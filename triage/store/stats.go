package store

import (
	"context"
	"database/sql"
	"os"
	"time"
)

// Stats are figures for metrics.
type Stats struct {
	Incidents     map[string]int // By status.
	Jobs          map[string]int // By state: ready, running, dead.
	Conversations map[string]int // By state; active ones only when they have news.
	// OldestJob and OldestConversation are how long the work that is due longest has waited.
	OldestJob          time.Duration
	OldestConversation time.Duration
	Bytes              int64 // Size of the database.
}

// Stats counts what the store holds.
func (s *Store) Stats(ctx context.Context, now time.Time) (Stats, error) {
	out := Stats{
		Incidents:     map[string]int{"firing": 0, "resolved": 0},
		Jobs:          map[string]int{jobReady: 0, jobRunning: 0, jobDead: 0},
		Conversations: map[string]int{Active: 0, Shadow: 0, Dead: 0, Expired: 0},
	}
	for _, c := range []struct {
		into map[string]int
		q    string
	}{
		{out.Incidents, `SELECT status, COUNT(*) FROM incidents GROUP BY status`},
		{out.Jobs, `SELECT state, COUNT(*) FROM jobs GROUP BY state`},
		{out.Conversations, `SELECT state, COUNT(*) FROM conversations WHERE state <> 'active' OR shown < wanted GROUP BY state`},
	} {
		if err := s.query(ctx, "count", func(rows *sql.Rows) error {
			var name string
			var n int
			err := rows.Scan(&name, &n)
			c.into[name] = n
			return err
		}, c.q); err != nil {
			return out, err
		}
	}
	for _, a := range []struct {
		into *time.Duration
		q    string
	}{
		{&out.OldestJob, `SELECT MIN(run_at) FROM jobs WHERE state <> 'dead' AND run_at <= ?`},
		{&out.OldestConversation, `SELECT MIN(CASE WHEN wanted_at > next_at THEN wanted_at ELSE next_at END) FROM conversations
			WHERE state = 'active' AND shown < wanted AND next_at <= ?`},
	} {
		if err := s.query(ctx, "read ages", func(rows *sql.Rows) error {
			var at sql.NullInt64
			if err := rows.Scan(&at); err != nil {
				return err
			}
			if at.Valid {
				*a.into = max(now.Sub(fromMillis(at.Int64)), 0)
			}
			return nil
		}, a.q, millis(now)); err != nil {
			return out, err
		}
	}
	var err error
	out.Bytes, err = s.size(ctx)
	return out, err
}

func (s *Store) size(ctx context.Context) (n int64, err error) {
	if !s.d.numbered {
		for _, suffix := range []string{"", "-wal"} {
			if info, statErr := os.Stat(s.path + suffix); statErr == nil {
				n += info.Size()
			}
		}
		return n, nil
	}
	err = s.query(ctx, "read size", func(rows *sql.Rows) error { return rows.Scan(&n) },
		`SELECT pg_database_size(current_database())`)
	return n, err
}
