package store

import (
	"context"
	"database/sql"
)

// Pragma changes a setting of the writing connection, to make it fail in tests.
func (s *Store) Pragma(ctx context.Context, text string) error {
	g := s.write.(*groupCommit) //nolint:errcheck,forcetypeassert // Tests of SQLite only.
	rows, err := g.conn.QueryContext(ctx, "PRAGMA "+text)
	if err != nil {
		return err
	}
	return scanAll(rows, func(*sql.Rows) error { return nil })
}

// Setting is a setting of the writing connection.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	var value string
	g := s.write.(*groupCommit) //nolint:errcheck,forcetypeassert // Tests of SQLite only.
	err := g.conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value)
	return value, err
}
