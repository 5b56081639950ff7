package store

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Backup writes a consistent copy of the database to a new file while the service runs. PostgreSQL has its own tools.
func (s *Store) Backup(ctx context.Context, file string) error {
	if s.d.numbered {
		return errors.New("back up store: the database is PostgreSQL: use pg_dump or its continuous archiving")
	}
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("back up store: %s exists already; choose a new name", file)
	}
	// The file must not be readable by others before it holds anything, and must be empty for VACUUM INTO.
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("back up store: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("back up store: %w", err)
	}
	// The reading connections refuse this statement, and the writing one must not be held up by it.
	db := sqliteDB(s.path, "deferred", []string{"busy_timeout(10000)"})
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", file); err != nil {
		return errors.Join(fail("back up store", err), db.Close(), os.Remove(file))
	}
	return db.Close()
}
