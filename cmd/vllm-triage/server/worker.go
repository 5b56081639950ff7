package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"vllm-triage/config"
	"vllm-triage/notify"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// maxAttempts is after how many failures a job is given up; `vllm-triage jobs` lists and retries those.
const maxAttempts = 8

// workOnce claims one job and does it. It says whether there was one.
func (s *Server) workOnce(ctx context.Context) (bool, error) {
	j, found, err := s.store.Claim(ctx, s.owner, s.now(), lease)
	if err != nil || !found {
		return false, err
	}
	working, release := s.keepLease(ctx, func(ctx context.Context, until time.Time) error {
		return s.store.Renew(ctx, j, until)
	})
	working, span := s.tracer.Start(working, j.Kind, incidentID(j.IncidentID))
	err = s.guarded(func() error { return s.doJob(working, j) })
	endSpan(span, err)
	release()
	switch {
	case err == nil, errors.Is(err, store.ErrLeaseLost):
		return true, nil
	case ctx.Err() != nil:
		return true, nil // Run gives it back.
	case errors.Is(err, store.ErrNotFound):
		return true, s.store.Finish(ctx, j, time.Time{}) // The incident was pruned meanwhile.
	case j.Attempts >= maxAttempts:
		s.failChecks(ctx, j.IncidentID, err)
		s.log.Error("job given up: vllm-triage jobs shows and retries it", zap.String("incident_id", j.IncidentID), zap.Int("attempts", j.Attempts), zap.Error(err))
		return true, s.store.Bury(ctx, j, err)
	}
	s.metrics.triages.WithLabelValues("failed").Inc()
	s.log.Warn("job failed", zap.String("incident_id", j.IncidentID), zap.Int("attempts", j.Attempts), zap.Error(err))
	return true, s.store.Retry(ctx, j, s.now().Add(backOff(j.Attempts)), err)
}

// backOff grows from a second to five minutes, with jitter.
func backOff(attempts int) time.Duration {
	d := min(time.Second<<min(attempts, 12), 5*time.Minute)
	return d/2 + rand.N(d) //nolint:gosec // Jitter needs no secrecy.
}

// guarded turns a panic into an error: one incident that trips over a mistake of ours must not stop the others, nor the
// service at every start.
func (s *Server) guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("background work panicked", zap.Any("panic", p), zap.Stack("stack"))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}

func (s *Server) doJob(ctx context.Context, j store.Job) error {
	switch j.Kind {
	case store.KindTriage:
		return s.triageJob(ctx, j)
	case store.KindPrune:
		return s.pruneJob(ctx, j)
	case store.KindSweep:
		return s.sweepJob(ctx, j)
	case kindHeartbeat:
		return s.heartbeatJob(ctx, j)
	default:
		// A job of a newer version, in a rolling upgrade: leave it to those who know it.
		return s.store.Retry(ctx, j, s.now().Add(time.Minute), fmt.Errorf("unknown kind of job %q", j.Kind))
	}
}

// triageJob looks at one incident and stores what was found together with what is to be told.
func (s *Server) triageJob(ctx context.Context, j store.Job) error {
	parts := s.Parts()
	in, alerts, err := s.store.Incident(ctx, j.IncidentID)
	if err != nil {
		return err
	}
	now := s.now()
	targets := targetsOf(parts.Config, in, alerts)
	if len(targets) == 0 {
		return s.store.Finish(ctx, j, time.Time{}) // Every route that takes it is off: kept and counted only.
	}
	question, err := s.question(ctx, in, alerts, now)
	if err != nil {
		return err
	}
	report, err := s.answer(ctx, parts, question, j)
	if err != nil {
		return err
	}
	report.Incident.ID = in.ID
	s.metrics.triaged(report)
	reports, err := s.store.Reports(ctx, in.ID)
	if err != nil {
		return err
	}
	if err := s.finishChecks(ctx, in, reports, report); err != nil {
		return err
	}
	result := store.Result{Report: report, Next: nextLook(parts.Config, in, now)}
	quiet, err := s.selfResolved(ctx, parts.Config, in)
	if err != nil {
		return err
	}
	if !quiet {
		if result.Targets, err = s.tellTargets(ctx, parts, targets, in, report, reports.Latest); err != nil {
			return err
		}
	}
	revision, err := s.store.FinishTriage(ctx, j, result, now)
	if err != nil {
		return err
	}
	signal(s.tell)
	top, trigger := firstOf(report.Bottlenecks), firstOf(report.Triggers)
	s.log.Info("incident triaged",
		zap.String("incident_id", in.ID), zap.String("status", in.Status), zap.String("model", in.Scope.Model),
		zap.String("verdict", string(report.Verdict)), zap.String("bottleneck", top.ID),
		zap.Float64("probability", top.Probability), zap.String("trigger", trigger.ID),
		zap.Int64("revision", revision), zap.Int64("duration_ms", report.DurationMS), zap.Int("queries", report.Queries))
	return nil
}

