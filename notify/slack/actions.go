package slack

import (
	"strings"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
)

// The action ids of a card's buttons. Slack reports a press of any of them, links included; those only want a 200.
const (
	ActionRight    = "right"
	ActionNotQuite = "not_quite"
	ActionWrong    = "wrong"
	ActionRecheck  = "recheck"
	// ActionSilence is a menu; the option that was chosen is one of Silences.
	ActionSilence = "silence"

	ActionOpenIncident     = "open_incident"
	ActionOpenRunbook      = "open_runbook"
	ActionOpenAlertRunbook = "open_alert_runbook"
	ActionOpenPrometheus   = "open_prometheus"
	ActionOpenGrafana      = "open_grafana"
	// ActionOpenAlertmanager is of older cards.
	ActionOpenAlertmanager = "open_alertmanager"
)

// Silences are the options of the silence menu.
const (
	Silence1h  = "silence_1h"
	Silence4h  = "silence_4h"
	Silence24h = "silence_24h"
)

// Action is what somebody pressed.
type Action struct {
	// Name is an action id, or for the menu the option that was chosen.
	Name       string
	IncidentID string
}

// DecodeAction reads the press of a button or the choice in a menu of a card. It reports false for anything that this
// version did not send. Value is the button's value, option the value of the selected option; one of them is empty.
func DecodeAction(actionID, value, option string) (Action, bool) {
	switch actionID {
	case ActionSilence:
		name, id, ok := strings.Cut(option, ":")
		if !ok || name != Silence1h && name != Silence4h && name != Silence24h {
			return Action{}, false
		}
		return Action{Name: name, IncidentID: id}, true
	case ActionRight, ActionNotQuite, ActionWrong, ActionRecheck,
		ActionOpenIncident, ActionOpenRunbook, ActionOpenAlertRunbook, ActionOpenPrometheus, ActionOpenGrafana,
		ActionOpenAlertmanager:
		return Action{Name: actionID, IncidentID: value}, true
	default:
		return Action{}, false
	}
}

// links adds the buttons that open pages.
func (p *page) links(m notify.Message) {
	var buttons []slackgo.BlockElement
	for _, x := range []struct{ id, label, address string }{
		{ActionOpenIncident, "ui.button.incident", m.Links.Incident},
		{ActionOpenRunbook, "ui.button.runbook", m.Links.Runbook},
		{ActionOpenAlertRunbook, "ui.button.alert_runbook", m.Links.AlertRunbook},
		{ActionOpenPrometheus, "ui.button.prometheus", m.Links.Prometheus},
		{ActionOpenGrafana, "ui.button.grafana", m.Links.Grafana},
	} {
		if x.address != "" {
			b := p.button(x.id, x.label, m.IncidentID)
			b.URL = x.address
			buttons = append(buttons, b)
		}
	}
	p.actions(buttons)
}

// feedback adds the buttons that do something. A resolved incident needs no silence.
func (p *page) feedback(m notify.Message) {
	if m.IncidentID == "" {
		return // Nothing that an answer could be about.
	}
	buttons := []slackgo.BlockElement{
		p.button(ActionRight, "ui.button.right", m.IncidentID),
		p.button(ActionNotQuite, "ui.button.not_quite", m.IncidentID),
		p.button(ActionWrong, "ui.button.wrong", m.IncidentID),
		p.button(ActionRecheck, "ui.button.recheck", m.IncidentID),
	}
	if m.Status == notify.Firing || m.Status == notify.Recovered {
		buttons = append(buttons, p.silenceMenu(m))
	}
	p.actions(buttons)
}

// silenceMenu asks again before it silences: a thumb slips, and what it hides is everybody's.
func (p *page) silenceMenu(m notify.Message) *slackgo.SelectBlockElement {
	options := make([]*slackgo.OptionBlockObject, 0, 3)
	for _, name := range []string{Silence1h, Silence4h, Silence24h} {
		options = append(options, &slackgo.OptionBlockObject{
			Text:  p.label("ui.button." + name),
			Value: cut(name+":"+cutAt(m.IncidentID, maxIncidentID), maxOptionValue),
		})
	}
	menu := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, p.label("ui.button.silence"), ActionSilence, options...)
	return menu.WithConfirm(slackgo.NewConfirmationBlockObject(
		word(p.words.Text("ui.silence.title"), maxConfirmTitle),
		word(p.words.Fill("ui.silence.text", "subject", m.Subject), maxConfirmText),
		word(p.words.Text("ui.silence.yes"), maxConfirmButton), word(p.words.Text("ui.silence.no"), maxConfirmButton)))
}

func (p *page) button(id, label, incident string) *slackgo.ButtonBlockElement {
	return slackgo.NewButtonBlockElement(id, cutAt(incident, maxIncidentID), p.label(label))
}

func (p *page) label(key string) *slackgo.TextBlockObject {
	return word(p.words.Text(key), maxButtonText)
}

// word is the text of a control, which knows no markup.
func word(s string, limit int) *slackgo.TextBlockObject {
	return &slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: cut(plain(s), limit)}
}

func (p *page) actions(elements []slackgo.BlockElement) {
	if len(elements) > 0 {
		p.add(slackgo.NewActionBlock("", elements...), 0)
	}
}
