package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// groupCommit is the writer of SQLite. It has the only writing connection; transactions that wait at the same time share a
// commit, so that the disk is waited for once and not once each.
type groupCommit struct {
	d     *dialect
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	queue chan *operation
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
}

type operation struct {
	ctx    context.Context //nolint:containedctx // It belongs to the caller who waits.
	fn     func(context.Context, *tx) error
	err    error
	result chan error
}

func newGroupCommit(d *dialect, conn *sql.Conn) *groupCommit {
	g := &groupCommit{
		d: d, conn: conn, stmts: map[string]*sql.Stmt{},
		queue: make(chan *operation, maxBatch), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go g.loop()
	return g
}

// do implements writer. A caller that gives up before its turn leaves nothing behind; once begun, a transaction is carried
// to its end, because interrupting one would roll back those that share its commit.
func (g *groupCommit) do(ctx context.Context, fn func(context.Context, *tx) error) error {
	op := &operation{ctx: ctx, fn: fn, result: make(chan error, 1)}
	select {
	case <-g.stop:
		return ErrClosed
	default:
	}
	select {
	case g.queue <- op:
	case <-g.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-op.result:
		return err
	case <-g.done:
		select {
		case err := <-op.result:
			return err
		default:
			return ErrClosed
		}
	}
}

func (g *groupCommit) close() {
	g.once.Do(func() { close(g.stop) })
	<-g.done
}

func (g *groupCommit) loop() {
	defer close(g.done)
	defer func() {
		for _, s := range g.stmts {
			_ = s.Close() // The connection closes next.
		}
	}()
	for {
		select {
		case op := <-g.queue:
			g.batch(op)
		case <-g.stop:
			for {
				select {
				case op := <-g.queue:
					g.batch(op)
				default:
					return
				}
			}
		}
	}
}

// batch runs one operation and those that wait behind it.
func (g *groupCommit) batch(first *operation) {
	ops := []*operation{first}
	for len(ops) < maxBatch {
		select {
		case op := <-g.queue:
			ops = append(ops, op)
			continue
		default:
		}
		break
	}
	// Savepoints cost two statements each and few operations fail: the first try goes without.
	err := g.try(ops, false)
	if err != nil && len(ops) > 1 {
		err = g.try(ops, true)
	}
	for _, op := range ops {
		if op.err == nil {
			op.err = err
		}
		op.result <- op.err
	}
}

// try runs operations in one transaction. With savepoints an operation that fails leaves the others alone; without, its
// failure is that of all. Nothing of what failed is kept.
func (g *groupCommit) try(ops []*operation, savepoints bool) error {
	ctx := context.Background() // Carried to its end, see do.
	err := g.exec(ctx, "BEGIN IMMEDIATE")
	for i := 0; i < len(ops) && err == nil; i++ {
		op := ops[i]
		if op.err = op.ctx.Err(); op.err != nil {
			continue // Whoever asked has gone.
		}
		if savepoints {
			op.err, err = g.runSaved(ctx, op)
			continue
		}
		err = op.fn(ctx, &tx{d: g.d, query: g.query, run: g.run})
	}
	if err == nil {
		err = g.exec(ctx, "COMMIT")
	}
	if err != nil {
		_ = g.exec(ctx, "ROLLBACK") // Fails when SQLite has rolled back by itself.
	}
	return err
}

// runSaved runs an operation in a savepoint. The second error is that of a transaction which cannot go on.
func (g *groupCommit) runSaved(ctx context.Context, op *operation) (failed, broken error) {
	if err := g.exec(ctx, "SAVEPOINT op"); err != nil {
		return nil, err
	}
	failed = op.fn(ctx, &tx{d: g.d, query: g.query, run: g.run})
	if failed != nil {
		if err := g.exec(ctx, "ROLLBACK TO op"); err != nil {
			return failed, errors.Join(failed, err)
		}
	}
	return failed, g.exec(ctx, "RELEASE op")
}

func (g *groupCommit) exec(ctx context.Context, q string) error {
	_, err := g.run(ctx, q)
	return err
}

func (g *groupCommit) run(ctx context.Context, q string, args ...any) (sql.Result, error) {
	s, err := g.prepared(ctx, q) //nolint:sqlclosecheck // Kept for the next time; loop closes it.
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

func (g *groupCommit) query(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	s, err := g.prepared(ctx, q) //nolint:sqlclosecheck // Kept for the next time; loop closes it.
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// prepared keeps the statements of this package, which are constants; their number is bounded.
func (g *groupCommit) prepared(ctx context.Context, q string) (*sql.Stmt, error) {
	if s, ok := g.stmts[q]; ok {
		return s, nil
	}
	s, err := g.conn.PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	g.stmts[q] = s
	return s, nil
}
