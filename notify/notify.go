// Package notify tells people what a triage found. It renders a triage.Report once into a Message and hands it to a
// Notifier; it never queries.
package notify

import (
	"context"
	"time"
)

// Ref names a delivered message so that it can be edited and answered in its thread. Its content belongs to the notifier
// that returned it; it survives in the store as two strings.
type Ref struct {
	Channel string `json:"channel"`
	ID      string `json:"id"` // Slack: the message's ts.
}

// Notifier delivers messages to one kind of chat.
//
// Every method returns either nil or an *Error that says whether trying again can help. Implementations are safe for
// concurrent use.
type Notifier interface {
	// Name is the notifier's type as the configuration spells it, for example "slack".
	Name() string
	// Post delivers a new root message to a channel and returns where it went. When its error is Maybe, the message may
	// have been delivered.
	Post(ctx context.Context, channel string, m Message) (Ref, error)
	// Update replaces a message that Post delivered.
	Update(ctx context.Context, ref Ref, m Message) error
	// Reply adds to the thread of a message.
	Reply(ctx context.Context, ref Ref, m Message) (Ref, error)
}

// Illustrator is a Notifier that can add a picture to the thread of a message. Pictures come after the text and have a
// deadline of their own; one that fails costs a line in the thread and never the text.
type Illustrator interface {
	// Illustrate adds the picture. Its errors are as those of Notifier.
	Illustrate(ctx context.Context, ref Ref, p Picture) error
}

// Picture is a PNG for the thread of a message.
type Picture struct {
	PNG      []byte
	Filename string
	Title    string
	AltText  string // What the picture shows, for those who cannot see it.
}

// Finder is a Notifier that can look for messages that may have been delivered although nobody recorded it: after an
// error that was Maybe, and after a crash between a post and its record.
type Finder interface {
	// FindPosted looks for the card of an incident in a channel.
	FindPosted(ctx context.Context, channel, incidentID string) (Ref, bool, error)
	// FindReply looks for the reply with that Message.Part in the thread of a card.
	FindReply(ctx context.Context, root Ref, incidentID, part string) (Ref, bool, error)
}

// Reason classes a delivery failure. It is a closed set: it is a metric label.
type Reason string

// The reasons of delivery failures.
const (
	RateLimited Reason = "rate_limited" // Retry after Error.After.
	Unavailable Reason = "unavailable"  // 5xx, connection refused.
	TimedOut    Reason = "timeout"      // The message may have been delivered.
	Auth        Reason = "auth"         // Token invalid, revoked or without scope: shout, do not retry.
	ChannelGone Reason = "channel"      // Not found, archived, bot not a member.
	MessageGone Reason = "message_gone" // The root was deleted or cannot be edited: post a fresh one, once.
	Rejected    Reason = "rejected"     // The content was refused: fall back to plain text.
	OtherReason Reason = "other"
)

// Error is a delivery failure.
type Error struct {
	Reason    Reason
	Retryable bool
	// Maybe is true when the message may have arrived although the call failed (a time-out after sending).
	Maybe bool
	// After is how long to wait before trying again; 0 leaves it to the caller.
	After time.Duration
	// Hint is the next step for an operator, for example "invite the bot: /invite @vllm-triage".
	Hint string
	Err  error
}

// Error implements error. It never contains credentials.
func (e *Error) Error() string {
	s := string(e.Reason) + ": " + e.Err.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }
