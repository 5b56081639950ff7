package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // The driver "sqlite".
)

const (
	// maxBatch is how many transactions share one commit, and so one wait for the disk.
	maxBatch = 64
	// readConnections serve pages and the API; each has a page cache.
	readConnections = 3
)

// sqlitePath is the file that an address names: "sqlite:a.db", "sqlite:///data/a.db" or "a.db".
func sqlitePath(address string) string {
	path, ok := strings.CutPrefix(address, "sqlite:")
	if ok {
		path = strings.TrimPrefix(path, "//")
	}
	return path
}

func openSQLite(ctx context.Context, address string, o Options) (*Store, error) {
	path, err := filepath.Abs(sqlitePath(address))
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if _, err := os.Stat(path); err != nil && o.Existing {
		return nil, fmt.Errorf("open store: there is no database: %w", err)
	}
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	// FULL waits for the disk at each commit: what was answered with 200 survives a power cut.
	synchronous := "synchronous(FULL)"
	if o.NoSync {
		synchronous = "synchronous(OFF)"
	}
	common := []string{
		"journal_mode(WAL)", synchronous, "busy_timeout(10000)", "journal_size_limit(67108864)", "temp_store(MEMORY)",
		"wal_autocheckpoint(4000)", // 16 MB: pages that are written over and over reach the database less often.
	}
	writes := sqliteDB(path, "immediate", append([]string{"auto_vacuum(INCREMENTAL)", "cache_size(-2000)"}, common...))
	writes.SetMaxOpenConns(1)
	conn, err := writes.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fail("open store "+path, err), writes.Close())
	}
	if err := quickCheck(ctx, conn); err != nil {
		return nil, errors.Join(fail("open store "+path, err), conn.Close(), writes.Close())
	}
	reads := sqliteDB(path, "deferred", append([]string{"query_only(1)", "cache_size(-1000)"}, common...))
	reads.SetMaxOpenConns(readConnections)
	reads.SetMaxIdleConns(readConnections)
	d := newSQLiteDialect()
	w := newGroupCommit(d, conn)
	return &Store{d: d, reads: reads, write: w, path: path, closed: sync.OnceValue(func() error {
		w.close()
		return errors.Join(reads.Close(), conn.Close(), writes.Close())
	})}, nil
}

func sqliteDB(path, lock string, pragmas []string) *sql.DB {
	q := url.Values{"_txlock": {lock}, "_pragma": pragmas}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		panic(fmt.Sprintf("driver sqlite is not registered: %v", err)) // The import above registers it.
	}
	return db
}

// prepareFile makes the database file, readable by its owner only, and refuses places where SQLite is not safe.
func prepareFile(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("open store: directory of the database: %w; create it or mount a volume there", err)
	case !info.IsDir():
		return fmt.Errorf("open store: %s is not a directory", dir)
	}
	if name := networkFileSystem(dir); name != "" {
		return fmt.Errorf("open store: %s is on a network file system (%s), whose locks SQLite cannot trust; "+
			"use a block volume or PostgreSQL", path, name)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fail("open store", err)
	}
	return f.Close()
}

// quickCheck reads the whole file's structure; a damaged one must be known before anything is written to it.
func quickCheck(ctx context.Context, conn *sql.Conn) error {
	var result string
	if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return &Error{Op: "open store", Kind: Corrupt, Err: errors.New(result)}
	}
	return nil
}
