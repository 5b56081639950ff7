package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vllm-triage/triage"
)

// maxBodies is how many alerts of an incident are kept with their labels. The others are tracked by fingerprint only, so
// that a flood of alerts does not fill the disk.
const maxBodies = 500

// Policy says how notifications become incidents and work.
type Policy struct {
	// Debounce is how long the first triage waits for more alerts.
	Debounce time.Duration
	// JoinDelay is how long a later change waits for others.
	JoinDelay time.Duration
	// FlapWindow is how long after its end an incident is continued.
	FlapWindow time.Duration
	// DuplicateWindow is how long the same notification counts as a copy and not as a repeat.
	DuplicateWindow time.Duration
}

// Delivery is one notification, split into incidents, as it was received.
type Delivery struct {
	// Key is the same for copies of a notification; see DeliveryKey.
	Key       string
	Received  time.Time
	Incidents []triage.Incident
}

// DeliveryKey names the content of a notification: who it is for and the state of each alert. Two Alertmanagers of a cluster
// send the same key, and so does a retry.
func DeliveryKey(p triage.Payload) string {
	alerts := make([]string, 0, len(p.Alerts))
	for _, a := range p.Alerts {
		alerts = append(alerts, fmt.Sprintf("%s\x00%s\x00%d\x00%d", a.Fingerprint, a.Status, millis(a.StartsAt), millis(a.EndsAt)))
	}
	slices.Sort(alerts)
	sum := sha256.New()
	for _, s := range append([]string{p.Receiver, p.GroupKey, p.Status, p.NotificationReason}, alerts...) {
		fmt.Fprintf(sum, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Change says what a notification did to one incident.
type Change struct {
	IncidentID string // Empty when only ends arrived and nothing was open.
	Opened     bool   // A new incident.
	Reopened   bool   // It had ended and came back.
	Resolved   bool   // Its last alert ended.
	Began      int    // Alerts that began to fire.
	Ended      int    // Alerts that ended.
	Doubts     int    // Alerts said to fire within a period that had ended.
}

// changed says whether the incident is to be looked at.
func (c Change) changed() bool {
	return c.Opened || c.Reopened || c.Resolved || c.Began > 0 || c.Ended > 0
}

// Outcome says what a notification did.
type Outcome struct {
	Duplicate bool
	Changes   []Change // One for each incident of the delivery.
}

// Intake stores a notification and the work that follows from it in one transaction. When it returns without an error all
// of that is on the disk. Storing the same notification again changes nothing.
func (s *Store) Intake(ctx context.Context, d Delivery, p Policy) (Outcome, error) {
	// One order of scopes for all, or two notifications could wait for each other.
	incidents := slices.Clone(d.Incidents)
	slices.SortFunc(incidents, func(a, b triage.Incident) int { return cmp.Compare(a.Scope.Key(), b.Scope.Key()) })
	var out Outcome
	err := s.do(ctx, "store notification", func(ctx context.Context, t *tx) error {
		out = Outcome{}
		for _, in := range incidents {
			if err := t.lock(ctx, "scope "+in.Scope.Key()); err != nil {
				return err
			}
		}
		var err error
		if out.Duplicate, err = t.duplicate(ctx, d, p); err != nil {
			return err
		}
		for _, in := range incidents {
			c, err := t.intake(ctx, in, millis(d.Received), p, out.Duplicate)
			if err != nil {
				return err
			}
			out.Changes = append(out.Changes, c)
		}
		return nil
	})
	return out, err
}

// duplicate counts the copies of a notification.
func (t *tx) duplicate(ctx context.Context, d Delivery, p Policy) (bool, error) {
	now, window := millis(d.Received), p.DuplicateWindow.Milliseconds()
	var copies int64
	_, err := t.one(ctx, []any{&copies}, `INSERT INTO deliveries (id, first_at) VALUES (?, ?)
		ON CONFLICT (id) DO UPDATE SET
			first_at = CASE WHEN excluded.first_at - deliveries.first_at <= ? THEN deliveries.first_at ELSE excluded.first_at END,
			copies = CASE WHEN excluded.first_at - deliveries.first_at <= ? THEN deliveries.copies + 1 ELSE 1 END
		RETURNING copies`, d.Key, now, window, window)
	return copies > 1, err
}

// current is the incident of a scope that a notification may be about, and what is known of its alerts.
type current struct {
	found     bool
	id        string
	firing    bool
	closed    int64 // When it was seen to end: the later of receipt and end.
	resolved  int64
	truncated map[string]int
	reported  bool
	alerts    map[string]period // By fingerprint; those without an incident too.
	home      map[string]string // The incident that an alert is kept under; "" for ends that came before their alert.
	bodies    map[string]bool   // Alerts whose labels are kept.
}

func (t *tx) current(ctx context.Context, scopeKey string) (current, error) {
	c := current{
		alerts: map[string]period{}, home: map[string]string{}, bodies: map[string]bool{}, truncated: map[string]int{},
	}
	var status, truncated string
	var revision int64
	var err error
	// At most one fires; else the one that ended last is the one to continue.
	c.found, err = t.one(ctx, []any{&c.id, &status, &c.closed, &c.resolved, &truncated, &revision},
		`SELECT id, status, closed_at, resolved_at, truncated, revision FROM incidents WHERE scope_key = ?
		 ORDER BY CASE WHEN status = 'firing' THEN 0 ELSE 1 END, closed_at DESC, id LIMIT 1`, scopeKey)
	if err != nil {
		return c, err
	}
	if c.found {
		c.firing, c.reported = status == triage.StatusFiring, revision > 0
		if c.truncated, err = parseTruncated(truncated); err != nil {
			return c, err
		}
	}
	scan := func(rows *sql.Rows) error {
		var id, fingerprint, status string
		var p period
		var body bool
		if err := rows.Scan(&id, &fingerprint, &status, &p.start, &p.end, &body); err != nil {
			return err
		}
		p.firing = status == triage.StatusFiring
		if known, twice := c.alerts[fingerprint]; twice && known.start >= p.start {
			return nil
		}
		c.alerts[fingerprint], c.home[fingerprint] = p, id
		if body {
			c.bodies[fingerprint] = true
		}
		return nil
	}
	const columns = `SELECT incident_id, fingerprint, status, starts_at, ends_at, body <> '' FROM alerts `
	const orphans = columns + `WHERE incident_id = '' AND scope_key = ?`
	if !c.found {
		return c, t.each(ctx, scan, orphans, scopeKey)
	}
	return c, t.each(ctx, scan, columns+`WHERE incident_id = ? UNION ALL `+orphans, c.id, scopeKey)
}

func (t *tx) intake(ctx context.Context, in triage.Incident, now int64, p Policy, duplicate bool) (Change, error) {
	scopeKey := in.Scope.Key()
	cur, err := t.current(ctx, scopeKey)
	if err != nil {
		return Change{}, err
	}
	var c Change
	states := make([]alertState, 0, len(in.Alerts))
	firstStart := int64(0)
	for _, a := range in.Alerts {
		said := period{firing: a.Status == triage.StatusFiring, start: millis(a.StartsAt), end: millis(a.EndsAt)}
		if !said.firing && said.end == 0 {
			said.end = now // An end without a time ends now.
		}
		var known *period
		if k, ok := cur.alerts[a.Fingerprint]; ok {
			known = &k
		}
		merged, what := mergeAlert(known, said)
		cur.alerts[a.Fingerprint] = merged
		switch what {
		case began:
			c.Began++
			if firstStart == 0 || said.start < firstStart {
				firstStart = said.start
			}
		case ended:
			c.Ended++
		case doubted:
			c.Doubts++
		case unchanged:
			if known != nil && *known == merged {
				continue
			}
		}
		states = append(states, alertState{alert: a, period: merged, doubted: what == doubted})
	}
	if err := t.place(ctx, in, &cur, &c, now, firstStart, p); err != nil {
		return c, err
	}
	if err := t.saveAlerts(ctx, scopeKey, &cur, states, now); err != nil {
		return c, err
	}
	if !cur.found {
		return c, nil
	}
	c.IncidentID = cur.id
	if err := t.close(ctx, &cur, &c, now); err != nil {
		return c, err
	}
	repeat := cur.firing && !duplicate && !c.changed() && c.Doubts == 0
	if err := t.note(ctx, in, &cur, now, repeat); err != nil {
		return c, err
	}
	if c.changed() {
		delay := p.JoinDelay
		if !cur.reported {
			delay = p.Debounce
		}
		return c, t.enqueue(ctx, KindTriage, cur.id, reasonOf(c), now+delay.Milliseconds())
	}
	return c, nil
}

// place finds or makes the incident that alerts which began belong to.
func (t *tx) place(
	ctx context.Context, in triage.Incident, cur *current, c *Change, now, firstStart int64, p Policy,
) error {
	switch {
	case c.Began == 0 || cur.found && cur.firing:
		return nil
	case cur.found && (firstStart <= cur.resolved || now-cur.closed <= p.FlapWindow.Milliseconds()):
		return t.reopen(ctx, cur, c, now)
	}
	scope, err := json.Marshal(in.Scope)
	if err != nil {
		return err
	}
	n, err := t.count(ctx, `INSERT INTO incidents (id, scope_key, scope, model, status, group_key, receiver, external_url,
		started_at, opened_at, firing_since, notified_at) VALUES (?, ?, ?, ?, 'firing', ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`, in.ID, in.Scope.Key(), string(scope), in.Scope.Model, in.GroupKey, in.Receiver,
		in.ExternalURL, firstStart, now, now, now)
	if err != nil {
		return err
	}
	// What is known of the alerts of an incident that is over is no part of this one.
	*cur = current{
		found: true, id: in.ID, firing: true, truncated: map[string]int{}, alerts: cur.alerts,
		home: map[string]string{}, bodies: map[string]bool{},
	}
	maps.DeleteFunc(cur.alerts, func(_ string, known period) bool { return !known.firing })
	if n == 0 {
		// The id is made of scope and start: this alert began an incident before, and a resolve after it was not true.
		return t.reopen(ctx, cur, c, now)
	}
	c.Opened = true
	return nil
}

func (t *tx) reopen(ctx context.Context, cur *current, c *Change, now int64) error {
	c.Reopened, cur.firing = true, true
	return t.exec(ctx, `UPDATE incidents SET status = 'firing', flaps = flaps + 1, firing_since = ?, resolved_at = 0,
		closed_at = 0 WHERE id = ?`, now, cur.id)
}

// close ends a firing incident none of whose alerts fires any more.
func (t *tx) close(ctx context.Context, cur *current, c *Change, now int64) error {
	if !cur.firing {
		return nil
	}
	end := int64(0)
	for fingerprint, p := range cur.alerts {
		if p.firing {
			return nil
		}
		if home, known := cur.home[fingerprint]; !known || home != "" {
			end = max(end, p.end)
		}
	}
	c.Resolved, cur.firing = true, false
	return t.exec(ctx, `UPDATE incidents SET status = 'resolved', resolved_at = ?, closed_at = ? WHERE id = ?`,
		end, max(end, now), cur.id)
}

// note keeps what the newest notification says beside its alerts.
func (t *tx) note(ctx context.Context, in triage.Incident, cur *current, now int64, repeat bool) error {
	if in.Truncated > 0 {
		cur.truncated[in.GroupKey] = in.Truncated
	} else {
		delete(cur.truncated, in.GroupKey)
	}
	truncated, err := json.Marshal(cur.truncated)
	if err != nil {
		return err
	}
	repeats := 0
	if repeat {
		repeats = 1
	}
	start := millis(in.StartsAt())
	return t.exec(ctx, `UPDATE incidents SET notified_at = CASE WHEN notified_at > ? THEN notified_at ELSE ? END,
		reason = ?, truncated = ?, repeats = repeats + ?, started_at = CASE WHEN started_at < ? THEN started_at ELSE ? END
		WHERE id = ?`, now, now, in.Reason, string(truncated), repeats, start, start, cur.id)
}

// alertState is an alert with the period that is to be stored.
type alertState struct {
	alert   triage.Alert
	period  period
	doubted bool
}

func (a alertState) status() string {
	if a.period.firing {
		return triage.StatusFiring
	}
	return triage.StatusResolved
}

// rowsPerInsert keeps statements below the engines' limits on parameters; SQLite's is 32,766.
const rowsPerInsert = 100

func (t *tx) saveAlerts(ctx context.Context, scopeKey string, cur *current, states []alertState, now int64) error {
	for chunk := range slices.Chunk(states, rowsPerInsert) {
		args := make([]any, 0, 9*len(chunk))
		for _, a := range chunk {
			fingerprint := a.alert.Fingerprint
			id := cur.id
			if !cur.firing {
				id = cur.home[fingerprint] // Ends of alerts that were never heard of wait without an incident.
			}
			body := ""
			if cur.bodies[fingerprint] || len(cur.bodies) < maxBodies {
				data, err := json.Marshal(a.alert)
				if err != nil {
					return err
				}
				body = string(data)
				cur.bodies[fingerprint] = true
			}
			doubt := int64(0)
			if a.doubted {
				doubt = now
			}
			args = append(args, id, fingerprint, scopeKey, a.status(), a.period.start, a.period.end, now, doubt, body)
		}
		q := `INSERT INTO alerts (incident_id, fingerprint, scope_key, status, starts_at, ends_at, changed_at, doubt_at, body)
			VALUES ` + strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?), ", len(chunk)), ", ") + `
			ON CONFLICT (incident_id, fingerprint) DO UPDATE SET status = excluded.status, starts_at = excluded.starts_at,
			ends_at = excluded.ends_at, changed_at = excluded.changed_at, doubt_at = excluded.doubt_at,
			body = CASE WHEN excluded.body = '' THEN alerts.body ELSE excluded.body END`
		if err := t.exec(ctx, q, args...); err != nil {
			return err
		}
	}
	return nil
}

func reasonOf(c Change) string {
	switch {
	case c.Opened:
		return "opened"
	case c.Reopened:
		return "reopened"
	case c.Resolved:
		return "resolved"
	case c.Began > 0:
		return "joined"
	default:
		return "ended"
	}
}
