package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Options are settings of a store. The zero value takes the defaults.
type Options struct {
	// Refresh returns the address again before each new connection to PostgreSQL, so that a rotated password is taken up.
	Refresh func() (string, error)
	// MaxConnections bounds the connections to PostgreSQL; default 8.
	MaxConnections int
	// Existing refuses to make a SQLite database that is not there.
	Existing bool
	// NoSync lets SQLite commit without waiting for the disk. A power cut then loses what was answered, so it is for tests and
	// demonstrations only: their data is of no use afterwards, and a busy disk would make each of their steps slow.
	NoSync bool
}

// Store holds the state of the service. It is safe for concurrent use.
type Store struct {
	d      *dialect
	reads  *sql.DB
	write  writer
	path   string // Of the SQLite file.
	closed func() error
}

// writer runs a function in a transaction and returns after its commit. The function may run again after a conflict, so it
// must not change anything outside.
type writer interface {
	do(ctx context.Context, fn func(context.Context, *tx) error) error
}

// Open opens the database at an address, "sqlite:FILE" (a plain file name too) or "postgres://…", and brings its schema up
// to date.
func Open(ctx context.Context, address string, o Options) (*Store, error) {
	open := openSQLite
	if IsPostgres(address) {
		open = openPostgres
	}
	s, err := open(ctx, address, o)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), s.Close())
	}
	return s, nil
}

// IsPostgres says whether an address leads to PostgreSQL, which several replicas can share.
func IsPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// Engine is "sqlite" or "postgres".
func (s *Store) Engine() string { return s.d.name }

// Close ends the store. Transactions under way are finished first.
func (s *Store) Close() error { return s.closed() }

// Ping says whether the store can be read and written.
func (s *Store) Ping(ctx context.Context) error {
	return s.do(ctx, "check store", func(ctx context.Context, t *tx) error {
		return t.exec(ctx, `INSERT INTO settings (name, value) VALUES ('ping', '1')
			ON CONFLICT (name) DO UPDATE SET value = '1'`)
	})
}

// do runs a function in a write transaction and names its failure.
func (s *Store) do(ctx context.Context, op string, fn func(context.Context, *tx) error) error {
	return fail(op, s.write.do(ctx, fn))
}

// query reads outside of a transaction; each row is handed to scan.
func (s *Store) query(ctx context.Context, op string, scan func(*sql.Rows) error, q string, args ...any) error {
	rows, err := s.reads.QueryContext(ctx, s.d.bind(q), args...)
	if err != nil {
		return fail(op, err)
	}
	return fail(op, scanAll(rows, scan))
}

func scanAll(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close() //nolint:errcheck // Err has what matters.
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// millis is a time as the database keeps it; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// fromMillis is the opposite of millis.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
