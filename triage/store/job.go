package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Kind of a job.
const (
	// KindTriage looks at one incident; there is at most one such job an incident.
	KindTriage = "triage"
	// KindSweep looks for alerts whose resolve got lost; there is one such job in all.
	KindSweep = "sweep"
	// KindPrune drops what is older than the retention; there is one such job in all.
	KindPrune = "prune"
)

// The states of a job.
const (
	jobReady   = "ready"
	jobRunning = "running"
	jobDead    = "dead"
)

// Job is a claimed piece of work.
type Job struct {
	ID         int64
	Kind       string
	IncidentID string
	Reason     string // What wanted it.
	RunAt      time.Time
	Attempts   int // This one included.
	State      string
	Error      string // Of the last attempt.

	owner      string
	generation int64
}

// jobKey names a job; wanting it twice is wanting it once.
func jobKey(kind, incident string) string { return kind + ":" + incident }

// enqueue wants a job at a time: the earlier of that and the time at which it is wanted already. A running job runs again.
func (t *tx) enqueue(ctx context.Context, kind, incident, reason string, at int64) error {
	return t.exec(ctx, `INSERT INTO jobs (job_key, kind, incident_id, reason, state, run_at) VALUES (?, ?, ?, ?, 'ready', ?)
		ON CONFLICT (job_key) DO UPDATE SET
			generation = jobs.generation + 1,
			reason = excluded.reason,
			run_at = CASE WHEN jobs.state = 'ready' AND jobs.run_at > excluded.run_at OR jobs.state = 'dead'
				THEN excluded.run_at ELSE jobs.run_at END,
			again_at = CASE WHEN jobs.state = 'running' AND (jobs.again_at = 0 OR jobs.again_at > excluded.run_at)
				THEN excluded.run_at ELSE jobs.again_at END,
			attempts = CASE WHEN jobs.state = 'dead' THEN 0 ELSE jobs.attempts END,
			state = CASE WHEN jobs.state = 'dead' THEN 'ready' ELSE jobs.state END`,
		jobKey(kind, incident), kind, incident, reason, at)
}

// Enqueue wants a job at a time, or earlier if it is wanted earlier already.
func (s *Store) Enqueue(ctx context.Context, kind, incident, reason string, at time.Time) error {
	return s.do(ctx, "enqueue job", func(ctx context.Context, t *tx) error {
		return t.enqueue(ctx, kind, incident, reason, millis(at))
	})
}

const jobColumns = `id, kind, incident_id, reason, run_at, attempts, state, error, owner, generation`

func scanJob(rows *sql.Rows) (Job, error) {
	var j Job
	var run int64
	err := rows.Scan(&j.ID, &j.Kind, &j.IncidentID, &j.Reason, &run, &j.Attempts, &j.State, &j.Error, &j.owner, &j.generation)
	j.RunAt = fromMillis(run)
	return j, err
}

// Claim takes the job that is due longest, one whose holder let its lease run out included. found is false when none is
// due.
func (s *Store) Claim(ctx context.Context, owner string, now time.Time, lease time.Duration) (j Job, found bool, err error) {
	err = s.do(ctx, "claim job", func(ctx context.Context, t *tx) error {
		found = false
		return t.each(ctx, func(rows *sql.Rows) error {
			var err error
			found = true
			j, err = scanJob(rows)
			return err
		}, `UPDATE jobs SET state = 'running', owner = ?, lease_until = ?, attempts = attempts + 1 WHERE id = (
				SELECT id FROM jobs WHERE state = 'ready' AND run_at <= ? OR state = 'running' AND lease_until <= ?
				ORDER BY run_at, id LIMIT 1`+s.d.skipLocked+`)
			RETURNING `+jobColumns, owner, millis(now.Add(lease)), millis(now), millis(now))
	})
	return j, found, err
}

// held is the condition that a job is still its claimer's.
const held = ` WHERE id = ? AND state = 'running' AND owner = ?`

// Renew prolongs the lease of a job. It returns ErrLeaseLost when another worker has taken over.
func (s *Store) Renew(ctx context.Context, j Job, until time.Time) error {
	return s.do(ctx, "renew lease", func(ctx context.Context, t *tx) error {
		return t.must(ctx, ErrLeaseLost, `UPDATE jobs SET lease_until = ?`+held, millis(until), j.ID, j.owner)
	})
}

// Finish ends a job. It runs again at next (the zero time: never), or earlier if it was wanted while it ran.
func (s *Store) Finish(ctx context.Context, j Job, next time.Time) error {
	return s.do(ctx, "finish job", func(ctx context.Context, t *tx) error { return t.finish(ctx, j, next) })
}

