package chatops

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/notify"
	"vllm-triage/notify/slack"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// silenceTimes are the choices of the menu.
var silenceTimes = map[string]time.Duration{
	slack.Silence1h: time.Hour, slack.Silence4h: 4 * time.Hour, slack.Silence24h: 24 * time.Hour,
}

// sameEnd is how much sooner than asked for a silence may end to count as the same.
const sameEnd = 2 * time.Minute

// maxSets bounds the silences that one press makes: an incident's alerts rarely need more than one.
const maxSets = 5

// silence hides the alerts of an incident's model for a while.
func (s *Service) silence(ctx context.Context, p *place, who Person, a slack.Action) Outcome {
	set, w := s.settings(), who.words()
	if set.Silencer == nil {
		s.private(ctx, p, says(ln(w.say("silence.unconfigured"))))
		return Unavailable
	}
	in, alerts, o := s.incident(ctx, p, who, a.IncidentID)
	if o != Done {
		return o
	}
	if in.Status == triage.StatusResolved {
		s.private(ctx, p, says(ln(w.say("silence.over", "clock", who.format(s.now()).Clock(in.ResolvedAt)))))
		return Gone
	}
	sets := matcherSets(in.Scope, alerts)
	if len(sets) == 0 {
		s.private(ctx, p, says(ln(w.say("silence.too_broad"))))
		return Unavailable
	}
	// Two presses at once, of one person or of two, make one silence: the second sees the first one's.
	key := "silence\x00" + in.ID
	if !s.running.first(key, s.now(), patience) {
		s.private(ctx, p, says(ln(w.say("silence.running"))))
		return Repeated
	}
	start := s.now()
	end := start.Add(silenceTimes[a.Name])
	made, covered, err := func() ([]string, []alertmanager.Silence, error) {
		// Given back before anybody is answered: who reads the answer may press again at once.
		defer s.running.forget(key)
		return s.makeSilences(ctx, set.Silencer, sets, alertmanager.Silence{
			StartsAt: start, EndsAt: end, CreatedBy: who.signature(), Comment: silenceComment(in.ID, a.Name, who),
		})
	}()
	if err != nil {
		return s.silenceFailed(ctx, p, who, in, err)
	}
	if len(made) == 0 {
		x := covered[0]
		until := who.format(s.now()).Clock(x.EndsAt)
		r := says(ln(w.say("silence.already", "by", x.CreatedBy)+" ").clock(x.EndsAt, until), (&line{}).code(matcherText(x.Matchers)))
		if strings.HasPrefix(x.Comment, alertmanager.Tag) {
			r.buttons = append(r.buttons, expireButton(w, w.say("button.expire"), []string{x.ID}, in.ID, 0))
		}
		s.private(ctx, p, r)
		return Repeated
	}
	s.log.Info("silence made", zap.String("incident_id", in.ID), zap.String("user", who.ID), zap.Strings("silences", made),
		zap.Duration("for", end.Sub(start)))
	shown := s.announce(ctx, p, set, in, who, made, sets, a.Name, end)
	private := says(ln(w.say("silence.done", "length", w.say("length."+a.Name))+" ").clock(end, who.format(s.now()).Clock(end)))
	if !shown {
		private.lines = append(private.lines, matcherLines(sets)...)
		private.buttons = append(private.buttons, expireButton(w, w.say("button.expire"), made, in.ID, 0))
	}
	s.private(ctx, p, private)
	return Done
}

// makeSilences makes, of a silence for each of the sets, those that are not there, and returns the ids of what it made and
// what covers the rest. Its error is that of the first silence; of several, what could not be made after the first is
// left out.
func (s *Service) makeSilences(
	ctx context.Context, silencer Silencer, sets [][]alertmanager.Matcher, want alertmanager.Silence,
) (made []string, covered []alertmanager.Silence, err error) {
	existing, err := silencer.ListSilences(ctx, true, "")
	if err != nil {
		return nil, nil, err
	}
	for _, ms := range sets {
		if i := slices.IndexFunc(existing, func(x alertmanager.Silence) bool { return x.Covers(ms, want.EndsAt.Add(-sameEnd)) }); i >= 0 {
			covered = append(covered, existing[i])
			continue
		}
		id, err := silencer.CreateSilence(ctx, ms, want.StartsAt, want.EndsAt, want.CreatedBy, want.Comment)
		if err != nil && len(made) == 0 {
			return nil, nil, err
		}
		if err != nil {
			s.log.Warn("one of several silences not made", zap.String("incident_id", incidentOf(want.Comment)), zap.Error(err))
			continue
		}
		made = append(made, id)
	}
	return made, covered, nil
}

