package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"vllm-triage/triage"
)

// Target is a channel in which an incident is shown.
type Target struct {
	Channel string
	// Settings are kept with the conversation as they are; they belong to whoever delivers.
	Settings json.RawMessage
	// Shadow conversations are kept and never delivered.
	Shadow bool
	// Changed is a message for the thread that says what is new; nil for none.
	Changed json.RawMessage
}

// Result is what a triage found and what follows from it.
type Result struct {
	Report  triage.Report
	Targets []Target
	// Next is when to look again; the zero time: when something happens.
	Next time.Time
}

// FinishTriage stores the report of a triage, what is to be told, and the end of its job in one transaction, and returns
// the report's revision. With ErrLeaseLost nothing is stored: another worker has the job.
func (s *Store) FinishTriage(ctx context.Context, j Job, r Result, now time.Time) (revision int64, err error) {
	body, err := pack(r.Report)
	if err != nil {
		return 0, err
	}
	err = s.do(ctx, "store report", func(ctx context.Context, t *tx) error {
		// First of all: who does not hold the lease must not write, and the row stays locked until the commit.
		if err := t.finish(ctx, j, r.Next); err != nil {
			return err
		}
		revision, err = t.saveReport(ctx, j.IncidentID, r.Report, body)
		if err != nil {
			return err
		}
		for _, target := range r.Targets {
			if err := t.want(ctx, j.IncidentID, target, revision, millis(now)); err != nil {
				return err
			}
		}
		return nil
	})
	return revision, err
}

func (t *tx) saveReport(ctx context.Context, incident string, r triage.Report, body []byte) (int64, error) {
	bottleneck, trigger := first(r.Bottlenecks), first(r.Triggers)
	var revision int64
	found, err := t.one(ctx, []any{&revision}, `UPDATE incidents SET revision = revision + 1, verdict = ?, bottleneck = ?,
		trigger_id = ?, probability = ? WHERE id = ? RETURNING revision`,
		string(r.Verdict), bottleneck.ID, trigger.ID, bottleneck.Probability, incident)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("incident %q: %w", incident, ErrNotFound)
	}
	if err := t.exec(ctx, `INSERT INTO reports (incident_id, revision, at, status, verdict, bottleneck, trigger_id, probability,
		body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, incident, revision, millis(r.GeneratedAt), r.Incident.Status,
		string(r.Verdict), bottleneck.ID, trigger.ID, bottleneck.Probability, body); err != nil {
		return 0, err
	}
	// In full are kept the newest two and the newest that found a cause while the incident fired: messages tell of them.
	if err := t.exec(ctx, `UPDATE reports SET body = NULL WHERE incident_id = ? AND revision < ? AND body IS NOT NULL
		AND revision <> COALESCE((SELECT MAX(revision) FROM reports WHERE incident_id = ? AND verdict = ? AND status <> ?), 0)`,
		incident, revision-1, incident, string(triage.CauseFound), triage.StatusResolved); err != nil {
		return 0, err
	}
	return revision, t.exec(ctx, `DELETE FROM reports WHERE incident_id = ? AND revision <= ? AND body IS NULL`,
		incident, revision-maxVerdicts)
}

// maxVerdicts is how many verdicts of an incident are remembered.
const maxVerdicts = 200

func first(hs []triage.Hypothesis) triage.Hypothesis {
	if len(hs) == 0 {
		return triage.Hypothesis{}
	}
	return hs[0]
}

// Verdict is one line of an incident's history.
type Verdict struct {
	Revision    int64
	At          time.Time
	Status      string
	Verdict     triage.Verdict
	Bottleneck  string
	Trigger     string
	Probability float64
}

// Verdicts lists the verdicts on an incident, the oldest first.
func (s *Store) Verdicts(ctx context.Context, incident string) ([]Verdict, error) {
	var out []Verdict
	err := s.query(ctx, "list verdicts", func(rows *sql.Rows) error {
		var v Verdict
		var at int64
		if err := rows.Scan(&v.Revision, &at, &v.Status, &v.Verdict, &v.Bottleneck, &v.Trigger, &v.Probability); err != nil {
			return err
		}
		v.At = fromMillis(at)
		out = append(out, v)
		return nil
	}, `SELECT revision, at, status, verdict, bottleneck, trigger_id, probability FROM reports WHERE incident_id = ?
		ORDER BY revision`, incident)
	return out, err
}

// Reports are the reports that a message on an incident tells of.
type Reports struct {
	Revision int64 // Of Latest; 0: there is none yet.
	Latest   *triage.Report
	// Previous is the report before it; when the incident is over, the last that found a cause while it fired.
	Previous *triage.Report
}

// Reports returns the newest report on an incident and the one to compare it with.
func (s *Store) Reports(ctx context.Context, incident string) (Reports, error) {
	type kept struct {
		revision int64
		status   string
		verdict  triage.Verdict
		body     []byte
	}
	var all []kept
	err := s.query(ctx, "read reports", func(rows *sql.Rows) error {
		var k kept
		if err := rows.Scan(&k.revision, &k.status, &k.verdict, &k.body); err != nil {
			return err
		}
		all = append(all, k)
		return nil
	}, `SELECT revision, status, verdict, body FROM reports WHERE incident_id = ? AND body IS NOT NULL
		ORDER BY revision DESC`, incident)
	if err != nil || len(all) == 0 {
		return Reports{}, err
	}
	out := Reports{Revision: all[0].revision}
	if out.Latest, err = unpack(all[0].body); err != nil {
		return Reports{}, err
	}
	over := all[0].status == triage.StatusResolved || all[0].verdict == triage.NoBottleneck
	for _, k := range all[1:] {
		if over && (k.verdict != triage.CauseFound || k.status == triage.StatusResolved) {
			continue
		}
		out.Previous, err = unpack(k.body)
		return out, err
	}
	if len(all) > 1 {
		out.Previous, err = unpack(all[1].body)
	}
	return out, err
}

// pack makes a report small: it repeats itself a lot.
func pack(r triage.Report) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("pack report: %w", err)
	}
	if err := json.NewEncoder(z).Encode(r); err != nil {
		return nil, fmt.Errorf("pack report: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack report: %w", err)
	}
	return b.Bytes(), nil
}

// maxReport bounds a report that is unpacked, in bytes.
const maxReport = 64 << 20

func unpack(data []byte) (*triage.Report, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack report: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxReport))
	if err != nil {
		return nil, fmt.Errorf("unpack report: %w", err)
	}
	var r triage.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("unpack report: %w", err)
	}
	return &r, nil
}
