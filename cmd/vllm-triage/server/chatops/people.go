package chatops

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // People's zones, on images without the files.

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"

	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/notify/locale"
)

// How long what Slack said of people counts, and how long it is not asked again after a failure.
const (
	personFresh = time.Hour
	groupFresh  = 5 * time.Minute
	groupStale  = time.Hour // Counts this long when Slack cannot be asked.
	askAgain    = 30 * time.Second
	// whoTime is what asking who somebody is may take of the three seconds in which Slack wants an answer, or a modal.
	whoTime = 1200 * time.Millisecond
)

// Person is whom an answer is for.
type Person struct {
	ID       string
	Name     string
	Language string
	Zone     *time.Location
	// ZoneKnown is false when Slack did not tell the zone, so that Zone is the configured one.
	ZoneKnown bool
}

// words are the texts in the person's language.
func (p Person) words() *catalogue { return wordsIn(p.Language) }

// format writes quantities and times for the person.
func (p Person) format(now time.Time) format.Formatter { return format.New(p.Language, p.Zone, now) }

// signature is how Alertmanager names the person as creator: a name to read and an id to find.
func (p Person) signature() string {
	if p.Name == "" || p.Name == p.ID {
		return p.ID + " (Slack)"
	}
	return p.Name + " (Slack " + p.ID + ")"
}

// signed finds the id in what signature made.
var signed = regexp.MustCompile(`^(?:(.*) \(Slack ([UW][A-Z0-9]{2,20})\)|([UW][A-Z0-9]{2,20})(?: \(Slack\))?)$`)

// NameOf is how to show somebody who did something, by what the store or Alertmanager kept of them: the name without the id
// where there is a name.
func NameOf(author string) string {
	if m := signed.FindStringSubmatch(author); m != nil {
		return cmp.Or(m[1], m[3])
	}
	return author
}

// userOf is the Slack id of such a person; empty for those who are known from elsewhere.
func userOf(author string) string {
	if m := signed.FindStringSubmatch(author); m != nil {
		return cmp.Or(m[2], m[3])
	}
	return ""
}

// person asks Slack who somebody is, or returns what can be said without. It remembers both.
func (s *Service) person(ctx context.Context, id, name string) Person {
	now := s.now()
	if p, fresh := s.people.get(id, now); fresh {
		return p
	}
	set := s.settings()
	unknown := Person{ID: id, Name: notify.Clean(name, 80), Language: set.Language, Zone: set.Zone}
	api, err := s.api()
	if err != nil || !isUser(id) {
		return unknown
	}
	asking, done := context.WithTimeout(ctx, whoTime)
	defer done()
	u, err := api.GetUserInfoContext(asking, id)
	if err != nil {
		s.log.Debug("user not read", zap.String("user", id), zap.Error(err))
		s.people.put(id, unknown, now.Add(askAgain))
		return unknown
	}
	s.isAlive()
	p := unknown
	p.Name = notify.Clean(cmp.Or(u.Profile.DisplayName, u.RealName, u.Name, name), 80)
	// Who speaks a language without texts is answered in that of the channel.
	if base, _, _ := strings.Cut(u.Locale, "-"); slices.Contains(locale.Languages(), base) {
		p.Language = base
	}
	if z := zoneOf(u); z != nil {
		p.Zone, p.ZoneKnown = z, true
	}
	s.people.put(id, p, now.Add(personFresh))
	return p
}

// zoneOf is a user's zone by name, or by offset when the name is not known here; nil when Slack tells neither.
func zoneOf(u *slackgo.User) *time.Location {
	if u.TZ == "" {
		return nil
	}
	if z, err := time.LoadLocation(u.TZ); err == nil {
		return z
	}
	const day = 24 * 60 * 60
	if u.TZOffset <= -day || u.TZOffset >= day {
		return nil
	}
	return time.FixedZone(notify.Clean(u.TZ, 40), u.TZOffset)
}

// members lists a user group. known is false when Slack could not be asked and nothing recent is remembered.
func (s *Service) members(ctx context.Context, group string) (members []string, known bool) {
	now := s.now()
	if members, fresh := s.groups.get(group, now); fresh {
		return members, true
	}
	api, err := s.api()
	if err == nil {
		members, err = api.GetUserGroupMembersContext(ctx, group)
	}
	if err == nil {
		s.isAlive()
		s.groups.put(group, members, now.Add(groupFresh))
		s.groups.put("stale:"+group, members, now.Add(groupStale))
		return members, true
	}
	s.log.Warn("user group not read: the app needs the scope usergroups:read", zap.String("group", group), zap.Error(err))
	if stale, usable := s.groups.get("stale:"+group, now); usable {
		return stale, true
	}
	return nil, false
}
