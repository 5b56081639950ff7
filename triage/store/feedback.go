package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Feedback is what somebody thinks of the verdict on an incident. Each person has one; a newer replaces it.
type Feedback struct {
	IncidentID string
	Author     string
	At         time.Time
	Opinion    string // "right", "partly" or "wrong".
	Cause      string // What it was, when the verdict was not right.
	Comment    string
}

// SaveFeedback keeps the opinion of its author.
func (s *Store) SaveFeedback(ctx context.Context, f Feedback) error {
	return s.do(ctx, "store feedback", func(ctx context.Context, t *tx) error {
		if err := t.exists(ctx, f.IncidentID); err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO feedback (incident_id, author, at, opinion, cause, comment) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (incident_id, author) DO UPDATE SET at = excluded.at, opinion = excluded.opinion,
			cause = excluded.cause, comment = excluded.comment`,
			f.IncidentID, f.Author, millis(f.At), f.Opinion, f.Cause, f.Comment)
	})
}

// Feedback lists the opinions on an incident, the oldest first.
func (s *Store) Feedback(ctx context.Context, incident string) ([]Feedback, error) {
	var out []Feedback
	err := s.query(ctx, "list feedback", func(rows *sql.Rows) error {
		f := Feedback{IncidentID: incident}
		var at int64
		if err := rows.Scan(&f.Author, &at, &f.Opinion, &f.Cause, &f.Comment); err != nil {
			return err
		}
		f.At = fromMillis(at)
		out = append(out, f)
		return nil
	}, `SELECT author, at, opinion, cause, comment FROM feedback WHERE incident_id = ? ORDER BY at, id`, incident)
	return out, err
}

// Step is what became of one step of a runbook during an incident.
type Step struct {
	IncidentID string
	Cause      string // The runbook.
	Step       string // Its step's id.
	Author     string
	At         time.Time
	State      string // "done", "helped", "did_not_help" or "skipped".
	Note       string
}

// SaveStep keeps the newest state of a step.
func (s *Store) SaveStep(ctx context.Context, x Step) error {
	return s.do(ctx, "store step", func(ctx context.Context, t *tx) error {
		if err := t.exists(ctx, x.IncidentID); err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO steps (incident_id, cause, step, author, at, state, note) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (incident_id, cause, step) DO UPDATE SET author = excluded.author, at = excluded.at,
			state = excluded.state, note = excluded.note`,
			x.IncidentID, x.Cause, x.Step, x.Author, millis(x.At), x.State, x.Note)
	})
}

// Steps lists the steps taken during an incident, in the order they were.
func (s *Store) Steps(ctx context.Context, incident string) ([]Step, error) {
	var out []Step
	err := s.query(ctx, "list steps", func(rows *sql.Rows) error {
		x := Step{IncidentID: incident}
		var at int64
		if err := rows.Scan(&x.Cause, &x.Step, &x.Author, &at, &x.State, &x.Note); err != nil {
			return err
		}
		x.At = fromMillis(at)
		out = append(out, x)
		return nil
	}, `SELECT cause, step, author, at, state, note FROM steps WHERE incident_id = ? ORDER BY at, cause, step`, incident)
	return out, err
}

func (t *tx) exists(ctx context.Context, incident string) error {
	var one int
	found, err := t.one(ctx, []any{&one}, `SELECT 1 FROM incidents WHERE id = ?`, incident)
	if err == nil && !found {
		return fmt.Errorf("incident %q: %w", incident, ErrNotFound)
	}
	return err
}
