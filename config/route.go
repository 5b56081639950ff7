package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Mode says what becomes of a route's messages.
type Mode string

// The modes of a route.
const (
	Live   Mode = "live"   // Posted.
	Shadow Mode = "shadow" // Triaged, kept and shown on the page, not posted.
	Off    Mode = "off"    // Not triaged: the alerts are kept and counted only.
)

// Route says where the news of an incident go. The first route of the list whose matchers hold takes it, and the next ones
// too as long as Continue is set. An incident that no route takes goes to slack.channel.
type Route struct {
	// Match and MatchRE hold on labels of the incident: all of them on one and the same alert. The label "receiver" is
	// Alertmanager's receiver. A regular expression matches the whole value.
	Match   map[string]string `yaml:"match,omitempty"`
	MatchRE map[string]Regexp `yaml:"match_re,omitempty"`

	Channel  string `yaml:"channel,omitempty"` // "#name" or an id; empty: slack.channel.
	Language string `yaml:"language,omitempty"`
	Timezone string `yaml:"timezone,omitempty"`
	// Mention is whom the first post calls: U… (user), S… (group), "here" or "channel"; "none" for nobody.
	Mention string `yaml:"mention,omitempty"`
	Mode    Mode   `yaml:"mode,omitempty"`
	// Edit keeps one message up to date; without it every change is a reply in its thread.
	Edit *bool `yaml:"edit,omitempty"`
	// Thread adds evidence, timeline and queries to the message's thread.
	Thread *bool `yaml:"thread,omitempty"`
	// BroadcastResolve also shows the reply that says "resolved" in the channel.
	BroadcastResolve bool `yaml:"broadcast_resolve,omitempty"`
	Continue         bool `yaml:"continue,omitempty"`
}

// Target is a route with everything filled in.
type Target struct {
	Channel          string
	Language         string
	Timezone         string
	Mention          string // Empty: nobody.
	Mode             Mode
	Edit             bool
	Thread           bool
	BroadcastResolve bool
}

// Location is the time zone of the target's readers; UTC if it is not known here.
func (t Target) Location() *time.Location {
	loc, err := time.LoadLocation(t.Timezone)
	if err != nil {
		return time.UTC
	}
	return loc
}

// matches says whether all matchers hold on one set of labels.
func (r Route) matches(labels map[string]string) bool {
	for name, want := range r.Match {
		if labels[name] != want {
			return false
		}
	}
	for name, want := range r.MatchRE {
		if !want.MatchString(labels[name]) {
			return false
		}
	}
	return true
}

// Targets returns where the news of an incident go, given the labels of each of its alerts. Two routes to one channel count
// once, the first of them.
func (c *Config) Targets(alerts []map[string]string) []Target {
	var out []Target
	taken := false
	for _, r := range c.Routes {
		if !slices.ContainsFunc(alerts, r.matches) {
			continue
		}
		taken = true
		t := c.target(r)
		if !slices.ContainsFunc(out, func(o Target) bool { return o.Channel == t.Channel }) {
			out = append(out, t)
		}
		if !r.Continue {
			break
		}
	}
	if !taken {
		out = append(out, c.target(Route{}))
	}
	return out
}

func (c *Config) target(r Route) Target {
	t := Target{
		Channel:          or(r.Channel, c.Slack.Channel),
		Language:         or(r.Language, c.Slack.Language),
		Timezone:         or(r.Timezone, c.Slack.Timezone),
		Mention:          or(r.Mention, c.Slack.Mention),
		Mode:             or(r.Mode, Live),
		Edit:             r.Edit == nil || *r.Edit,
		Thread:           r.Thread == nil || *r.Thread,
		BroadcastResolve: r.BroadcastResolve,
	}
	if t.Mention == noMention {
		t.Mention = ""
	}
	if t.Mode == Live && (t.Channel == "" || !c.Slack.Enabled()) {
		t.Mode = Shadow // There is nobody to post it.
	}
	return t
}

// Describe says in one line which alerts a route takes and what becomes of them, as the service understood it.
func (c *Config) Describe(r Route) string {
	var match []string
	for _, name := range slices.Sorted(maps.Keys(r.Match)) {
		match = append(match, fmt.Sprintf("%s=%q", name, r.Match[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.MatchRE)) {
		match = append(match, fmt.Sprintf("%s=~%q", name, r.MatchRE[name].String()))
	}
	t := c.target(r)
	line := "{" + strings.Join(match, ", ") + "} -> " + or(t.Channel, "(no channel)") + ", " + string(t.Mode) +
		", language " + t.Language + ", times in " + t.Timezone
	if t.Mention != "" {
		line += ", calls " + t.Mention
	}
	if r.Continue {
		line += ", then the next routes too"
	}
	return line
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Regexp is a regular expression that must match a whole value.
type Regexp struct{ *regexp.Regexp }

// NewRegexp compiles an expression.
func NewRegexp(s string) (Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		return Regexp{}, err
	}
	return Regexp{regexp.MustCompile("^(?s:" + re.String() + ")$")}, nil
}

// String is the expression as it was written.
func (r Regexp) String() string {
	if r.Regexp == nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(r.Regexp.String(), "^(?s:"), ")$")
}

// MarshalYAML implements yaml.Marshaler.
func (r Regexp) MarshalYAML() (any, error) { return r.String(), nil }

// UnmarshalYAML implements the yaml.Unmarshaler that keeps the decoder's strictness.
func (r *Regexp) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	re, err := NewRegexp(s)
	if err != nil {
		return err
	}
	*r = re
	return nil
}
