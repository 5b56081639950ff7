package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vllm-triage/triage"
)

// Incident is what is known of one incident, its reports apart.
type Incident struct {
	ID          string
	Scope       triage.Scope
	Status      string // triage.StatusFiring or triage.StatusResolved.
	GroupKey    string // Of the notification that opened it.
	Receiver    string
	Reason      string // Of the newest notification.
	ExternalURL string
	Truncated   int       // Alerts that Alertmanager left out, over all groups.
	StartedAt   time.Time // The earliest startsAt of its alerts.
	OpenedAt    time.Time // Receipt of the first notification.
	FiringSince time.Time // Receipt of the notification that made it fire, the last time it began to.
	NotifiedAt  time.Time // Receipt of the newest notification that was not a duplicate.
	ResolvedAt  time.Time // When its last alert ended; zero while it fires.
	Flaps       int       // How often it ended and came back.
	Repeats     int       // Notifications that brought nothing new.
	Revision    int64     // Counts its reports.
	Verdict     triage.Verdict
	Bottleneck  string
	Trigger     string
	Probability float64
}

// Triage is the question that an incident with these alerts puts to the engine at a time.
func (in Incident) Triage(alerts []triage.Alert, now time.Time) triage.Incident {
	return triage.Incident{
		ID: in.ID, GroupKey: in.GroupKey, Receiver: in.Receiver, Status: in.Status, Now: now.UTC(), Scope: in.Scope,
		Alerts: alerts, Truncated: in.Truncated, Reason: in.Reason, ExternalURL: in.ExternalURL,
	}
}

const incidentColumns = `id, scope, status, group_key, receiver, reason, external_url, truncated, started_at, opened_at,
	firing_since, notified_at, resolved_at, flaps, repeats, revision, verdict, bottleneck, trigger_id, probability`

// scanIncident reads incidentColumns and what follows them into more.
func scanIncident(rows *sql.Rows, in *Incident, more ...any) error {
	var scope, truncated string
	var started, opened, firing, notified, resolved int64
	dest := []any{
		&in.ID, &scope, &in.Status, &in.GroupKey, &in.Receiver, &in.Reason, &in.ExternalURL, &truncated, &started, &opened,
		&firing, &notified, &resolved, &in.Flaps, &in.Repeats, &in.Revision, &in.Verdict, &in.Bottleneck, &in.Trigger,
		&in.Probability,
	}
	if err := rows.Scan(append(dest, more...)...); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(scope), &in.Scope); err != nil {
		return fmt.Errorf("read scope of incident %s: %w", in.ID, err)
	}
	groups, err := parseTruncated(truncated)
	if err != nil {
		return fmt.Errorf("read counts of incident %s: %w", in.ID, err)
	}
	for _, n := range groups {
		in.Truncated += n
	}
	in.StartedAt, in.OpenedAt, in.FiringSince = fromMillis(started), fromMillis(opened), fromMillis(firing)
	in.NotifiedAt, in.ResolvedAt = fromMillis(notified), fromMillis(resolved)
	return nil
}

// parseTruncated reads how many alerts each group left out.
func parseTruncated(text string) (map[string]int, error) {
	groups := map[string]int{}
	err := json.Unmarshal([]byte(text), &groups)
	return groups, err
}

// Incident returns an incident with its alerts, sorted as in a report.
func (s *Store) Incident(ctx context.Context, id string) (Incident, []triage.Alert, error) {
	var in Incident
	found := false
	err := s.query(ctx, "read incident", func(rows *sql.Rows) error {
		found = true
		return scanIncident(rows, &in)
	}, `SELECT `+incidentColumns+` FROM incidents WHERE id = ?`, id)
	if err != nil {
		return Incident{}, nil, err
	}
	if !found {
		return Incident{}, nil, fmt.Errorf("incident %q: %w", id, ErrNotFound)
	}
	alerts, err := s.alerts(ctx, id)
	return in, alerts, err
}

