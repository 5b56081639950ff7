package store

import (
	"context"
	"database/sql"
)

// tx is a transaction under way.
type tx struct {
	d     *dialect
	query func(ctx context.Context, q string, args ...any) (*sql.Rows, error)
	run   func(ctx context.Context, q string, args ...any) (sql.Result, error)
}

func (t *tx) exec(ctx context.Context, q string, args ...any) error {
	_, err := t.run(ctx, t.d.bind(q), args...)
	return err
}

// count is exec that returns the number of rows it changed.
func (t *tx) count(ctx context.Context, q string, args ...any) (int64, error) {
	res, err := t.run(ctx, t.d.bind(q), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// must is exec that needs to change a row; without one it returns absent.
func (t *tx) must(ctx context.Context, absent error, q string, args ...any) error {
	n, err := t.count(ctx, q, args...)
	if err == nil && n == 0 {
		return absent
	}
	return err
}

// each hands every row to scan.
func (t *tx) each(ctx context.Context, scan func(*sql.Rows) error, q string, args ...any) error {
	rows, err := t.query(ctx, t.d.bind(q), args...)
	if err != nil {
		return err
	}
	return scanAll(rows, scan)
}

// one scans the first row; found is false when there is none.
func (t *tx) one(ctx context.Context, dest []any, q string, args ...any) (found bool, err error) {
	err = t.each(ctx, func(rows *sql.Rows) error {
		if found {
			return nil
		}
		found = true
		return rows.Scan(dest...)
	}, q, args...)
	return found, err
}

// lock makes transactions that name the same thing wait for each other. SQLite has one writer at a time anyway.
func (t *tx) lock(ctx context.Context, name string) error {
	if !t.d.numbered {
		return nil
	}
	return t.exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended(?, 0))`, name)
}
