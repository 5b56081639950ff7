package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNotFound is returned for an id that the store does not hold.
var ErrNotFound = errors.New("not found")

// ErrLeaseLost is returned to a holder whose lease ran out and was taken over: its result is not stored.
var ErrLeaseLost = errors.New("lease lost to another worker")

// ErrClosed is returned once the store is closing.
var ErrClosed = errors.New("store is closed")

// Kind says why the store cannot serve.
type Kind string

// The kinds of store failures. They are a closed set: metric labels.
const (
	Full        Kind = "full"        // No space on the disk.
	ReadOnly    Kind = "read_only"   // The disk or database accepts no writes.
	Corrupt     Kind = "corrupt"     // The database file is damaged.
	Busy        Kind = "busy"        // Another process holds the lock.
	Unreachable Kind = "unreachable" // The server or the disk does not answer.
	Other       Kind = "other"
)

// Error is a failed operation of the store.
type Error struct {
	Op   string
	Kind Kind
	Err  error
}

// Error implements error; it names the next step where there is one.
func (e *Error) Error() string {
	hint := ""
	switch e.Kind {
	case Full:
		hint = "; free space on the volume or lower the retention"
	case ReadOnly:
		hint = "; the database and its directory must be writable"
	case Corrupt:
		hint = "; stop the service, move the file away and restore a backup (vllm-triage backup makes them)"
	case Busy:
		hint = "; another process holds the database: run one replica per SQLite file, or use PostgreSQL"
	case Unreachable, Other:
	}
	return fmt.Sprintf("%s: store %s: %v%s", e.Op, e.Kind, e.Err, hint)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of a store failure, or empty when err is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// fail wraps what a database call returned. Answers of this package and of the context stay as they are.
func fail(op string, err error) error {
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrClosed) ||
		KindOf(err) != "" {
		return err
	}
	return &Error{Op: op, Kind: classify(err), Err: err}
}

func classify(err error) Kind {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return Full
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
			return ReadOnly
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return Corrupt
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return Busy
		case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR:
			return Unreachable
		}
		return Other
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyPostgres(e.Code)
	}
	if e, ok := errors.AsType[net.Error](err); ok && e != nil {
		return Unreachable
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Full
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return ReadOnly
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, context.DeadlineExceeded):
		return Unreachable
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return Unreachable
	}
	return Other
}

// classifyPostgres reads an SQLSTATE.
func classifyPostgres(code string) Kind {
	switch code {
	case "53100":
		return Full
	case "25006":
		return ReadOnly
	case "XX001", "XX002":
		return Corrupt
	case "55P03":
		return Busy
	case "57P01", "57P02", "57P03", "53300", "08000", "08003", "08006", "08001", "08004":
		return Unreachable
	}
	return Other
}

// again says whether PostgreSQL broke a transaction off in favour of another one: codes 40001 and 40P01.
func again(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01")
}
