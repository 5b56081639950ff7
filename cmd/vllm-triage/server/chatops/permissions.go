package chatops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
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

// Rule says who may. An empty rule lets everybody; one with people lets those only, one with channels there only.
type Rule struct {
	Users    []string // Ids: U… or W….
	Groups   []string // Ids of user groups: S…. The app needs the scope usergroups:read.
	Channels []string // Ids: C…, G… or D….
}

// Permissions says who may do what. The zero value lets everybody do everything.
type Permissions struct {
	Commands Rule // The slash command.
	Buttons  Rule // Feedback and re-check.
	Silence  Rule // Making and ending silences.
	// Each has a rule for single acts, which then counts instead of the three above.
	Each map[Act]Rule
}

// rule is what counts for an act.
func (p Permissions) rule(a Act) Rule {
	if r, ok := p.Each[a]; ok {
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

var (
	userPattern    = regexp.MustCompile(`^[UW][A-Z0-9]{2,20}$`)
	groupPattern   = regexp.MustCompile(`^S[A-Z0-9]{2,20}$`)
	channelPattern = regexp.MustCompile(`^[CGD][A-Z0-9]{2,20}$`)
)

func isUser(id string) bool { return userPattern.MatchString(id) }

// Validate reports every id that is none and every act that does not exist or cannot be restricted.
func (p Permissions) Validate() error {
	var errs []error
	check := func(name string, r Rule) {
		for _, x := range []struct {
			ids     []string
			pattern *regexp.Regexp
			want    string
		}{
			{r.Users, userPattern, "a user's id (U0123ABCD)"},
			{r.Groups, groupPattern, "a user group's id (S0123ABCD)"},
			{r.Channels, channelPattern, "a channel's id (C0123ABCD)"},
		} {
			for _, id := range x.ids {
				if !x.pattern.MatchString(id) {
					errs = append(errs, fmt.Errorf("%s: %q is not %s", name, id, x.want))
				}
			}
		}
	}
	check("commands", p.Commands)
	check("buttons", p.Buttons)
	check("silence", p.Silence)
	for _, a := range slices.Sorted(maps.Keys(p.Each)) {
		if !slices.Contains(Acts(), a) || slices.Contains(free, a) {
			errs = append(errs, fmt.Errorf("%q cannot be restricted", a))
		}
		check(string(a), p.Each[a])
	}
	return errors.Join(errs...)
}

// Groups lists the user groups that the permissions name, sorted.
func (p Permissions) Groups() []string {
	all := slices.Concat(p.Commands.Groups, p.Buttons.Groups, p.Silence.Groups)
	for _, r := range p.Each {
		all = append(all, r.Groups...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// may says whether a person may do something in a channel; if not, why is the key of a sentence.
func (s *Service) may(ctx context.Context, a Act, user, channel string) (ok bool, why string) {
	if slices.Contains(free, a) {
		return true, ""
	}
	r := s.settings().Permissions.rule(a)
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
