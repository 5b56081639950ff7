package chatops

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"

	"vllm-triage/notify"
	"vllm-triage/notify/slack"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/store"
)

// The opinions, as the store keeps them.
const (
	opinionRight  = "right"
	opinionPartly = "partly"
	opinionWrong  = "wrong"
)

// otherCause is the choice for a cause that the knowledge base does not have, or that nobody knows yet.
const otherCause = "other"

// The parts of the modal.
const (
	feedbackModal = "feedback"
	blockCause    = "cause"
	blockComment  = "comment"
	maxComment    = 1000 // Runes.
)

// judge takes an opinion. Right is kept at once; the others ask what it was.
func (s *Service) judge(ctx context.Context, p *place, who Person, press interaction, a slack.Action) Outcome {
	in, _, o := s.incident(ctx, p, who, a.IncidentID)
	if o != Done {
		return o
	}
	if a.Name == slack.ActionRight {
		return s.right(ctx, p, who, in)
	}
	opinion := opinionWrong
	if a.Name == slack.ActionNotQuite {
		opinion = opinionPartly
	}
	api, err := s.api()
	if err == nil {
		_, err = api.OpenViewContext(ctx, press.TriggerID, s.modal(who, in, opinion, p))
	}
	if err != nil {
		s.log.Warn("modal not opened", zap.String("incident_id", in.ID), zap.Error(err))
		key := "feedback.modal_failed"
		if refused, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok &&
			slices.Contains([]string{"expired_trigger_id", "trigger_expired", "invalid_trigger_id", "exchanged_trigger_id"}, refused.Err) {
			key = "feedback.modal_late"
		}
		s.private(ctx, p, says(ln(who.words().say(key))))
		return Failed
	}
	s.isAlive()
	return Done
}

// right keeps the opinion that the verdict is right.
func (s *Service) right(ctx context.Context, p *place, who Person, in store.Incident) Outcome {
	w := who.words()
	f := store.Feedback{IncidentID: in.ID, Author: who.signature(), At: s.now(), Opinion: opinionRight}
	others, repeated, err := s.keep(ctx, who, f)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.private(ctx, p, says(ln(w.say("press.gone", "incident", in.ID))))
		return Gone
	case err != nil:
		s.log.Warn("feedback not stored", zap.String("incident_id", in.ID), zap.Error(err))
		s.private(ctx, p, says(ln(w.say("store.failed"))))
		return Failed
	case repeated:
		s.private(ctx, p, says(append([]*line{ln(w.say("feedback.repeated"))}, opinions(w, others)...)...))
		return Repeated
	}
	s.private(ctx, p, says(append([]*line{ln(w.say("feedback.thanks"))}, opinions(w, others)...)...))
	return Done
}

// keep stores a person's opinion and adds a line to the threads. It returns what others think, and whether the person had
// said exactly this before.
func (s *Service) keep(ctx context.Context, who Person, f store.Feedback) (others []store.Feedback, repeated bool, err error) {
	known, err := s.c.Store.Feedback(ctx, f.IncidentID)
	if err != nil {
		return nil, false, err
	}
	for _, k := range known {
		if userOf(k.Author) == who.ID {
			f.Author = k.Author // People change their names.
			repeated = k.Opinion == f.Opinion && k.Cause == f.Cause && k.Comment == f.Comment
			continue
		}
		others = append(others, k)
	}
	if !repeated {
		if err := s.c.Store.SaveFeedback(ctx, f); err != nil {
			return nil, false, err
		}
	}
	// The line is added even to what was said before: after a crash it may be missing, and its name makes it once only.
	sum := sha256.Sum256([]byte(f.Opinion + "\x00" + f.Cause + "\x00" + f.Comment))
	err = s.note(ctx, f.IncidentID, "feedback-"+who.ID+"-"+hex.EncodeToString(sum[:6]), who.ID, func(c *catalogue) []string {
		return feedbackLines(c, f)
	})
	return others, repeated, err
}

// feedbackLines is an opinion as the thread tells it; the author stands before it.
func feedbackLines(c *catalogue, f store.Feedback) []string {
	out := []string{c.say("note." + f.Opinion)}
	if f.Opinion != opinionRight && f.Cause != "" {
		name := c.say("feedback.other")
		if f.Cause != otherCause {
			name = c.title("bottleneck", f.Cause, "")
		}
		out[0] = c.say("note."+f.Opinion+"_cause", "cause", name)
	}
	if f.Comment != "" {
		out = append(out, "“"+f.Comment+"”")
	}
	return out
}

// opinions tells what others think.
func opinions(w *catalogue, others []store.Feedback) []*line {
	var out []*line
	for _, f := range others[max(0, len(others)-maxNear):] {
		l := ln(w.say("feedback.others") + " ")
		if id := userOf(f.Author); id != "" {
			l.user(id)
		} else {
			l.text(f.Author)
		}
		out = append(out, l.text(": "+w.say("opinion."+f.Opinion)))
	}
	return out
}

// modalState is what a modal must remember until it is submitted.
type modalState struct {
	Incident string `json:"i"`
	Opinion  string `json:"o"`
	Channel  string `json:"c"`
}

// modal asks which cause it was.
func (s *Service) modal(who Person, in store.Incident, opinion string, p *place) slackgo.ModalViewRequest {
	w := who.words()
	state, err := json.Marshal(modalState{Incident: in.ID, Opinion: opinion, Channel: p.channel})
	if err != nil {
		state = nil // Strings always marshal.
	}
	sel := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, plainText(w.say("modal.choose"), 150), blockCause,
		s.causeOptions(w, in)...)
	cause := slackgo.NewInputBlock(blockCause, plainText(w.say("modal.cause"), 200), nil, sel)
	cause.Optional = opinion == opinionPartly
	text := slackgo.NewPlainTextInputBlockElement(plainText(w.say("modal.comment_hint"), 150), blockComment)
	text.Multiline, text.MaxLength = true, maxComment
	comment := slackgo.NewInputBlock(blockComment, plainText(w.say("modal.comment"), 200), nil, text)
	comment.Optional = true
	return slackgo.ModalViewRequest{
		Type: slackgo.VTModal, CallbackID: feedbackModal, PrivateMetadata: string(state),
		Title:  plainText(w.say("modal.title"), maxTitle),
		Submit: plainText(w.say("modal.submit"), maxTitle),
		Close:  plainText(w.say("modal.close"), maxTitle),
		Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{
			slackgo.NewSectionBlock(plainText(w.say("modal.about", "verdict", verdictOf(w, in), "subject", subjectOf(w, in)), 2000), nil, nil),
			cause, comment,
		}},
	}
}

// maxOptions is Slack's limit for a menu.
const maxOptions = 100

// causeOptions are the bottlenecks of the knowledge base by name, the one that was reported left out, and "something else".
func (s *Service) causeOptions(w *catalogue, in store.Incident) []*slackgo.OptionBlockObject {
	option := func(id, title string) *slackgo.OptionBlockObject {
		return &slackgo.OptionBlockObject{Text: plainText(title, maxButton), Value: id}
	}
	var out []*slackgo.OptionBlockObject
	for _, c := range s.settings().Knowledge.OnAxis(kb.Bottleneck) {
		if c.ID != in.Bottleneck {
			out = append(out, option(c.ID, w.title("bottleneck", c.ID, c.Title)))
		}
	}
	slices.SortFunc(out, func(a, b *slackgo.OptionBlockObject) int {
		return cmp.Or(cmp.Compare(a.Text.Text, b.Text.Text), cmp.Compare(a.Value, b.Value))
	})
	out = out[:min(len(out), maxOptions-1)]
	return append(out, option(otherCause, w.say("feedback.other")))
}

// onSubmit keeps what a modal says. It is done before the answer, which can then show a mistake inside the modal.
func (s *Service) onSubmit(ctx context.Context, in interaction) outcome {
	ctx, cancel := context.WithTimeout(ctx, prompt)
	defer cancel()
	var state modalState
	if in.View.CallbackID != feedbackModal || json.Unmarshal([]byte(in.View.PrivateMetadata), &state) != nil {
		s.metrics.Handled(ActOther, Gone)
		return outcome{}
	}
	who := s.person(ctx, in.User.ID, firstNonEmpty(in.User.Name, in.User.Username))
	w := who.words()
	fail := func(o Outcome, block, text string) outcome {
		s.metrics.Handled(ActFeedback, o)
		return outcome{body: slackgo.NewErrorsViewSubmissionResponse(map[string]string{block: text})}
	}
	if ok, why := s.may(ctx, ActFeedback, in.User.ID, state.Channel); !ok {
		return fail(Denied, blockComment, w.say(why, "act", w.say("act.feedback")))
	}
	if s.closing.Load() {
		return fail(Failed, blockComment, w.say("busy"))
	}
	f := store.Feedback{IncidentID: state.Incident, Author: who.signature(), At: s.now(), Opinion: state.Opinion}
	for _, x := range in.View.State.Values[blockCause] {
		if x.SelectedOption != nil {
			f.Cause = x.SelectedOption.Value
		}
	}
	for _, x := range in.View.State.Values[blockComment] {
		f.Comment = notify.Clean(x.Value, maxComment)
	}
	c, known := s.settings().Knowledge.Cause(f.Cause)
	switch {
	case f.Opinion != opinionPartly && f.Opinion != opinionWrong:
		return fail(Unclear, blockComment, w.say("press.unknown"))
	case f.Cause == "" && f.Opinion == opinionWrong:
		return fail(Unclear, blockCause, w.say("modal.need_cause"))
	case f.Cause != "" && f.Cause != otherCause && (!known || c.Axis != kb.Bottleneck):
		return fail(Unclear, blockCause, w.say("modal.unknown_cause")) // Removed by a reload meanwhile.
	case f.Cause == "" && f.Comment == "":
		return fail(Unclear, blockComment, w.say("modal.need_something"))
	}
	_, _, err := s.keep(ctx, who, f)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fail(Gone, blockComment, w.say("press.gone", "incident", state.Incident))
	case err != nil:
		s.log.Warn("feedback not stored", zap.String("incident_id", state.Incident), zap.Error(err))
		return fail(Failed, blockComment, w.say("store.failed"))
	}
	s.metrics.Handled(ActFeedback, Done)
	return outcome{}
}
