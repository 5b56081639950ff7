package server

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/sweep"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

const (
	// stale is how long news may have waited, and how old the report may be, before it is looked again what is true now.
	stale = 2 * time.Minute
	// checkWait is how long a late message waits for that second look. It is waited for once.
	checkWait = 10 * time.Second
	// checkedFirst is the reason of a delivery that waits for it.
	checkedFirst = "checking"
	// askTime bounds the question whether alerts still fire.
	askTime = 5 * time.Second
)

// errCheckFirst says that the incident is looked at again before its late news are told.
var errCheckFirst = errors.New("the news are late: the incident is looked at again first")

// isStale says whether news waited so long that the report they tell of may not be true any more.
func (d *delivery) isStale(late time.Duration, r triage.Report) bool {
	return late >= stale && d.s.now().Sub(r.GeneratedAt) >= stale && d.in.Status == triage.StatusFiring &&
		d.c.Reason != checkedFirst
}

// checkFirst asks for a new report. The message goes out with it or, when that takes too long, with the old one.
func (d *delivery) checkFirst(ctx context.Context) error {
	if err := d.s.store.Enqueue(ctx, store.KindTriage, d.c.IncidentID, "late delivery", d.s.now()); err != nil {
		return err
	}
	signal(d.s.wake)
	return errCheckFirst
}

// nowOver asks whether the incident's alerts have stopped firing although nobody said so yet. When it cannot be known they
// have not.
func (d *delivery) nowOver(ctx context.Context) bool {
	if d.in.Status != triage.StatusFiring || d.parts.Alerts == nil {
		return false
	}
	_, alerts, err := d.s.store.Incident(ctx, d.c.IncidentID)
	if err != nil {
		return false
	}
	var firing []triage.Alert
	for _, a := range alerts {
		if a.Status == triage.StatusFiring {
			firing = append(firing, a)
		}
	}
	limited, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers, err := d.parts.Alerts.Ask(limited, firing, d.s.now())
	if err != nil {
		d.s.log.Warn("not known whether the alerts of a late message still fire",
			zap.String("incident_id", d.c.IncidentID), zap.Error(err))
		return false
	}
	for _, answer := range answers {
		if answer != sweep.Over {
			return false
		}
	}
	return len(answers) > 0
}
