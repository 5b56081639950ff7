package slack

import (
	"context"
	"fmt"
	"slices"
)

// Identity is who the token belongs to and what it may do.
type Identity struct {
	Team, TeamID string
	User, UserID string
	BotID        string
	URL          string // Of the workspace.
	// Scopes are what the app was granted, sorted; empty when Slack did not say.
	Scopes []string
	// Missing are the scopes that the app cannot do without; Optional those whose lack costs something, with what.
	Missing  []string
	Optional []MissingScope
}

// MissingScope is a scope that was not granted and what does not work without it.
type MissingScope struct{ Scope, Loses string }

// scopePost is what no app can do without, scopeCommands what one with buttons and commands needs too.
const (
	scopePost     = "chat:write"
	scopeCommands = "commands"
)

// ScopeGroups lets permissions name user groups.
const ScopeGroups = "usergroups:read"

var optionalScopes = []MissingScope{
	{"chat:write.public", "posts to public channels without an invitation"},
	{"files:write", "the picture; charts are shown inside the message instead"},
	{"channels:history", "finding a message again whose delivery was in doubt; it may be posted twice"},
	{"groups:history", "the same in private channels"},
	{"users:read", "times of the slash command in the user's own time zone"},
	{ScopeGroups, "permissions by user group"},
}

// Scopes lists what an app needs, and what it can do without at a price. Interactive is one with buttons and commands.
func Scopes(interactive bool) (needed []string, optional []MissingScope) {
	needed = []string{scopePost}
	if interactive {
		needed = append(needed, scopeCommands)
	}
	return needed, slices.Clone(optionalScopes)
}

// Check asks Slack who the token is (auth.test) and which scopes it has.
func (n *Notifier) Check(ctx context.Context) (Identity, error) {
	c, failure := n.call(ctx)
	if failure != nil {
		return Identity{}, failure
	}
	r, err := c.api.AuthTestContext(c.ctx)
	if err != nil {
		failure := classify(fmt.Errorf("ask slack who the token is: %w", err), c.sent)
		failure.Maybe = false
		return Identity{}, failure
	}
	id := Identity{Team: r.Team, TeamID: r.TeamID, User: r.User, UserID: r.UserID, BotID: r.BotID, URL: r.URL}
	id.Scopes = scopesOf(r.Header)
	if len(id.Scopes) == 0 {
		return id, nil
	}
	needed, _ := Scopes(n.c.View.Interactive)
	for _, s := range needed {
		if !slices.Contains(id.Scopes, s) {
			id.Missing = append(id.Missing, s)
		}
	}
	for _, s := range optionalScopes {
		if !slices.Contains(id.Scopes, s.Scope) {
			id.Optional = append(id.Optional, s)
		}
	}
	return id, nil
}

// Ping asks Slack who the token is, to see that both the way and the token are good. Its errors are as those of Check.
func (n *Notifier) Ping(ctx context.Context) error {
	_, err := n.Check(ctx)
	return err
}

// Can says whether a scope was granted, or may have been because Slack did not say.
func (i Identity) Can(scope string) bool {
	return len(i.Scopes) == 0 || slices.Contains(i.Scopes, scope)
}
