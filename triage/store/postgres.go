package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// maxAgain is how often a transaction runs that PostgreSQL breaks off in favour of others.
	maxAgain = 6
	// statementTimeout keeps a stuck server from holding workers for ever.
	statementTimeout = "30000"
)

func openPostgres(ctx context.Context, address string, o Options) (*Store, error) {
	c, err := pgx.ParseConfig(address)
	if err != nil {
		// The library's error quotes the address with its password masked; ours names the reason only.
		return nil, errors.New("open store: the address of PostgreSQL cannot be parsed: postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	if _, set := c.RuntimeParams["application_name"]; !set {
		c.RuntimeParams["application_name"] = "vllm-triage"
	}
	if _, set := c.RuntimeParams["statement_timeout"]; !set {
		c.RuntimeParams["statement_timeout"] = statementTimeout
	}
	// A commit that was answered must survive the server's crash, whatever its default.
	c.RuntimeParams["synchronous_commit"] = "on"
	db := stdlib.OpenDB(*c, stdlib.OptionBeforeConnect(func(_ context.Context, cc *pgx.ConnConfig) error {
		if o.Refresh == nil {
			return nil
		}
		fresh, err := o.Refresh()
		if err != nil {
			return fmt.Errorf("read address of the store: %w", err)
		}
		if parsed, err := pgx.ParseConfig(fresh); err == nil {
			cc.User, cc.Password = parsed.User, parsed.Password
		}
		return nil
	}))
	limit := o.MaxConnections
	if limit <= 0 {
		limit = 8
	}
	db.SetMaxOpenConns(limit)
	db.SetMaxIdleConns(limit)
	db.SetConnMaxLifetime(30 * time.Minute)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fail("open store", err), db.Close())
	}
	d := newPostgresDialect()
	return &Store{d: d, reads: db, write: &pgWriter{d: d, db: db}, closed: sync.OnceValue(db.Close)}, nil
}

// pgWriter is the writer of PostgreSQL: a transaction each; the server groups their commits.
type pgWriter struct {
	d  *dialect
	db *sql.DB
}

func (w *pgWriter) do(ctx context.Context, fn func(context.Context, *tx) error) error {
	for attempt := 1; ; attempt++ {
		err := w.try(ctx, fn)
		if !again(err) || attempt == maxAgain {
			return err
		}
		// Whoever was broken off waits a little longer each time.
		pause := time.Duration(rand.IntN(5*attempt)+1) * time.Millisecond //nolint:gosec // Jitter is no secret.
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *pgWriter) try(ctx context.Context, fn func(context.Context, *tx) error) error {
	t, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		if errors.Is(err, sql.ErrConnDone) || err.Error() == "sql: database is closed" {
			return ErrClosed
		}
		return err
	}
	defer t.Rollback() //nolint:errcheck // Has no effect after the commit.
	if err := fn(ctx, &tx{d: w.d, query: t.QueryContext, run: t.ExecContext}); err != nil {
		return err
	}
	return t.Commit()
}
