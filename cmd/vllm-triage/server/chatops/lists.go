package chatops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/notify"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/store"
)

// listModels lists the models that are served, and which of them have an incident.
func (s *Service) listModels(ctx context.Context, p *place, who Person, cmd Command) Outcome {
	set, w := s.settings(), who.words()
	at := cmd.At
	if at.IsZero() {
		at = p.issued
	}
	models, complete := s.known(ctx, set, at)
	if cmd.Model != "" {
		models = slices.DeleteFunc(slices.Clone(models), func(m Model) bool {
			return !strings.Contains(strings.ToLower(m.Name), strings.ToLower(cmd.Model))
		})
	}
	if len(models) == 0 {
		s.answer(ctx, p, cmd, says(ln(w.say("models.none"))))
		return Done
	}
	firing, err := s.c.Store.Incidents(ctx, store.Filter{Status: triage.StatusFiring, Limit: 500})
	if err != nil {
		s.log.Warn("incidents not listed", zap.Error(err))
	}
	r := says((&line{}).bold(w.count("models.title", len(models))))
	for _, m := range models[:min(len(models), maxListed)] {
		l := (&line{}).text("• ").code(m.Name)
		if m.Namespace != "" {
			l.text(" (" + m.Namespace + ")")
		}
		if m.Replicas > 0 {
			l.text(" · " + w.count("models.replicas", m.Replicas))
		}
		for _, in := range firing {
			if in.Scope.Model == m.Name && (in.Scope.Namespace == "" || m.Namespace == "" || in.Scope.Namespace == m.Namespace) {
				l.text(" · 🔴 ").link(s.incidentURL(set, in.ID), verdictOf(w, in))
			}
		}
		r.lines = append(r.lines, l)
	}
	if more := len(models) - maxListed; more > 0 {
		r.lines = append(r.lines, ln(w.say("more", "n", strconv.Itoa(more))))
	}
	if !complete {
		r.lines = append(r.lines, ln(w.say("models.incomplete")))
	}
	s.answer(ctx, p, cmd, r)
	return Done
}

// verdictOf is what is known of an incident's cause, in a few words.
func verdictOf(w *catalogue, in store.Incident) string {
	switch in.Verdict {
	case triage.CauseFound:
		return w.say("ui.verdict", "title", w.title("bottleneck", in.Bottleneck, ""),
			"confidence", w.say("ui.confidence."+string(notify.LevelOf(in.Probability))))
	case triage.Inconclusive:
		return w.say("ui.confidence.none")
	case triage.NoBottleneck:
		return w.title("bottleneck", in.Bottleneck, "")
	default:
		return w.say("incidents.untriaged")
	}
}

// subjectOf is what an incident is about.
func subjectOf(w *catalogue, in store.Incident) string {
	scope := in.Scope
	name := firstNonEmpty(scope.Model, scope.Service, scope.Job, scope.Instance, scope.Pod)
	switch {
	case name == "":
		return firstNonEmpty(scope.Namespace, scope.Cluster, in.ID)
	case scope.Namespace != "":
		return w.say("ui.subject", "model", name, "namespace", scope.Namespace)
	default:
		return name
	}
}

func firstNonEmpty(ws ...string) string {
	for _, w := range ws {
		if w != "" {
			return w
		}
	}
	return ""
}

// listIncidents lists incidents, those that fire first, then the newest.
func (s *Service) listIncidents(ctx context.Context, p *place, who Person, cmd Command) Outcome {
	set, w := s.settings(), who.words()
	f := who.format(s.now())
	model := cmd.Model
	if model != "" {
		known, err := s.c.Store.Models(ctx)
		if err == nil {
			found, meantModels := pick(model, known)
			if found == "" && len(meantModels) > 0 {
				s.private(ctx, p, says(ln(w.say("incidents.none_of", "model", model)), meant(w, meantModels)))
				return Unclear
			}
			model = firstNonEmpty(found, model)
		}
	}
	list, err := s.c.Store.Incidents(ctx, store.Filter{Status: cmd.Status, Model: model, Limit: 4 * maxListed})
	if err != nil {
		s.log.Warn("incidents not listed", zap.Error(err))
		s.private(ctx, p, says(ln(w.say("store.failed"))))
		return Failed
	}
	if len(list) == 0 {
		s.answer(ctx, p, cmd, says(ln(w.say("incidents.none"))))
		return Done
	}
	slices.SortStableFunc(list, func(a, b store.Incident) int { return rank(a) - rank(b) })
	r := says((&line{}).bold(w.say("incidents.title")))
	for _, in := range list[:min(len(list), maxListed)] {
		mark, when := "🔴", w.say("incidents.firing", "duration", f.Duration(s.now().Sub(in.StartedAt)))
		if in.Status == triage.StatusResolved {
			mark, when = "🟢", w.say("incidents.resolved", "clock", f.Clock(in.ResolvedAt))
		}
		l := (&line{}).text(mark+" ").link(s.incidentURL(set, in.ID), verdictOf(w, in)).text(" · " + subjectOf(w, in) + " · " + when)
		if in.Flaps > 0 {
			l.text(" · " + w.count("ui.flaps", in.Flaps))
		}
		r.lines = append(r.lines, l)
	}
	if len(list) > maxListed {
		r.lines = append(r.lines, ln(w.say("incidents.more")).text(" ").link(pagesURL(set), w.say("incidents.page")))
	}
	s.answer(ctx, p, cmd, r)
	return Done
}

