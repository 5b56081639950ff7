package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"vllm-triage/triage"
)

// Suspect is an alert whose state may not be what the store holds.
type Suspect struct {
	IncidentID string // Empty: there is no incident yet.
	Alert      triage.Alert
	// Doubted alerts were said to fire within a period that had ended; the others fire and were not heard of for a while.
	Doubted bool
}

// Suspects lists alerts to ask about: those in doubt since before doubtedBefore, and those that fire in incidents of which
// nothing was heard since quietSince.
func (s *Store) Suspects(ctx context.Context, doubtedBefore, quietSince time.Time, limit int) ([]Suspect, error) {
	var out []Suspect
	err := s.query(ctx, "list suspects", func(rows *sql.Rows) error {
		var x Suspect
		var status, body string
		var ends, doubt int64
		if err := rows.Scan(&x.IncidentID, &status, &ends, &doubt, &body); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(body), &x.Alert); err != nil {
			return fmt.Errorf("read alert of incident %s: %w", x.IncidentID, err)
		}
		x.Doubted = doubt > 0
		x.Alert.Status, x.Alert.EndsAt = status, fromMillis(ends)
		out = append(out, x)
		return nil
	}, `SELECT a.incident_id, a.status, a.ends_at, a.doubt_at, a.body FROM alerts a
		LEFT JOIN incidents i ON i.id = a.incident_id
		WHERE a.body <> '' AND (a.doubt_at > 0 AND a.doubt_at <= ?
			OR a.status = 'firing' AND i.status = 'firing' AND i.notified_at <= ?)
		ORDER BY a.doubt_at DESC, a.incident_id, a.fingerprint LIMIT ?`, millis(doubtedBefore), millis(quietSince), limit)
	return out, err
}

// ClearDoubt notes that an alert in doubt does not fire.
func (s *Store) ClearDoubt(ctx context.Context, x Suspect) error {
	return s.do(ctx, "clear doubt", func(ctx context.Context, t *tx) error {
		return t.exec(ctx, `UPDATE alerts SET doubt_at = 0 WHERE incident_id = ? AND fingerprint = ? AND status = 'resolved'`,
			x.IncidentID, x.Alert.Fingerprint)
	})
}