func (t *tx) finish(ctx context.Context, j Job, next time.Time) error {
	var generation, again int64
	found, err := t.one(ctx, []any{&generation, &again}, `SELECT generation, again_at FROM jobs`+held, j.ID, j.owner)
	if err != nil {
		return err
	}
	if !found {
		return ErrLeaseLost
	}
	at := millis(next)
	if generation != j.generation && again > 0 && (at == 0 || again < at) {
		at = again
	}
	if at == 0 {
		return t.must(ctx, ErrLeaseLost, `DELETE FROM jobs`+held+` AND generation = ?`, j.ID, j.owner, generation)
	}
	return t.must(ctx, ErrLeaseLost, `UPDATE jobs SET state = 'ready', run_at = ?, again_at = 0, attempts = 0, owner = '',
		lease_until = 0, error = ''`+held+` AND generation = ?`, at, j.ID, j.owner, generation)
}

// Retry gives a job back after a failed attempt, to be run again at a time.
func (s *Store) Retry(ctx context.Context, j Job, at time.Time, cause error) error {
	return s.do(ctx, "retry job", func(ctx context.Context, t *tx) error {
		return t.must(ctx, ErrLeaseLost, `UPDATE jobs SET state = 'ready', run_at = ?, owner = '', lease_until = 0, error = ?`+
			held, millis(at), cut(cause.Error()), j.ID, j.owner)
	})
}

// Bury gives a job up until somebody, or news of its incident, wants it again.
func (s *Store) Bury(ctx context.Context, j Job, cause error) error {
	return s.do(ctx, "bury job", func(ctx context.Context, t *tx) error {
		return t.must(ctx, ErrLeaseLost, `UPDATE jobs SET state = 'dead', again_at = 0, owner = '', lease_until = 0, error = ?`+
			held, cut(cause.Error()), j.ID, j.owner)
	})
}

// Release gives back everything that an owner holds, jobs and conversations, for others to take at once. The attempts do
// not count.
func (s *Store) Release(ctx context.Context, owner string) error {
	return s.do(ctx, "release leases", func(ctx context.Context, t *tx) error {
		return errors.Join(
			t.exec(ctx, `UPDATE jobs SET state = 'ready', owner = '', lease_until = 0, attempts = attempts - 1
				WHERE state = 'running' AND owner = ?`, owner),
			t.exec(ctx, `UPDATE conversations SET owner = '', lease_until = 0 WHERE owner = ?`, owner),
		)
	})
}

// DeadJobs lists the jobs that were given up.
func (s *Store) DeadJobs(ctx context.Context) ([]Job, error) {
	return s.jobs(ctx, `SELECT `+jobColumns+` FROM jobs WHERE state = 'dead' ORDER BY run_at, id LIMIT 1000`)
}

// Jobs lists all jobs, the most urgent first.
func (s *Store) Jobs(ctx context.Context) ([]Job, error) {
	return s.jobs(ctx, `SELECT `+jobColumns+` FROM jobs ORDER BY run_at, id LIMIT 1000`)
}

func (s *Store) jobs(ctx context.Context, q string) ([]Job, error) {
	var out []Job
	err := s.query(ctx, "list jobs", func(rows *sql.Rows) error {
		j, err := scanJob(rows)
		out = append(out, j)
		return err
	}, q)
	return out, err
}

// ReviveJob makes a job that was given up due now.
func (s *Store) ReviveJob(ctx context.Context, id int64, now time.Time) error {
	return s.do(ctx, "revive job", func(ctx context.Context, t *tx) error {
		return t.must(ctx, fmt.Errorf("dead job %d: %w", id, ErrNotFound),
			`UPDATE jobs SET state = 'ready', attempts = 0, run_at = ? WHERE id = ? AND state = 'dead'`, millis(now), id)
	})
}

// NextJob is when the next job becomes due, by its time or by the end of its holder's lease. The zero time means that
// nothing waits.
func (s *Store) NextJob(ctx context.Context) (time.Time, error) {
	return s.next(ctx, `SELECT MIN(run_at) FROM jobs WHERE state = 'ready'
		UNION ALL SELECT MIN(lease_until) FROM jobs WHERE state = 'running'`)
}

// NextDelivery is the same for conversations that have news.
func (s *Store) NextDelivery(ctx context.Context) (time.Time, error) {
	return s.next(ctx, `SELECT MIN(CASE WHEN lease_until > next_at THEN lease_until ELSE next_at END) FROM conversations
		WHERE state = 'active' AND shown < wanted`)
}

// next is the earliest of the times that a query gives.
func (s *Store) next(ctx context.Context, q string) (time.Time, error) {
	var next int64
	err := s.query(ctx, "read due times", func(rows *sql.Rows) error {
		var at sql.NullInt64
		if err := rows.Scan(&at); err != nil {
			return err
		}
		if at.Valid && (next == 0 || at.Int64 < next) {
			next = at.Int64
		}
		return nil
	}, q)
	return fromMillis(next), err
}

// maxError bounds the texts of errors that are kept.
const maxError = 500

func cut(s string) string {
	if r := []rune(s); len(r) > maxError {
		return string(r[:maxError-1]) + "…"
	}
	return s
}
