package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// Permissions says who may do what in Slack. The zero value lets everybody do everything.
type Permissions struct {
	Commands Rule `yaml:"commands,omitempty"` // The slash command.
	Buttons  Rule `yaml:"buttons,omitempty"`  // Right, not quite, wrong; re-check.
	Silence  Rule `yaml:"silence,omitempty"`  // Making silences and ending them.
	// Each has rules for single acts, by name; such a rule counts instead of the three above. See Acts.
	Each map[string]Rule `yaml:"each,omitempty"`
}

// Rule says who may. An empty rule lets everybody; one with users or groups lets those only, one with channels there only.
type Rule struct {
	Users    []string `yaml:"users,omitempty"`    // Ids: U… or W….
	Groups   []string `yaml:"groups,omitempty"`   // Ids of user groups: S…. The app needs the scope usergroups:read.
	Channels []string `yaml:"channels,omitempty"` // Ids: C…, G… or D….
}

// IsZero says whether the rule lets everybody.
func (r Rule) IsZero() bool { return len(r.Users)+len(r.Groups)+len(r.Channels) == 0 }

// IsZero says whether everybody may do everything.
func (p Permissions) IsZero() bool {
	return p.Commands.IsZero() && p.Buttons.IsZero() && p.Silence.IsZero() && len(p.Each) == 0
}

// acts can have a rule of their own.
var acts = []string{
	"triage", "share", "models", "incidents", "explain", "silences", "feedback", "recheck", "silence", "expire",
}

// Acts lists what can have a rule of its own in Permissions.Each.
func Acts() []string { return slices.Clone(acts) }

var (
	userPattern  = regexp.MustCompile(`^[UW][A-Z0-9]{2,20}$`)
	groupPattern = regexp.MustCompile(`^S[A-Z0-9]{2,20}$`)
	placePattern = regexp.MustCompile(`^[CGD][A-Z0-9]{2,20}$`)
)

// IsSlackUser says whether an id has the form of a Slack user's: U… or W….
func IsSlackUser(id string) bool { return userPattern.MatchString(id) }

func (p Permissions) validate(found *problems, path string) {
	p.Commands.validate(found, path+".commands")
	p.Buttons.validate(found, path+".buttons")
	p.Silence.validate(found, path+".silence")
	for _, name := range slices.Sorted(maps.Keys(p.Each)) {
		at := path + ".each." + name
		if !slices.Contains(acts, name) {
			text := "cannot be restricted"
			if near := nearest(name, acts); near != "" {
				text += `, did you mean "` + near + `"?`
			}
			found.add(at, text)
		}
		p.Each[name].validate(found, at)
	}
}

func (r Rule) validate(found *problems, path string) {
	for _, x := range []struct {
		key     string
		ids     []string
		pattern *regexp.Regexp
		want    string
	}{
		{"users", r.Users, userPattern, "a user's id such as U0123456789"},
		{"groups", r.Groups, groupPattern, "a user group's id such as S0123456789"},
		{"channels", r.Channels, placePattern, "a channel's id such as C0123456789"},
	} {
		for i, id := range x.ids {
			if !x.pattern.MatchString(id) {
				found.add(path+"."+x.key+"["+strconv.Itoa(i)+"]", strconv.Quote(id)+" is not "+x.want)
			}
		}
	}
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
