// Package sweep mends what lost or late notifications leave behind. Alertmanager tells an end once; when that is lost, an
// incident would fire for ever, and when Alertmanager took silence for an end, an alert that fires would look over. So alerts
// of which nothing was heard for a while, and those in doubt, are asked about.
package sweep

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/alertmanager/template"

	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// Answer is what a Source knows of an alert.
type Answer int

// The answers.
const (
	Unknown Answer = iota // Nobody can tell: nothing is changed.
	Fires
	Over
)

// Source knows which alerts fire.
type Source interface {
	// Ask answers for each alert, in order. An error leaves all of them unknown.
	Ask(ctx context.Context, alerts []triage.Alert, now time.Time) ([]Answer, error)
}

// Store is what a sweep needs of the store.
type Store interface {
	Suspects(ctx context.Context, doubtedBefore, quietSince time.Time, limit int) ([]store.Suspect, error)
	Intake(ctx context.Context, d store.Delivery, p store.Policy) (store.Outcome, error)
	ClearDoubt(ctx context.Context, x store.Suspect) error
}

// Settings of a Sweeper.
const (
	// Every is how often to sweep.
	Every = 2 * time.Minute
	// Quiet is how long nothing must have been heard of an incident before its alerts are asked about: more than two of
	// Alertmanager's default group intervals.
	Quiet = 11 * time.Minute
	// settle is how long a doubt is left alone: the end of the very same flap may be under way.
	settle = 15 * time.Second
	// confirm is how long an alert must have been over, by two answers, before it is closed: a restarting Alertmanager or
	// Prometheus knows of no alerts for a moment.
	confirm = 3 * time.Minute
	// forget drops an answer that was not asked for again.
	forget = time.Hour
	// limit bounds one sweep.
	limit = 500
)

// Sweeper remembers first answers until second ones confirm them. What it remembers need not survive it: after a restart it
// asks twice again. It is for one goroutine.
type Sweeper struct {
	store  Store
	source Source
	policy store.Policy
	over   map[string]time.Time // When an alert was first said to be over, by incident and fingerprint.
}

// New returns a Sweeper.
func New(s Store, source Source, p store.Policy) *Sweeper {
	return &Sweeper{store: s, source: source, policy: p, over: map[string]time.Time{}}
}

// Result counts what a sweep did.
type Result struct {
	Asked    int
	Closed   int // Alerts whose end had been lost.
	Reopened int // Alerts whose end was not true.
	Unknown  int
}

// Sweep asks about the suspects and stores what is certain.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (Result, error) {
	suspects, err := s.store.Suspects(ctx, now.Add(-settle), now.Add(-Quiet), limit)
	if err != nil || len(suspects) == 0 {
		return Result{}, err
	}
	alerts := make([]triage.Alert, len(suspects))
	for i, x := range suspects {
		alerts[i] = x.Alert
	}
	r := Result{Asked: len(suspects)}
	answers, err := s.source.Ask(ctx, alerts, now)
	if err != nil {
		r.Unknown = len(suspects)
		return r, fmt.Errorf("ask about alerts: %w", err)
	}
	for i, x := range suspects {
		if err := s.apply(ctx, x, answers[i], now, &r); err != nil {
			return r, err
		}
	}
	for key, since := range s.over {
		if now.Sub(since) > forget {
			delete(s.over, key)
		}
	}
	return r, nil
}

func (s *Sweeper) apply(ctx context.Context, x store.Suspect, a Answer, now time.Time, r *Result) error {
	key := x.IncidentID + "\x00" + x.Alert.Fingerprint
	if a != Over {
		delete(s.over, key)
	}
	switch {
	case a == Unknown:
		r.Unknown++
		return nil
	case x.Doubted && a == Fires:
		r.Reopened++
		alert := x.Alert
		// The period that follows the end that was not true.
		alert.Status, alert.StartsAt, alert.EndsAt = triage.StatusFiring, alert.EndsAt.Add(time.Millisecond), time.Time{}
		return Correct(ctx, s.store, s.policy, alert, now)
	case x.Doubted:
		return s.store.ClearDoubt(ctx, x)
	case a == Fires:
		return nil
	}
	since, known := s.over[key]
	if !known {
		s.over[key] = now
		return nil
	}
	if now.Sub(since) < confirm {
		return nil
	}
	delete(s.over, key)
	r.Closed++
	alert := x.Alert
	alert.Status, alert.EndsAt = triage.StatusResolved, since
	if alert.EndsAt.Before(alert.StartsAt) {
		alert.EndsAt = alert.StartsAt
	}
	return Correct(ctx, s.store, s.policy, alert, now)
}

// Correct stores what was found out about an alert as if it had been told.
func Correct(ctx context.Context, s Store, policy store.Policy, a triage.Alert, now time.Time) error {
	p := triage.Payload{Version: "4", NotificationReason: "checked"}
	p.Status = a.Status
	p.Alerts = template.Alerts{{
		Status: a.Status, Labels: template.KV(a.Labels), Annotations: template.KV(a.Annotations),
		StartsAt: a.StartsAt, EndsAt: a.EndsAt, GeneratorURL: a.GeneratorURL, Fingerprint: a.Fingerprint,
	}}
	_, err := s.Intake(ctx, store.Delivery{
		Key: store.DeliveryKey(p), Received: now, Incidents: triage.NewIncidents(p, now),
	}, policy)
	return err
}
