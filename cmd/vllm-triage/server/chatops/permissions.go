package chatops

import (
	"context"
	"slices"

	"vllm-triage/config"
)

// Act is something that a person can do. It is a closed set, fit for a metric label.
type Act string

// The acts.
const (
	ActTriage    Act = "triage"    // Ask about a model.
	ActShare     Act = "share"     // Show an answer to the channel.
	ActModels    Act = "models"    // List the models.
	ActIncidents Act = "incidents" // List the incidents.
	ActExplain   Act = "explain"   // Explain a cause.
	ActSilences  Act = "silences"  // List the silences.
	ActHelp      Act = "help"
	ActFeedback  Act = "feedback" // Right, not quite, wrong.
	ActRecheck   Act = "recheck"
	ActSilence   Act = "silence" // Make a silence.
	ActExpire    Act = "expire"  // End a silence.
	ActLink      Act = "link"    // Open a page; Slack tells of it.
	ActOther     Act = "other"   // A button of another version.
)

// Acts lists all acts.
func Acts() []Act {
	return []Act{
		ActTriage, ActShare, ActModels, ActIncidents, ActExplain, ActSilences, ActHelp, ActFeedback, ActRecheck, ActSilence,
		ActExpire, ActLink, ActOther,
	}
}

// free are the acts that nobody is kept from.
var free = []Act{ActHelp, ActLink, ActOther}

// rule is what counts for an act.
func rule(p config.Permissions, a Act) config.Rule {
	if r, ok := p.Each[string(a)]; ok {
		return r
	}
	switch a {
	case ActFeedback, ActRecheck:
		return p.Buttons
	case ActSilence, ActExpire:
		return p.Silence
	default:
		return p.Commands
	}
}

func isUser(id string) bool { return config.IsSlackUser(id) }

// may says whether a person may do something in a channel; if not, why is the key of a sentence.
func (s *Service) may(ctx context.Context, a Act, user, channel string) (ok bool, why string) {
	if slices.Contains(free, a) {
		return true, ""
	}
	r := rule(s.settings().Permissions, a)
	if len(r.Channels) > 0 && !slices.Contains(r.Channels, channel) {
		return false, "denied.channel"
	}
	if len(r.Users)+len(r.Groups) == 0 || slices.Contains(r.Users, user) {
		return true, ""
	}
	unknown := false
	for _, g := range r.Groups {
		members, known := s.members(ctx, g)
		if slices.Contains(members, user) {
			return true, ""
		}
		unknown = unknown || !known
	}
	if unknown {
		return false, "denied.unknown" // Closed rather than open when nobody can tell.
	}
	return false, "denied.people"
}
