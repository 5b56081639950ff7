package slack

import (
	"context"
	"fmt"
	"time"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
)

// How far FindPosted and FindReply look back.
const (
	findPages    = 5
	findPageSize = 200
)

// maxPart bounds the name of a part in the metadata, in runes.
const maxPart = 200

// FindPosted looks for the card of an incident among the newest messages of a channel. It heals a crash between a post
// and its record, and a post whose answer was lost. Channel must be an id: Slack does not take names here. It needs the
// scope channels:history or, for private channels, groups:history; without it the error is Auth and names the scope.
func (n *Notifier) FindPosted(ctx context.Context, channel, incidentID string) (notify.Ref, bool, error) {
	want := wanted{incidentID: incidentID, kind: notify.KindCard}
	return n.find(ctx, func(c call, cursor string) ([]slackgo.Message, string, error) {
		page, err := c.api.GetConversationHistoryContext(c.ctx, &slackgo.GetConversationHistoryParameters{
			ChannelID: channel, Cursor: cursor, Limit: findPageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return nil, "", fmt.Errorf("read the channel's history: %w", err)
		}
		return page.Messages, page.ResponseMetaData.NextCursor, nil
	}, channel, want)
}

// FindReply looks for a reply in the thread of a card by its part, for the same reasons as FindPosted.
func (n *Notifier) FindReply(ctx context.Context, root notify.Ref, incidentID, part string) (notify.Ref, bool, error) {
	want := wanted{incidentID: incidentID, part: part}
	return n.find(ctx, func(c call, cursor string) ([]slackgo.Message, string, error) {
		messages, _, next, err := c.api.GetConversationRepliesContext(c.ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: root.Channel, Timestamp: root.ID, Cursor: cursor, Limit: findPageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return nil, "", fmt.Errorf("read the thread: %w", err)
		}
		return messages, next, nil
	}, root.Channel, want)
}

// wanted is the metadata that is looked for: that of a card by its kind, that of a reply by its part.
type wanted struct {
	incidentID string
	kind       notify.Kind
	part       string
}

func (w wanted) is(m slackgo.Message) bool {
	said := m.Metadata.EventPayload
	if m.Metadata.EventType != EventType || said["incident_id"] != cutAt(w.incidentID, maxIncidentID) {
		return false
	}
	if w.kind != "" {
		return said["kind"] == string(w.kind)
	}
	return said["part"] == cutAt(w.part, maxPart)
}

// metadata says in each message what it is, for FindPosted and FindReply.
func metadata(m notify.Message) slackgo.SlackMetadata {
	said := map[string]any{"incident_id": cutAt(m.IncidentID, maxIncidentID), "kind": string(m.Kind)}
	if m.Part != "" {
		said["part"] = cutAt(m.Part, maxPart)
	}
	return slackgo.SlackMetadata{EventType: EventType, EventPayload: said}
}

func (n *Notifier) find(
	ctx context.Context, page func(call, string) ([]slackgo.Message, string, error), channel string, want wanted,
) (notify.Ref, bool, error) {
	cursor := ""
	for range findPages {
		c, failure := n.call(ctx)
		if failure != nil {
			return notify.Ref{}, false, failure
		}
		messages, next, err := page(c, cursor)
		if failure := classify(err, nil); failure != nil {
			return notify.Ref{}, false, failure
		}
		for _, m := range messages {
			if want.is(m) {
				return notify.Ref{Channel: channel, ID: m.Timestamp}, true, nil
			}
		}
		if cursor = next; cursor == "" {
			break
		}
		if err := sleep(ctx, n.c.Pace); err != nil {
			return notify.Ref{}, false, classify(err, nil)
		}
	}
	return notify.Ref{}, false, nil
}

// sleep waits between pages: the history has a rate limit of its own.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
