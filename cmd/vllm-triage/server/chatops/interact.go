package chatops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"vllm-triage/notify/slack"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// interaction is the part of an interaction's payload that is needed. It knows nothing of blocks, so a message with a block
// that no library decodes yet is answered like any other.
type interaction struct {
	Type string `json:"type"`
	User struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Username string `json:"username"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		MessageTS   string `json:"message_ts"`
		ThreadTS    string `json:"thread_ts"`
		ChannelID   string `json:"channel_id"`
		IsEphemeral bool   `json:"is_ephemeral"`
	} `json:"container"`
	ResponseURL string   `json:"response_url"`
	TriggerID   string   `json:"trigger_id"`
	Actions     []action `json:"actions"`
	View        view     `json:"view"`
}

type action struct {
	ActionID       string `json:"action_id"`
	Value          string `json:"value"`
	SelectedOption struct {
		Value string `json:"value"`
	} `json:"selected_option"`
}

type view struct {
	CallbackID      string `json:"callback_id"`
	PrivateMetadata string `json:"private_metadata"`
	State           struct {
		Values map[string]map[string]struct {
			Value          string `json:"value"`
			SelectedOption *struct {
				Value string `json:"value"`
			} `json:"selected_option"`
		} `json:"values"`
	} `json:"state"`
}

// channel is where an interaction happened.
func (in interaction) channel() string { return firstNonEmpty(in.Container.ChannelID, in.Channel.ID) }

// root is the message whose thread answers belong to: the one that was pressed on, or the one above it. Ephemeral messages
// have no thread of their own.
func (in interaction) root() string {
	switch {
	case in.Container.ThreadTS != "":
		return in.Container.ThreadTS
	case in.Container.IsEphemeral:
		return ""
	default:
		return in.Container.MessageTS
	}
}

// maxActions bounds the actions of one payload; Slack sends one.
const maxActions = 5

var errPayload = errors.New("payload is not an interaction")

// onInteraction answers a press, a choice or a submitted modal.
func (s *Service) onInteraction(ctx context.Context, payload []byte) (outcome, error) {
	var in interaction
	if err := json.Unmarshal(payload, &in); err != nil || in.Type == "" || !isUser(in.User.ID) {
		return outcome{}, errPayload
	}
	switch in.Type {
	case "block_actions":
		if len(in.Actions) == 0 || len(in.Actions) > maxActions {
			return outcome{}, errPayload
		}
		return s.onActions(ctx, in), nil
	case "view_submission":
		return s.onSubmit(ctx, in), nil
	default: // A modal that was closed, a shortcut of another app version: seen, nothing to do.
		return outcome{}, nil
	}
}

// onActions is answered empty at once; everything else comes after it.
func (s *Service) onActions(ctx context.Context, in interaction) outcome {
	p := s.place(in.ResponseURL, in.channel(), in.User.ID, in.root())
	if s.closing.Load() || s.busy() {
		s.reject(EndpointInteractivity, RejectedBusy, errBusy)
		// Said at once, as nothing may begin: the answer's time is Slack's three seconds.
		ctx, cancel := context.WithTimeout(ctx, prompt)
		defer cancel()
		s.private(ctx, p, says(ln(wordsIn(s.settings().Language).say("busy"))))
		return outcome{}
	}
	var tasks []task
	for _, a := range in.Actions {
		tasks = append(tasks, func(ctx context.Context) {
			act, o := s.press(ctx, p, in, a)
			s.metrics.Handled(act, o)
			s.log.Info("button", zap.String("user", in.User.ID), zap.String("channel", p.channel),
				zap.String("act", string(act)), zap.String("outcome", string(o)))
		})
	}
	return outcome{after: tasks}
}

// press does what one button or choice asks for.
func (s *Service) press(ctx context.Context, p *place, in interaction, a action) (Act, Outcome) {
	who := s.person(ctx, in.User.ID, firstNonEmpty(in.User.Name, in.User.Username))
	allowed := func(act Act) bool {
		ok, why := s.may(ctx, act, in.User.ID, p.channel)
		if !ok {
			s.private(ctx, p, denied(who.words(), act, why))
		}
		return ok
	}
	switch {
	case a.ActionID == actionDetails, a.ActionID == actionShare:
		act := ActTriage
		if a.ActionID == actionShare {
			act = ActShare
		}
		if !allowed(act) {
			return act, Denied
		}
		return act, s.again(ctx, p, who, a)
	case strings.HasPrefix(a.ActionID, actionExpire):
		if !allowed(ActExpire) {
			return ActExpire, Denied
		}
		return ActExpire, s.expire(ctx, p, who, a.Value)
	}
	pressed, ok := slack.DecodeAction(a.ActionID, a.Value, a.SelectedOption.Value)
	if !ok {
		s.private(ctx, p, says(ln(who.words().say("press.unknown"))))
		return ActOther, Gone
	}
	switch pressed.Name {
	case slack.ActionRight, slack.ActionNotQuite, slack.ActionWrong:
		if !allowed(ActFeedback) {
			return ActFeedback, Denied
		}
		return ActFeedback, s.judge(ctx, p, who, in, pressed)
	case slack.ActionRecheck:
		if !allowed(ActRecheck) {
			return ActRecheck, Denied
		}
		return ActRecheck, s.recheck(ctx, p, who, pressed.IncidentID)
	case slack.Silence1h, slack.Silence4h, slack.Silence24h:
		if !allowed(ActSilence) {
			return ActSilence, Denied
		}
		return ActSilence, s.silence(ctx, p, who, pressed)
	default:
		return ActLink, Done // The link has opened already.
	}
}

// incident reads an incident, or tells the person why it cannot be read.
func (s *Service) incident(ctx context.Context, p *place, who Person, id string) (store.Incident, []triage.Alert, Outcome) {
	in, alerts, err := s.c.Store.Incident(ctx, id)
	switch {
	case err == nil:
		return in, alerts, Done
	case errors.Is(err, store.ErrNotFound):
		s.private(ctx, p, says(ln(who.words().say("press.gone", "incident", id))))
		return in, nil, Gone
	default:
		s.log.Warn("incident not read", zap.String("incident_id", id), zap.Error(err))
		s.private(ctx, p, says(ln(who.words().say("store.failed"))))
		return in, nil, Failed
	}
}

// again shows the evidence behind an answer, or the answer to everybody. When this process does not know the answer any
// more, the question is put again.
func (s *Service) again(ctx context.Context, p *place, who Person, a action) Outcome {
	q, ok := decodeQuestion(a.Value)
	if !ok {
		s.private(ctx, p, says(ln(who.words().say("press.unknown"))))
		return Gone
	}
	key := "again\x00" + who.ID + "\x00" + a.ActionID + "\x00" + a.Value
	if !s.running.first(key, s.now(), repeatWindow) {
		s.private(ctx, p, says(ln(who.words().say("slash.repeated"))))
		return Repeated
	}
	set := s.settings()
	r, err := s.ask(ctx, set, q)
	if err != nil {
		s.running.forget(key)
		s.log.Warn("triage for a button failed", zap.String("user", who.ID), zap.Error(err))
		s.private(ctx, p, says(ln(who.words().say("triage.failed", "why", why(who.words(), err)))))
		return Failed
	}
	if a.ActionID == actionShare {
		s.tell(ctx, p, card(set, who, q, r, nil, true))
	} else {
		s.tell(ctx, p, details(set, who, r))
	}
	return Done
}

// onEvent answers the handshake of the Events API. No event is needed; one that says that the app was removed is logged
// loudly.
func (s *Service) onEvent(body []byte) (outcome, error) {
	var in struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
		Event     struct {
			Type string `json:"type"`
		} `json:"event"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Type == "" {
		return outcome{}, fmt.Errorf("read event: %w", errPayload)
	}
	switch {
	case in.Type == "url_verification":
		return outcome{body: map[string]string{"challenge": in.Challenge}}, nil
	case in.Event.Type == "app_uninstalled", in.Event.Type == "tokens_revoked":
		s.log.Error("the app was removed from the workspace or its token revoked: install it again and renew slack.bot_token",
			zap.String("event", in.Event.Type))
	}
	return outcome{}, nil
}