// silenceFailed tells why no silence was made.
func (s *Service) silenceFailed(ctx context.Context, p *place, who Person, in store.Incident, err error) Outcome {
	w := who.words()
	s.log.Warn("silence failed", zap.String("incident_id", in.ID), zap.String("user", who.ID), zap.Error(err))
	key := "silence.unreachable"
	if e, ok := errors.AsType[*alertmanager.Error](err); ok {
		switch e.Kind {
		case alertmanager.TooBroad:
			key = "silence.too_broad"
		case alertmanager.Refused:
			key = "silence.refused"
		default:
			if e.Maybe {
				key = "silence.maybe"
			}
		}
	}
	s.private(ctx, p, says(ln(w.say(key, "why", notify.Clean(err.Error(), 300)))))
	return Failed
}

// announce tells the thread of a silence, with a button to end it. When the message cannot be posted, the line goes the way
// of all notes, without a button. It reports whether the button is there.
func (s *Service) announce(
	ctx context.Context, p *place, set Settings, in store.Incident, who Person, ids []string, sets [][]alertmanager.Matcher,
	name string, end time.Time,
) bool {
	c := wordsIn(s.noteLanguage(ctx, in.ID))
	clock := who.format(s.now()).Clock(end)
	if p.thread != "" {
		r := says((&line{}).user(who.ID).text(" "+c.say("note.silence", "length", c.say("length."+name))+" ").clock(end, clock))
		r.lines = append(r.lines, matcherLines(sets)...)
		r.buttons = append(r.buttons, expireButton(c, c.say("button.expire"), ids, in.ID, 0))
		text, blocks := r.content()
		api, err := s.api()
		if err == nil {
			_, _, err = api.PostMessageContext(ctx, p.channel, slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(blocks...),
				slackgo.MsgOptionTS(p.thread), slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl())
		}
		if err == nil {
			s.isAlive()
			return true
		}
		s.log.Warn("silence not announced", zap.String("incident_id", in.ID), zap.Error(err))
	}
	err := s.note(ctx, in.ID, "silence-"+ids[0], who.ID, func(c *catalogue) []string {
		out := []string{c.say("note.silence", "length", c.say("length."+name)) + " " + notifyClock(set, c, end, s.now())}
		for _, ms := range sets {
			out = append(out, matcherText(ms))
		}
		return out
	})
	if err != nil {
		s.log.Warn("silence not noted", zap.String("incident_id", in.ID), zap.Error(err))
	}
	return false
}

func matcherLines(sets [][]alertmanager.Matcher) []*line {
	var out []*line
	for _, ms := range sets {
		out = append(out, (&line{}).code(matcherText(ms)))
	}
	return out
}

// expire ends silences. value is their ids and the incident that they belong to.
func (s *Service) expire(ctx context.Context, p *place, who Person, value string) Outcome {
	set, w := s.settings(), who.words()
	list, incident, _ := strings.Cut(value, "|")
	ids := strings.Split(list, ",")
	switch {
	case list == "" || len(ids) > maxSets:
		s.private(ctx, p, says(ln(w.say("press.unknown"))))
		return Gone
	case set.Silencer == nil:
		s.private(ctx, p, says(ln(w.say("silence.unconfigured"))))
		return Unavailable
	}
	key := "expire\x00" + list
	if !s.running.first(key, s.now(), patience) {
		s.private(ctx, p, says(ln(w.say("expire.already"))))
		return Repeated
	}
	ended, err := expireAll(ctx, set.Silencer, ids)
	s.running.forget(key) // Before anybody is answered: who is told that it failed may press again at once.
	if err != nil {
		return s.expireFailed(ctx, p, who, err)
	}
	if ended == 0 {
		s.private(ctx, p, says(ln(w.say("expire.already"))))
		return Repeated
	}
	s.log.Info("silence ended", zap.String("incident_id", incident), zap.String("user", who.ID), zap.Strings("silences", ids))
	if incident != "" {
		err := s.note(ctx, incident, "expire-"+ids[0], who.ID, func(c *catalogue) []string { return []string{c.say("note.expired")} })
		if err != nil {
			s.log.Warn("end of a silence not noted", zap.String("incident_id", incident), zap.Error(err))
		}
	}
	s.private(ctx, p, says(ln(w.say("expire.done"))))
	return Done
}

