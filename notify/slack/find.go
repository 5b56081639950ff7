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

// FindReply looks for a reply of a kind in the thread of a card, for the same reasons as FindPosted.
func (n *Notifier) FindReply(ctx context.Context, root notify.Ref, incidentID string, k notify.Kind) (notify.Ref, bool, error) {
	want := wanted{incidentID: incidentID, kind: k}
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

// wanted is the metadata that is looked for.
type wanted struct {
	incidentID string
	kind       notify.Kind
}

func (w wanted) is(m slackgo.Message) bool {
	return m.Metadata.EventType == EventType &&
		m.Metadata.EventPayload["incident_id"] == cutAt(w.incidentID, maxIncidentID) &&
		m.Metadata.EventPayload["kind"] == string(w.kind)
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