func pagesURL(set Settings) string {
	if set.Message.BaseURL == "" {
		return ""
	}
	return strings.TrimRight(set.Message.BaseURL, "/") + "/incidents"
}

func rank(in store.Incident) int {
	if in.Status == triage.StatusFiring {
		return 0
	}
	return 1
}

// explain says what a cause is, how it is told and what to do about it.
func (s *Service) explain(ctx context.Context, p *place, who Person, cmd Command) Outcome {
	set, w := s.settings(), who.words()
	if cmd.Subject == "" {
		s.answer(ctx, p, cmd, causes(set.Knowledge, w))
		return Done
	}
	c, meantCauses := findCause(set.Knowledge, cmd.Subject)
	if c == nil {
		r := says(ln(w.say("explain.unknown", "cause", cmd.Subject)))
		if len(meantCauses) > 0 {
			r.lines = append(r.lines, meant(w, meantCauses))
		}
		r.lines = append(r.lines, ln(w.say("explain.list")))
		s.private(ctx, p, r)
		return Unclear
	}
	axis := string(c.Axis)
	r := says((&line{}).bold(w.title(axis, c.ID, c.Title)).text("  ").code(c.ID))
	if text := w.explain(axis, c.ID); text != "" {
		r.lines = append(r.lines, ln(text))
	}
	// The mechanism is written in English; other languages have their runbook.
	if w.language == "en" {
		r.lines = append(r.lines, ln(c.Mechanism))
	}
	var evidence []string
	for _, e := range c.Evidence {
		if e.Key && e.Signal != "" {
			evidence = append(evidence, w.signal(e.Signal))
		}
	}
	evidence = unique(evidence)
	if len(evidence) > 0 {
		r.lines = append(r.lines, ln(w.say("explain.told_by", "list", strings.Join(evidence, ", "))))
	}
	var parents []string
	for _, id := range c.Parents {
		if parent, ok := set.Knowledge.Cause(id); ok {
			parents = append(parents, w.title(string(parent.Axis), id, parent.Title))
		}
	}
	if len(parents) > 0 {
		r.lines = append(r.lines, ln(w.say("explain.follows", "list", strings.Join(parents, ", "))))
	}
	if set.Runbooks != nil {
		if page, ok := set.Runbooks.Get(w.language, c.ID); ok {
			for i, step := range page.Steps {
				r.lines = append(r.lines, ln(fmt.Sprintf("%d. %s", i+1, step.Title)))
			}
		}
	}
	if address := runbookURL(set, c.ID, w.language); address != "" {
		r.lines = append(r.lines, (&line{}).link(address, w.say("ui.button.runbook")))
	}
	s.answer(ctx, p, cmd, r)
	return Done
}