// expireAll ends silences and counts those that were not over yet, by themselves or by somebody else. It stops at the first
// that cannot be ended.
func expireAll(ctx context.Context, silencer Silencer, ids []string) (ended int, err error) {
	for _, id := range ids {
		err := silencer.ExpireSilence(ctx, id)
		switch kind := alertmanager.KindOf(err); {
		case err == nil:
			ended++
		case kind == alertmanager.Expired || kind == alertmanager.NotFound:
		default:
			return ended, err
		}
	}
	return ended, nil
}

func (s *Service) expireFailed(ctx context.Context, p *place, who Person, err error) Outcome {
	s.log.Warn("silence not ended", zap.String("user", who.ID), zap.Error(err))
	s.private(ctx, p, says(ln(who.words().say("silence.unreachable", "why", notify.Clean(err.Error(), 300)))))
	return Failed
}

// matcherSets are the silences that hide an incident's alerts: for each way in which they name their model, the model with
// namespace and cluster, never a replica; for alerts without a model, the alert in its namespace. Alerts that have neither
// cannot be silenced without hiding others.
func matcherSets(scope triage.Scope, alerts []triage.Alert) [][]alertmanager.Matcher {
	var out [][]alertmanager.Matcher
	seenSets := map[string]bool{}
	for _, a := range alerts {
		if a.Status == triage.StatusResolved {
			continue
		}
		ms := matchers(scope, a)
		if ms == nil || seenSets[matcherText(ms)] || len(out) == maxSets {
			continue
		}
		seenSets[matcherText(ms)] = true
		out = append(out, ms)
	}
	slices.SortFunc(out, func(a, b []alertmanager.Matcher) int { return strings.Compare(matcherText(a), matcherText(b)) })
	return out
}

// matchers are the labels of an alert that its silence matches. The labels are the alert's own: a matcher on a label that
// it does not have would hide nothing.
func matchers(scope triage.Scope, a triage.Alert) []alertmanager.Matcher {
	var out []alertmanager.Matcher
	add := func(value string, labels ...string) bool {
		for _, l := range labels {
			if v := a.Labels[l]; v != "" && (value == "" || v == value) {
				out = append(out, alertmanager.Equal(l, v))
				return true
			}
		}
		return false
	}
	model := add(scope.Model, "model_name", "model", "model_id")
	if !model && (a.Labels["alertname"] == "" || a.Labels["namespace"] == "") {
		return nil
	}
	if !model {
		add("", "alertname")
	}
	add("", "namespace", "exported_namespace", "kubernetes_namespace")
	add("", "cluster")
	return out
}

// silenceComment says for people and for this service what a silence is about.
func silenceComment(incident, name string, who Person) string {
	return fmt.Sprintf("%s incident %s: silenced for %s by %s", alertmanager.Tag, incident,
		strings.TrimPrefix(name, "silence_"), who.signature())
}

var commentIncident = regexp.MustCompile(`^` + regexp.QuoteMeta(alertmanager.Tag) + ` incident (\S{1,120}): `)

// incidentOf is the incident that a silence's comment names, or empty.
func incidentOf(comment string) string {
	if m := commentIncident.FindStringSubmatch(comment); m != nil {
		return m[1]
	}
	return ""
}

func notifyClock(set Settings, c *catalogue, t, now time.Time) string {
	return Person{Language: c.language, Zone: set.Zone}.format(now).Clock(t)
}
