package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// SettingOrNew returns the value kept under a name; if there is none yet, the value of fresh is kept. All replicas see the
// same value.
func (s *Store) SettingOrNew(ctx context.Context, name string, fresh func() string) (value string, err error) {
	proposed := fresh()
	err = s.do(ctx, "read setting", func(ctx context.Context, t *tx) error {
		if err := t.exec(ctx, `INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`,
			name, proposed); err != nil {
			return err
		}
		found, err := t.one(ctx, []any{&value}, `SELECT value FROM settings WHERE name = ?`, name)
		if err == nil && !found {
			err = fmt.Errorf("setting %q: %w", name, ErrNotFound)
		}
		return err
	})
	return value, err
}

// Beat notes that a heartbeat was heard.
func (s *Store) Beat(ctx context.Context, name string, at time.Time) error {
	return s.do(ctx, "note heartbeat", func(ctx context.Context, t *tx) error {
		return t.exec(ctx, `INSERT INTO settings (name, value) VALUES (?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, "beat:"+name, at.UTC().Format(time.RFC3339Nano))
	})
}

// LastBeat is when a heartbeat was heard last; the zero time: never.
func (s *Store) LastBeat(ctx context.Context, name string) (at time.Time, err error) {
	err = s.query(ctx, "read heartbeat", func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		at, err = time.Parse(time.RFC3339Nano, text)
		return err
	}, `SELECT value FROM settings WHERE name = ?`, "beat:"+name)
	return at, err
}