func firstOf(hs []triage.Hypothesis) triage.Hypothesis {
	if len(hs) == 0 {
		return triage.Hypothesis{}
	}
	return hs[0]
}

// question is what the engine is asked. Alerts that are only counted, because an incident keeps so many in full, are left
// out as those are that Alertmanager left out.
func (s *Server) question(
	ctx context.Context, in store.Incident, alerts []triage.Alert, now time.Time,
) (triage.Incident, error) {
	q := in.Triage(alerts, now)
	firing, resolved, err := s.store.AlertCounts(ctx, in.ID)
	if err != nil {
		return q, err
	}
	q.Truncated += max(firing+resolved-len(alerts), 0)
	return q, nil
}

// unexplainedAfter is after how many failures people are told of an incident without an answer.
const unexplainedAfter = 3

// answer asks the engine. When it fails again and again on the first question about an incident, the alert is told without
// an answer: a mistake of ours must not keep people from knowing that something is wrong.
func (s *Server) answer(ctx context.Context, p *Parts, q triage.Incident, j store.Job) (r triage.Report, err error) {
	err = s.guarded(func() (err error) {
		r, err = p.Engine.Triage(ctx, q)
		return err
	})
	if err == nil || ctx.Err() != nil || j.Attempts < unexplainedAfter {
		return r, err
	}
	s.metrics.triages.WithLabelValues("failed").Inc()
	s.log.Error("triage failed: the alert is told without a cause", zap.String("incident_id", q.ID), zap.Error(err))
	return triage.Report{
		Schema: triage.SchemaVersion, Verdict: triage.Inconclusive, GeneratedAt: q.Now,
		Incident: triage.IncidentInfo{
			ID: q.ID, GroupKey: q.GroupKey, Status: q.Status, Scope: q.Scope, Onset: q.StartsAt(),
			Window: triage.Span{Start: q.StartsAt(), End: q.Now}, Alerts: q.Alerts, Truncated: q.Truncated,
			RunbookURL: q.RunbookURL(), ExternalURL: q.ExternalURL,
		},
		Inconclusive: &triage.Blocked{Text: triage.Text{
			Text: "The triage itself failed; the log of vllm-triage has the reason under this incident's id.",
		}},
	}, nil
}

// usualDelay is how long after its start an alert is heard of in the normal way of things: Alertmanager waits for others of
// the group first.
const usualDelay = time.Minute

// selfResolved says that an incident was short, over within the debounce time, and that nobody was told of it: it is kept,
// not posted. One that lasted longer and was heard of late, because this service was down, is news all the same.
func (s *Server) selfResolved(ctx context.Context, cfg *config.Config, in store.Incident) (bool, error) {
	debounce := time.Duration(cfg.Triage.Debounce)
	if in.Status != triage.StatusResolved || in.ResolvedAt.After(in.OpenedAt.Add(debounce)) ||
		in.ResolvedAt.Sub(in.StartedAt) > debounce+usualDelay {
		return false, nil
	}
	told, err := s.store.Conversations(ctx, in.ID)
	return len(told) == 0, err
}

// nextLook is when a firing incident is looked at again without news of it.
func nextLook(cfg *config.Config, in store.Incident, now time.Time) time.Time {
	if in.Status != triage.StatusFiring {
		return time.Time{}
	}
	for _, after := range cfg.Triage.Retriage {
		if at := in.FiringSince.Add(time.Duration(after)); at.After(now) {
			return at
		}
	}
	return time.Time{}
}

// targetsOf routes an incident by its alerts' labels, the receiver among them. Routes that are off are left out.
func targetsOf(cfg *config.Config, in store.Incident, alerts []triage.Alert) []config.Target {
	labels := make([]map[string]string, 0, len(alerts))
	for _, a := range alerts {
		l := maps.Clone(a.Labels)
		if l == nil {
			l = map[string]string{}
		}
		l["receiver"] = in.Receiver
		labels = append(labels, l)
	}
	if len(labels) == 0 {
		labels = append(labels, map[string]string{"receiver": in.Receiver})
	}
	var out []config.Target
	for _, t := range cfg.Targets(labels) {
		if t.Mode != config.Off {
			out = append(out, t)
		}
	}
	return out
}

