package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// Recheck asks the same questions about an incident again now. What they yield is kept with the incident, beside what they
// yielded then, and said in its threads. Cause and step name the runbook's step that it follows; both may be empty.
func (s *Server) Recheck(ctx context.Context, incident, actor, cause, step string) error {
	if err := s.store.AskCheck(ctx, store.Check{
		IncidentID: incident, Author: actor, Cause: cause, Step: step, AskedAt: s.now(),
	}); err != nil {
		return err
	}
	signal(s.wake)
	return nil
}

// finishChecks answers the re-checks that wait with a report. It comes before the report is stored: when it is cut short,
// the next triage answers them.
func (s *Server) finishChecks(ctx context.Context, in store.Incident, reports store.Reports, after triage.Report) error {
	checks, err := s.store.Checks(ctx, in.ID)
	if err != nil {
		return err
	}
	before := reports.Latest
	if before != nil && before.Verdict != triage.CauseFound && reports.Previous != nil {
		before = reports.Previous // The one that told the cause.
	}
	for _, c := range checks {
		if !c.DoneAt.IsZero() {
			continue
		}
		r := web.Recheck{At: after.GeneratedAt, By: c.Author, Verdict: after.Verdict}
		if before != nil {
			r = web.NewRecheck(*before, after, c.Author)
		}
		r.Page, r.Step = c.Cause, c.Step
		if err := s.answerCheck(ctx, c, r); err != nil {
			return err
		}
	}
	return nil
}

// failChecks says that the questions could not be asked.
func (s *Server) failChecks(ctx context.Context, incident string, why error) {
	checks, err := s.store.Checks(ctx, incident)
	for _, c := range checks {
		if err == nil && c.DoneAt.IsZero() {
			err = s.answerCheck(ctx, c, web.Recheck{
				At: s.now(), By: c.Author, Page: c.Cause, Step: c.Step, Error: notify.Clean(why.Error(), web.MaxComment),
			})
		}
	}
	if err != nil {
		s.log.Warn("re-check not answered", zap.String("incident_id", incident), zap.Error(err))
	}
}

func (s *Server) answerCheck(ctx context.Context, c store.Check, r web.Recheck) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep re-check: %w", err)
	}
	language := s.Parts().Config.Slack.Language
	if err := s.addNote(ctx, c.IncidentID, "check-"+strconv.FormatInt(c.ID, 10), c.Author, checkLines(language, r)...); err != nil {
		return err
	}
	return s.store.FinishCheck(ctx, c.ID, body, r.At)
}

// maxCheckLines bounds the readings in a thread; the page has them all.
const maxCheckLines = 5

// checkLines tells a re-check in a thread.
func checkLines(language string, r web.Recheck) []string {
	if r.Error != "" {
		return []string{say(language, "recheck.failed", "why", r.Error)}
	}
	catalogue := locale.For(language)
	f := format.New(catalogue.Language(), nil, r.At)
	verdict := catalogue.Text("ui.confidence.none")
	if title, ok := catalogue.Find("bottleneck." + r.Bottleneck + ".title"); ok && r.Verdict != triage.Inconclusive {
		verdict = title
	}
	out := []string{say(language, "recheck.asked", "verdict", verdict)}
	for _, x := range r.Readings[:min(len(r.Readings), maxCheckLines)] {
		name := x.Signal
		if label, ok := catalogue.Find("signal." + x.Signal); ok {
			name = label
		}
		out = append(out, say(language, "recheck.value", "signal", name,
			"during", f.Change(nil, x.During, x.Unit), "now", f.Change(nil, x.Now, x.Unit)))
	}
	if r.Load != nil {
		out = append(out, say(language, "recheck.load", "share", f.Value(*r.Load, triage.Ratio)))
	}
	return out
}

// checksOf reads the re-checks of an incident for its pages.
func (s *Server) checksOf(ctx context.Context, incident string) ([]web.Recheck, error) {
	checks, err := s.store.Checks(ctx, incident)
	if err != nil {
		return nil, err
	}
	var out []web.Recheck
	for _, c := range checks {
		if c.Body == nil {
			continue
		}
		var r web.Recheck
		if err := json.Unmarshal(c.Body, &r); err != nil {
			return nil, fmt.Errorf("read re-check %d: %w", c.ID, err)
		}
		out = append(out, r)
	}
	return out, nil
}