func (s *Store) alerts(ctx context.Context, id string) ([]triage.Alert, error) {
	var out []triage.Alert
	err := s.query(ctx, "read alerts", func(rows *sql.Rows) error {
		var status, body string
		var ends int64
		if err := rows.Scan(&status, &ends, &body); err != nil {
			return err
		}
		if body == "" {
			return nil // One of the many that are only counted.
		}
		var a triage.Alert
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			return fmt.Errorf("read alert of incident %s: %w", id, err)
		}
		a.Status, a.EndsAt = status, fromMillis(ends)
		out = append(out, a)
		return nil
	}, `SELECT status, ends_at, body FROM alerts WHERE incident_id = ? ORDER BY starts_at, fingerprint`, id)
	slices.SortStableFunc(out, func(a, b triage.Alert) int {
		if c := a.StartsAt.Compare(b.StartsAt); c != 0 {
			return c
		}
		return strings.Compare(a.Name+"\x00"+a.Fingerprint, b.Name+"\x00"+b.Fingerprint)
	})
	return out, err
}

// AlertCounts says how many alerts of an incident fire and how many have ended, those that are only counted included.
func (s *Store) AlertCounts(ctx context.Context, id string) (firing, resolved int, err error) {
	err = s.query(ctx, "count alerts", func(rows *sql.Rows) error {
		var status string
		var n int
		if err := rows.Scan(&status, &n); err != nil {
			return err
		}
		if status == triage.StatusFiring {
			firing = n
		} else {
			resolved = n
		}
		return nil
	}, `SELECT status, COUNT(*) FROM alerts WHERE incident_id = ? GROUP BY status`, id)
	return firing, resolved, err
}

// Filter selects incidents. Its zero value selects the newest.
type Filter struct {
	Status string // Empty: any.
	Model  string // Empty: any.
	// Before continues a list after the incident of that time and id.
	Before   time.Time
	BeforeID string
	Limit    int // Default 50, at most 500.
}

// Incidents lists incidents, the newest first.
func (s *Store) Incidents(ctx context.Context, f Filter) ([]Incident, error) {
	where, args := []string{"1 = 1"}, []any{}
	if f.Status != "" {
		where, args = append(where, "status = ?"), append(args, f.Status)
	}
	if f.Model != "" {
		where, args = append(where, "model = ?"), append(args, f.Model)
	}
	if !f.Before.IsZero() {
		where = append(where, "(opened_at < ? OR (opened_at = ? AND id < ?))")
		args = append(args, millis(f.Before), millis(f.Before), f.BeforeID)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 50
	}
	return s.incidents(ctx, `SELECT `+incidentColumns+` FROM incidents WHERE `+strings.Join(where, " AND ")+
		` ORDER BY opened_at DESC, id DESC LIMIT ?`, append(args, min(limit, 500))...)
}

func (s *Store) incidents(ctx context.Context, q string, args ...any) ([]Incident, error) {
	var out []Incident
	err := s.query(ctx, "list incidents", func(rows *sql.Rows) error {
		var in Incident
		if err := scanIncident(rows, &in); err != nil {
			return err
		}
		out = append(out, in)
		return nil
	}, q, args...)
	return out, err
}

// Similar lists earlier incidents with the same bottleneck, those of the same model first, then the newest.
func (s *Store) Similar(ctx context.Context, in Incident, limit int) ([]Incident, error) {
	if in.Bottleneck == "" {
		return nil, nil
	}
	return s.incidents(ctx, `SELECT `+incidentColumns+` FROM incidents WHERE bottleneck = ? AND id <> ? AND opened_at <= ?
		AND verdict = ? ORDER BY CASE WHEN model = ? THEN 0 ELSE 1 END, opened_at DESC, id DESC LIMIT ?`,
		in.Bottleneck, in.ID, millis(in.OpenedAt), string(triage.CauseFound), in.Scope.Model, limit)
}

// Models lists the models of incidents that are kept, sorted.
func (s *Store) Models(ctx context.Context) ([]string, error) {
	models := map[string]bool{}
	err := s.query(ctx, "list models", func(rows *sql.Rows) error {
		var m string
		if err := rows.Scan(&m); err != nil {
			return err
		}
		models[m] = true
		return nil
	}, `SELECT DISTINCT model FROM incidents WHERE model <> ''`)
	return slices.Sorted(maps.Keys(models)), err
}
