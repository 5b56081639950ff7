package chatops

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// similarLoad is the part of the incident's load below which an improvement proves little.
const similarLoad = 0.7

// recheck asks the same questions now and tells the thread what they gave then and give now.
func (s *Service) recheck(ctx context.Context, p *place, who Person, id string) Outcome {
	set, w := s.settings(), who.words()
	in, alerts, o := s.incident(ctx, p, who, id)
	if o != Done {
		return o
	}
	key, recent := "recheck\x00"+id, "rechecked\x00"+id
	if !s.running.first(key, s.now(), patience) {
		s.private(ctx, p, says(ln(w.say("recheck.running"))))
		return Repeated
	}
	// Once only: it may be somebody else's by then.
	release := sync.OnceFunc(func() { s.running.forget(key) })
	defer release()
	if !s.running.first(recent, s.now(), repeatWindow) {
		s.private(ctx, p, says(ln(w.say("recheck.just_now"))))
		return Repeated
	}
	// Who is told that it failed may ask again at once.
	failed := func(why reply) Outcome {
		s.running.forget(recent)
		release()
		s.private(ctx, p, why)
		return Failed
	}
	s.private(ctx, p, says(ln(w.say("recheck.looking", "subject", subjectOf(w, in)))))
	reports, err := s.c.Store.Reports(ctx, id)
	if err != nil {
		s.log.Warn("reports not read", zap.String("incident_id", id), zap.Error(err))
		return failed(says(ln(w.say("store.failed"))))
	}
	now := s.now()
	question := in.Triage(alerts, now)
	if in.Status != triage.StatusFiring {
		question = triage.NewAdhoc(in.Scope, now, 0) // What is over is looked at as it is now, not as it was.
	}
	after, err := s.examine(ctx, set, question)
	if err != nil {
		s.log.Warn("re-check failed", zap.String("incident_id", id), zap.Error(err))
		return failed(says(ln(w.say("recheck.failed", "why", why(w, err)))))
	}
	before := during(reports)
	if err := s.keepCheck(ctx, who, id, before, after); err != nil {
		s.log.Warn("re-check not kept for the page", zap.String("incident_id", id), zap.Error(err))
	}
	err = s.note(ctx, id, "recheck-"+strconv.FormatInt(now.UnixMilli(), 10), who.ID, func(c *catalogue) []string {
		return recheckLines(c, format.New(c.language, set.Zone, now), before, after)
	})
	if err != nil {
		s.log.Warn("re-check not noted", zap.String("incident_id", id), zap.Error(err))
		return failed(says(ln(w.say("store.failed"))))
	}
	if in.Status == triage.StatusFiring && changed(before, after) {
		// The card is brought up to date in the way of all reports.
		if err := s.c.Store.Enqueue(ctx, store.KindTriage, id, "re-check by "+who.ID, now); err != nil {
			s.log.Warn("triage not asked for", zap.String("incident_id", id), zap.Error(err))
		}
		s.noted()
	}
	// Where the incident is recorded only, or its conversation was given up, no thread shows it.
	private := reply{}
	for _, l := range recheckLines(w, who.format(now), before, after) {
		private.lines = append(private.lines, ln(l))
	}
	s.private(ctx, p, private)
	return Done
}

// keepCheck keeps what was measured with the incident, so that its page shows it.
func (s *Service) keepCheck(ctx context.Context, who Person, id string, before *triage.Report, after triage.Report) error {
	by := NameOf(who.signature())
	r := web.Recheck{At: after.GeneratedAt, By: by, Verdict: after.Verdict}
	if before != nil {
		r = web.NewRecheck(*before, after, by)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode re-check: %w", err)
	}
	return s.c.Store.KeepCheck(ctx, store.Check{
		IncidentID: id, Author: who.signature(), AskedAt: after.GeneratedAt, DoneAt: s.now(), Body: body,
	})
}

// during is the report that says what the incident was: the newest, or while it is over the last that found a cause. It is
// nil when there is none.
func during(r store.Reports) *triage.Report {
	if r.Latest == nil {
		return nil
	}
	over := r.Latest.Incident.Status == triage.StatusResolved || r.Latest.Verdict == triage.NoBottleneck
	if over && r.Previous != nil {
		return r.Previous
	}
	return r.Latest
}

// changed says whether a verdict is another one.
func changed(before *triage.Report, after triage.Report) bool {
	if before == nil || before.Verdict != after.Verdict {
		return true
	}
	return after.Verdict == triage.CauseFound && before.Bottlenecks[0].ID != after.Bottlenecks[0].ID
}

// recheckLines tells the verdicts and the evidence of then and now. The person stands before the first line.
func recheckLines(c *catalogue, f format.Formatter, before *triage.Report, after triage.Report) []string {
	clock := f.Clock(after.GeneratedAt)
	now := reportVerdict(c, after)
	if before == nil || len(before.Bottlenecks) == 0 {
		return []string{c.say("recheck.first", "clock", clock, "verdict", now)}
	}
	then := reportVerdict(c, *before)
	head := c.say("recheck.changed", "clock", clock, "then", then, "now", now)
	if !changed(before, after) {
		head = c.say("recheck.same", "clock", clock, "verdict", now)
	}
	out := []string{head}
	r := web.NewRecheck(*before, after, "")
	for _, x := range r.Readings {
		if x.During == nil {
			continue
		}
		reading := format.None
		if x.Now != nil {
			reading = f.Value(*x.Now, x.Unit)
		}
		out = append(out, "• "+c.signal(x.Signal)+": "+f.Value(*x.During, x.Unit)+" → "+reading)
	}
	switch {
	case r.Load == nil:
		out = append(out, c.say("recheck.load_unknown"))
	case *r.Load < similarLoad:
		out = append(out, c.say("recheck.load_less", "load", f.Value(*r.Load, triage.Times)))
	default:
		out = append(out, c.say("recheck.load", "load", f.Value(*r.Load, triage.Times)))
	}
	return out
}

// reportVerdict is a report's verdict in a few words.
func reportVerdict(c *catalogue, r triage.Report) string {
	top := r.Bottlenecks[0]
	title := c.title("bottleneck", top.ID, top.Title)
	switch r.Verdict {
	case triage.CauseFound:
		return c.say("ui.verdict", "title", title,
			"confidence", c.say("ui.confidence."+string(notify.LevelOf(top.Probability))))
	case triage.NoBottleneck:
		return title
	default:
		return c.say("ui.confidence.none")
	}
}
