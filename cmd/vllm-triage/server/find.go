package server

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"vllm-triage/notify"
)

// The outcomes of looking for a message that was perhaps posted, as the label "outcome".
const (
	lookupFound  = "found"
	lookupAbsent = "absent"
	lookupBlind  = "blind" // It could not be looked for.
)

// findCard looks for the card of an incident whose post may have got through. Slack finds messages by the id of the channel
// only, so a name is replaced by the id that an earlier message to that channel was given.
func (d *delivery) findCard(ctx context.Context) (notify.Ref, bool, error) {
	f, ok := d.parts.Notifier.(notify.Finder)
	if !ok {
		return d.blind(errors.New("the notifier cannot look for messages"))
	}
	channel, err := d.s.store.ChannelID(ctx, d.c.Channel)
	if err != nil {
		return notify.Ref{}, false, err
	}
	if channel == "" {
		channel = d.c.Channel
	}
	return d.looked(f.FindPosted(ctx, channel, d.c.IncidentID))
}

// findReply looks for a reply in the same way.
func (d *delivery) findReply(ctx context.Context, card notify.Ref, part string) (notify.Ref, bool, error) {
	f, ok := d.parts.Notifier.(notify.Finder)
	if !ok {
		return d.blind(errors.New("the notifier cannot look for messages"))
	}
	return d.looked(f.FindReply(ctx, card, d.c.IncidentID, part))
}

// looked decides what an answer means. When looking fails for a while it is tried again; when it can never work, as without
// the scope to read the channel, the message is posted: twice is better than not at all.
func (d *delivery) looked(ref notify.Ref, found bool, err error) (notify.Ref, bool, error) {
	var e *notify.Error
	switch {
	case errors.As(err, &e) && !e.Retryable && !e.Maybe:
		return d.blind(err)
	case err != nil:
		return ref, false, err
	case found:
		d.s.metrics.lookups.WithLabelValues(lookupFound).Inc()
	default:
		d.s.metrics.lookups.WithLabelValues(lookupAbsent).Inc()
	}
	return ref, found, nil
}

func (d *delivery) blind(err error) (notify.Ref, bool, error) {
	d.s.metrics.lookups.WithLabelValues(lookupBlind).Inc()
	d.s.log.Warn("a message whose delivery is in doubt cannot be looked for: it is posted again, perhaps for the second time",
		zap.String("incident_id", d.c.IncidentID), zap.String("channel", d.c.Channel), zap.Error(err))
	return notify.Ref{}, false, nil
}
