package store

import (
	"context"
	"database/sql"
	"time"
)

const (
	// deliveryAge is how long copies of notifications are told from repeats; any policy's window is shorter.
	deliveryAge = 24 * time.Hour
	// orphanAge is how long the end of an alert waits for its beginning.
	orphanAge = 24 * time.Hour
	// pruneBatch keeps the transactions of pruning short.
	pruneBatch = 200
)

// Prune drops incidents that ended before a time, with everything about them, and what else has served its purpose. It
// returns the number of incidents.
func (s *Store) Prune(ctx context.Context, before, now time.Time) (int, error) {
	if err := s.do(ctx, "prune", func(ctx context.Context, t *tx) error {
		if err := t.exec(ctx, `DELETE FROM deliveries WHERE first_at < ?`, millis(now.Add(-deliveryAge))); err != nil {
			return err
		}
		return t.exec(ctx, `DELETE FROM alerts WHERE incident_id = '' AND changed_at < ?`, millis(now.Add(-orphanAge)))
	}); err != nil {
		return 0, err
	}
	total := 0
	for {
		n, err := s.pruneIncidents(ctx, millis(before))
		total += n
		if err != nil || n < pruneBatch {
			if err == nil && total > 0 {
				err = s.shrink(ctx)
			}
			return total, err
		}
	}
}

func (s *Store) pruneIncidents(ctx context.Context, before int64) (n int, err error) {
	err = s.do(ctx, "prune", func(ctx context.Context, t *tx) error {
		var ids []string
		if err := t.each(ctx, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}, `SELECT id FROM incidents WHERE status <> 'firing' AND closed_at < ? ORDER BY closed_at LIMIT ?`,
			before, pruneBatch); err != nil {
			return err
		}
		n = len(ids)
		for _, id := range ids {
			for _, q := range []string{
				`DELETE FROM posts WHERE conversation_id IN (SELECT id FROM conversations WHERE incident_id = ?)`,
				`DELETE FROM conversations WHERE incident_id = ?`,
				`DELETE FROM reports WHERE incident_id = ?`,
				`DELETE FROM alerts WHERE incident_id = ?`,
				`DELETE FROM feedback WHERE incident_id = ?`,
				`DELETE FROM steps WHERE incident_id = ?`,
				`DELETE FROM checks WHERE incident_id = ?`,
				`DELETE FROM jobs WHERE incident_id = ? AND state <> 'running'`,
				`DELETE FROM incidents WHERE id = ?`,
			} {
				if err := t.exec(ctx, q, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return n, err
}

// shrink gives the space of dropped rows back to the disk. PostgreSQL does so by itself.
func (s *Store) shrink(ctx context.Context) error {
	if s.d.numbered {
		return nil
	}
	return s.do(ctx, "shrink database", func(ctx context.Context, t *tx) error {
		return t.each(ctx, func(*sql.Rows) error { return nil }, `PRAGMA incremental_vacuum(2000)`)
	})
}
