package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// Check is a re-check of an incident that somebody asked for: the same questions again, perhaps after a step of a runbook.
type Check struct {
	ID         int64
	IncidentID string
	Author     string
	Cause      string // The runbook; may be empty.
	Step       string // Its step; may be empty.
	AskedAt    time.Time
	DoneAt     time.Time // Zero until it was measured.
	// Body is what was measured. It belongs to whoever shows it.
	Body json.RawMessage
}

// AskCheck keeps that a re-check is wanted together with the job that makes it. Asking twice before it is made is asking once.
func (s *Store) AskCheck(ctx context.Context, c Check) error {
	return s.do(ctx, "ask for re-check", func(ctx context.Context, t *tx) error {
		if err := t.exists(ctx, c.IncidentID); err != nil {
			return err
		}
		var id int64
		pending, err := t.one(ctx, []any{&id}, `SELECT id FROM checks WHERE incident_id = ? AND author = ? AND cause = ?
			AND step = ? AND done_at = 0`, c.IncidentID, c.Author, c.Cause, c.Step)
		if err != nil {
			return err
		}
		if !pending {
			if err := t.exec(ctx, `INSERT INTO checks (incident_id, author, cause, step, asked_at) VALUES (?, ?, ?, ?, ?)`,
				c.IncidentID, c.Author, c.Cause, c.Step, millis(c.AskedAt)); err != nil {
				return err
			}
		}
		return t.enqueue(ctx, KindTriage, c.IncidentID, "asked for by "+c.Author, millis(c.AskedAt))
	})
}

// KeepCheck keeps a re-check that was made already; its Body and DoneAt are set, its ID is not read.
func (s *Store) KeepCheck(ctx context.Context, c Check) error {
	return s.do(ctx, "store re-check", func(ctx context.Context, t *tx) error {
		if err := t.exists(ctx, c.IncidentID); err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO checks (incident_id, author, cause, step, asked_at, done_at, body) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			c.IncidentID, c.Author, c.Cause, c.Step, millis(c.AskedAt), millis(c.DoneAt), string(c.Body))
	})
}

// FinishCheck keeps what a re-check measured. Only the first result counts.
func (s *Store) FinishCheck(ctx context.Context, id int64, body json.RawMessage, at time.Time) error {
	return s.do(ctx, "finish re-check", func(ctx context.Context, t *tx) error {
		return t.exec(ctx, `UPDATE checks SET done_at = ?, body = ? WHERE id = ? AND done_at = 0`, millis(at), string(body), id)
	})
}

// Checks lists the re-checks of an incident, the oldest first; those that are not made yet have no body.
func (s *Store) Checks(ctx context.Context, incident string) ([]Check, error) {
	var out []Check
	err := s.query(ctx, "list re-checks", func(rows *sql.Rows) error {
		c := Check{IncidentID: incident}
		var asked, done int64
		var body string
		if err := rows.Scan(&c.ID, &c.Author, &c.Cause, &c.Step, &asked, &done, &body); err != nil {
			return err
		}
		c.AskedAt, c.DoneAt = fromMillis(asked), fromMillis(done)
		if body != "" {
			c.Body = json.RawMessage(body)
		}
		out = append(out, c)
		return nil
	}, `SELECT id, author, cause, step, asked_at, done_at, body FROM checks WHERE incident_id = ? ORDER BY asked_at, id`,
		incident)
	return out, err
}