// settings are what a conversation keeps of its route, so that delivery does not depend on labels again.
type settings struct {
	Language         string `json:"language,omitempty"`
	Timezone         string `json:"timezone,omitempty"`
	Mention          string `json:"mention,omitempty"`
	Edit             bool   `json:"edit"`
	Thread           bool   `json:"thread"`
	BroadcastResolve bool   `json:"broadcast_resolve,omitempty"`
}

// zone is the time zone of the channel's readers; UTC if it is not known here.
func (set settings) zone() *time.Location {
	zone, err := time.LoadLocation(cmp.Or(set.Timezone, "UTC"))
	if err != nil {
		return time.UTC
	}
	return zone
}

// tellTargets is what each channel is to be told.
func (s *Server) tellTargets(
	ctx context.Context, p *Parts, targets []config.Target, in store.Incident, r triage.Report, previous *triage.Report,
) ([]store.Target, error) {
	conversations, err := s.store.Conversations(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	told := map[string]bool{}
	for _, c := range conversations {
		card := c.Post(store.PartCard)
		told[c.Channel] = card.Ref.ID != "" || card.Doubtful()
	}
	out := make([]store.Target, 0, len(targets))
	for _, t := range targets {
		known := previous
		if !told[t.Channel] && tooOld(p.Config, in, s.now()) {
			s.metrics.lost.WithLabelValues(lostExpired).Inc()
			s.log.Error("incident not told: nothing was heard of it within triage.max_age",
				zap.String("incident_id", in.ID), zap.String("channel", t.Channel), zap.Time("heard", in.NotifiedAt))
			continue
		}
		if !told[t.Channel] {
			known = nil // Nobody there knows of an earlier verdict: what changed since is no news.
		}
		target, err := s.target(p, t, in, r, known)
		if err != nil {
			return nil, err
		}
		out = append(out, target)
	}
	return out, nil
}

// tooOld says whether an incident is not to be told for the first time: after a long time without the chat, or without
// this service, nobody wants yesterday's alerts. One that still fires is heard of again, as Alertmanager repeats it.
func tooOld(cfg *config.Config, in store.Incident, now time.Time) bool {
	limit := time.Duration(cfg.Triage.MaxAge)
	return limit > 0 && now.Sub(in.NotifiedAt) > limit
}

// maxFlapLines is after how many flaps the thread no longer tells each end: the card and its counter do.
const maxFlapLines = 3

// target is what one channel is to be told. A changed verdict, and the end, add a line to the thread.
func (s *Server) target(
	p *Parts, t config.Target, in store.Incident, r triage.Report, previous *triage.Report,
) (store.Target, error) {
	kept, err := json.Marshal(settings{t.Language, t.Timezone, t.Mention, t.Edit, t.Thread, t.BroadcastResolve})
	if err != nil {
		return store.Target{}, err
	}
	out := store.Target{
		Channel: cmp.Or(t.Channel, "pages"), Settings: kept, Shadow: t.Mode == config.Shadow || p.Notifier == nil,
	}
	if previous == nil {
		return out, nil
	}
	m := s.message(p, in, r, previous, settings{Language: t.Language, Timezone: t.Timezone}, 0)
	m.Broadcast = t.BroadcastResolve
	switch {
	case r.Incident.Status == triage.StatusResolved && previous.Incident.Status != triage.StatusResolved:
		if in.Flaps > maxFlapLines {
			break
		}
		out.Changed, err = json.Marshal(m.As(notify.KindResolved))
	case m.Change != nil:
		out.Changed, err = json.Marshal(m.As(notify.KindChange))
	}
	return out, err
}

// message builds what people see of an incident.
func (s *Server) message(
	p *Parts, in store.Incident, r triage.Report, previous *triage.Report, set settings, late time.Duration,
) notify.Message {
	o := s.messageOptions(p, in, set)
	o.Previous, o.Late = previous, late
	m := notify.NewMessage(r, o)
	s.signLinks(p, &m)
	return m
}

func (s *Server) messageOptions(p *Parts, in store.Incident, set settings) notify.Options {
	return notify.Options{
		Language:       set.Language,
		Location:       set.zone(),
		BaseURL:        p.Config.Server.ExternalURL,
		PrometheusURL:  p.Config.Links.Prometheus,
		GrafanaExplore: p.Config.Links.GrafanaExplore,
		Mention:        set.Mention,
		Flaps:          in.Flaps,
		Updates:        int(max(in.Revision-1, 0)),
	}
}

// Message is what people see of an incident, in a language.
func (s *Server) Message(in store.Incident, reports store.Reports, language string) notify.Message {
	return s.message(s.Parts(), in, *reports.Latest, reports.Previous, settings{Language: language}, 0)
}