// unique drops repeated words and keeps the order.
func unique(ws []string) []string {
	var out []string
	for _, w := range ws {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// causes lists all causes.
func causes(base *kb.Base, w *catalogue) reply {
	r := says((&line{}).bold(w.say("explain.causes")))
	for _, axis := range []kb.Axis{kb.Bottleneck, kb.Trigger} {
		r.lines = append(r.lines, ln(w.say("explain.axis."+string(axis))))
		for _, c := range base.OnAxis(axis) {
			r.lines = append(r.lines, (&line{}).text("• ").code(c.ID).text("  "+w.title(string(axis), c.ID, c.Title)))
		}
	}
	r.lines = append(r.lines, ln(w.say("explain.how")))
	return r
}

// findCause finds a cause by its id or by its name in any language. Otherwise it returns the ids that may have been meant.
func findCause(base *kb.Base, subject string) (*kb.Cause, []string) {
	id := strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(subject), " ", "_"), "-", "_")
	if c, ok := base.Cause(id); ok {
		return &c, nil
	}
	var spellings []string
	idOf := map[string]string{}
	for _, c := range base.Causes {
		named := []string{c.ID, c.Title}
		for _, w := range catalogues() {
			named = append(named, w.title(string(c.Axis), c.ID, c.Title))
		}
		for _, n := range named {
			if strings.EqualFold(n, subject) {
				return &c, nil
			}
			spellings = append(spellings, n)
			idOf[n] = c.ID
		}
	}
	var out []string
	for _, n := range append(near(id, spellings), near(subject, spellings)...) {
		out = append(out, idOf[n])
	}
	out = unique(out)
	if len(out) == 1 {
		// "kv cache" or a typing error that fits one cause only: answer rather than ask.
		c, ok := base.Cause(out[0])
		if ok {
			return &c, nil
		}
	}
	return nil, out[:min(len(out), maxNear)]
}

// listSilences lists the silences that this service made and that are not over, each with a button to end it.
func (s *Service) listSilences(ctx context.Context, p *place, who Person, cmd Command) Outcome {
	set, w := s.settings(), who.words()
	if set.Silencer == nil {
		s.private(ctx, p, says(ln(w.say("silence.unconfigured"))))
		return Unavailable
	}
	list, err := set.Silencer.ListSilences(ctx, true, alertmanager.Tag)
	if err != nil {
		s.log.Warn("silences not listed", zap.Error(err))
		s.private(ctx, p, says(ln(w.say("silence.unreachable", "why", notify.Clean(err.Error(), 300)))))
		return Failed
	}
	if cmd.Model != "" {
		list = slices.DeleteFunc(list, func(x alertmanager.Silence) bool {
			return !slices.ContainsFunc(x.Matchers, func(m alertmanager.Matcher) bool {
				return strings.Contains(strings.ToLower(m.Value), strings.ToLower(cmd.Model))
			})
		})
	}
	if len(list) == 0 {
		s.answer(ctx, p, cmd, says(ln(w.say("silences.none"))))
		return Done
	}
	r := says((&line{}).bold(w.count("silences.title", len(list))))
	f := who.format(s.now())
	for i, x := range list[:min(len(list), maxListed)] {
		l := ln(fmt.Sprintf("%d. ", i+1)).code(matcherText(x.Matchers)).text(" · "+w.say("silences.until")+" ").
			clock(x.EndsAt, f.Clock(x.EndsAt)).text(" · " + x.CreatedBy)
		if id := incidentOf(x.Comment); id != "" {
			l.text(" · ").link(s.incidentURL(set, id), w.say("ui.button.incident"))
		}
		r.lines = append(r.lines, l)
		if !cmd.Share {
			r.buttons = append(r.buttons, expireButton(w, w.say("button.expire_n", "n", strconv.Itoa(i+1)),
				[]string{x.ID}, incidentOf(x.Comment), i))
		}
	}
	if more := len(list) - maxListed; more > 0 {
		r.lines = append(r.lines, ln(w.say("more", "n", strconv.Itoa(more))))
	}
	s.answer(ctx, p, cmd, r)
	return Done
}

// matcherText is a silence's matchers in Alertmanager's own words.
func matcherText(ms []alertmanager.Matcher) string {
	out := make([]string, 0, len(ms))
	for _, m := range ms {
		out = append(out, m.String())
	}
	slices.Sort(out)
	return "{" + strings.Join(out, ", ") + "}"
}

// actionExpire is the button that ends silences. Its id ends with a number: in one block of buttons they must differ.
const actionExpire = "expire_silence"

// expireButton ends silences after a confirmation.
func expireButton(w *catalogue, label string, ids []string, incident string, n int) *slackgo.ButtonBlockElement {
	b := button(fmt.Sprintf("%s_%d", actionExpire, n), label, strings.Join(ids, ",")+"|"+incident)
	b.Confirm = slackgo.NewConfirmationBlockObject(
		plainText(w.say("expire.confirm_title"), 100), plainText(w.say("expire.confirm"), maxConfirm),
		plainText(w.say("expire.yes"), 30), plainText(w.say("expire.no"), 30))
	return b
}
