package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"vllm-triage/notify"
	"vllm-triage/notify/chart"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

const (
	// partPicture is the picture in the thread. It is uploaded once an incident, after the texts.
	partPicture       = "picture"
	partPictureFailed = "picture-failed"
	// changePart begins the names of parts that tell a change; the store gives them.
	changePart = "change-"
	// maxPictureTries is how often a picture is tried that the chat has no time for.
	maxPictureTries = 4
	// pictureTime is what a picture may take; the texts are out by then.
	pictureTime = 20 * time.Second
	// maxReposts is how often a deleted message is posted afresh.
	maxReposts = 3
)

// deliverOnce claims one conversation that has news and delivers them. It says whether there was one.
func (s *Server) deliverOnce(ctx context.Context) (bool, error) {
	parts := s.Parts()
	if parts.Notifier == nil {
		return false, nil
	}
	c, found, err := s.store.ClaimConversation(ctx, s.owner, s.now(), lease)
	if err != nil || !found {
		return false, err
	}
	working, release := s.keepLease(ctx, func(ctx context.Context, until time.Time) error {
		return s.store.RenewConversation(ctx, c, until)
	})
	d := &delivery{s: s, parts: parts, c: c}
	working, span := s.tracer.Start(working, "deliver", incidentID(c.IncidentID))
	err = s.guarded(func() error { return d.run(working) })
	endSpan(span, err)
	release()
	switch {
	case err == nil:
		s.tookMessage(ctx, c.Channel)
		return true, nil
	case errors.Is(err, errCheckFirst):
		return true, s.store.Undelivered(ctx, c, store.Failure{Reason: checkedFirst, Next: s.now().Add(checkWait)})
	case errors.Is(err, errFresh):
		return true, s.store.Undelivered(ctx, c, store.Failure{Reason: string(notify.MessageGone), Err: err, Next: s.now()})
	case errors.Is(err, store.ErrLeaseLost):
		return true, nil
	case ctx.Err() != nil:
		return true, nil
	}
	return true, s.undelivered(ctx, c, err)
}

// undelivered gives a conversation back after a failure, by what the notifier said of it.
func (s *Server) undelivered(ctx context.Context, c store.Conversation, err error) error {
	f := store.Failure{Reason: string(notify.OtherReason), Err: err, Next: s.now().Add(backOff(c.Attempts)), State: store.Active}
	if e, ok := errors.AsType[*notify.Error](err); ok {
		f.Reason = string(e.Reason)
		if e.After > 0 {
			f.Next = s.now().Add(e.After)
		}
		// What is not known may pass by itself, but not for ever.
		if !e.Retryable && !e.Maybe && (e.Reason != notify.OtherReason || c.Attempts >= maxAttempts) {
			f.State = store.Dead
			s.gaveUp(c.Channel, e.Reason)
		}
	}
	if errors.Is(err, errTooOld) {
		f.State, f.Reason = store.Expired, lostExpired
		s.metrics.lost.WithLabelValues(lostExpired).Inc()
	}
	log := s.log.Warn
	if f.State != store.Active {
		log = s.log.Error
	}
	log("delivery failed", zap.String("incident_id", c.IncidentID), zap.String("channel", c.Channel),
		zap.String("reason", f.Reason), zap.String("state", f.State), zap.Int("attempts", c.Attempts), zap.Error(err))
	return s.store.Undelivered(ctx, c, f)
}

var errTooOld = errors.New("the news are older than triage.max_age")

// delivery is the work on one conversation.
type delivery struct {
	s     *Server
	parts *Parts
	c     store.Conversation
	in    store.Incident
}

// run brings a channel up to date: card, details, what is said once, picture. Every step is noted before the next, so
// whoever takes over goes on where this one stopped.
func (d *delivery) run(ctx context.Context) error {
	s := d.s
	var err error
	if d.in, _, err = s.store.Incident(ctx, d.c.IncidentID); err != nil {
		return err
	}
	reports, err := s.store.Reports(ctx, d.c.IncidentID)
	if err != nil {
		return err
	}
	if reports.Latest == nil {
		return s.store.Delivered(ctx, d.c, d.c.Wanted, s.now(), s.now())
	}
	late := s.now().Sub(d.c.WantedAt)
	if limit := time.Duration(d.parts.Config.Triage.MaxAge); limit > 0 && late > limit {
		return errTooOld
	}
	var set settings
	if err := json.Unmarshal(d.c.Settings, &set); err != nil {
		return fmt.Errorf("read settings of conversation %d: %w", d.c.ID, err)
	}
	if d.isStale(late, *reports.Latest) {
		return d.checkFirst(ctx)
	}
	m := s.message(d.parts, d.in, *reports.Latest, reports.Previous, set, late)
	if m.Late != "" && d.nowOver(ctx) {
		m.Late += " " + say(m.Language, "late.over")
	}
	revision := reports.Revision
	card, err := d.card(ctx, m, set, revision)
	if err != nil {
		return err
	}
	if err := d.replies(ctx, card, m, set, revision); err != nil {
		return d.strayed(ctx, err)
	}
	s.metrics.lateness.Observe(late.Seconds())
	if set.Thread {
		if err := d.picture(ctx, card, *reports.Latest, m, set); err != nil {
			return err
		}
	}
	return s.store.Delivered(ctx, d.c, revision, s.now(), s.now().Add(time.Duration(d.parts.Config.Triage.EditInterval)))
}

// replies brings the thread up to date.
func (d *delivery) replies(ctx context.Context, card notify.Ref, m notify.Message, set settings, revision int64) error {
	if set.Thread {
		if err := d.details(ctx, card, m.As(notify.KindDetails), revision); err != nil {
			return err
		}
	}
	return d.once(ctx, card)
}

// errFresh says that the thread is gone and a new message is to be posted.
var errFresh = errors.New("the thread is gone: a new message is posted")

// strayed turns a thread that is gone into a card that is lost: somebody deleted it while nothing was to be edited there.
func (d *delivery) strayed(ctx context.Context, err error) error {
	e, ok := errors.AsType[*notify.Error](err)
	if !ok || e.Reason != notify.MessageGone || d.c.Post(store.PartCard).Reposts >= maxReposts {
		return err
	}
	if err := d.s.store.Lost(ctx, d.c, store.PartCard); err != nil {
		return err
	}
	return errFresh
}

// card posts or edits the root message. One that was deleted is posted afresh.
func (d *delivery) card(ctx context.Context, m notify.Message, set settings, revision int64) (notify.Ref, error) {
	p := d.c.Post(store.PartCard)
	if p.Ref.ID != "" {
		ref := notify.Ref(p.Ref)
		if p.Shown >= revision || !set.Edit {
			return ref, nil
		}
		mention := m.Mention
		m.Mention = "" // An edit calls nobody.
		err := d.update(ctx, ref, m)
		m.Mention = mention
		var e *notify.Error
		switch {
		case err == nil:
			return ref, d.s.store.Posted(ctx, d.c, store.PartCard, p.Ref, revision, d.s.now())
		case errors.As(err, &e) && e.Reason == notify.MessageGone && p.Reposts < maxReposts:
			if err := d.s.store.Lost(ctx, d.c, store.PartCard); err != nil {
				return ref, err
			}
			d.forget(store.PartCard, store.PartDetails)
			m.Mention = "" // They were called when it was posted first.
		default:
			return ref, err
		}
	}
	ref, found, err := d.post(ctx, store.PartCard, revision, d.findCard, func(ctx context.Context) (notify.Ref, error) {
		return d.send(ctx, opPost, func(ctx context.Context) (notify.Ref, error) {
			return d.parts.Notifier.Post(ctx, d.c.Channel, m)
		})
	})
	if err != nil || !found {
		return ref, err
	}
	m.Mention = ""
	return ref, d.refresh(ctx, store.PartCard, ref, m, revision)
}

// refresh brings a message up to date that was found as somebody else left it.
func (d *delivery) refresh(ctx context.Context, part string, ref notify.Ref, m notify.Message, revision int64) error {
	if err := d.update(ctx, ref, m); err != nil {
		return err
	}
	return d.s.store.Posted(ctx, d.c, part, store.Ref(ref), revision, d.s.now())
}

func (d *delivery) update(ctx context.Context, ref notify.Ref, m notify.Message) error {
	return d.s.call(ctx, opUpdate, func(ctx context.Context) error { return d.parts.Notifier.Update(ctx, ref, m) })
}

// forget drops what is known of parts whose messages are gone.
func (d *delivery) forget(parts ...string) {
	d.c.Posts = slices.DeleteFunc(d.c.Posts, func(p store.Post) bool { return slices.Contains(parts, p.Part) })
}

// post delivers a part for the first time: the intent is committed, the message sent, its address committed. When an
// earlier attempt may have got through, the message is looked for first; found says that it was there.
func (d *delivery) post(
	ctx context.Context, part string, revision int64,
	find func(context.Context) (notify.Ref, bool, error), send func(context.Context) (notify.Ref, error),
) (ref notify.Ref, found bool, err error) {
	s := d.s
	if d.c.Post(part).Doubtful() {
		ref, found, err = find(ctx)
		if err != nil {
			return notify.Ref{}, false, err
		}
		if found {
			return ref, true, s.store.Posted(ctx, d.c, part, store.Ref(ref), 0, s.now())
		}
	}
	if err := s.store.Intend(ctx, d.c, part, s.now()); err != nil {
		return notify.Ref{}, false, err
	}
	ref, err = send(ctx)
	if err == nil {
		return ref, false, s.store.Posted(ctx, d.c, part, store.Ref(ref), revision, s.now())
	}
	if e, ok := errors.AsType[*notify.Error](err); ok && !e.Maybe {
		// The chat said no: nothing was posted.
		return notify.Ref{}, false, errors.Join(err, s.store.Unposted(ctx, d.c, part))
	}
	return notify.Ref{}, false, err
}

// details posts or edits the reply with evidence, gaps, timeline and queries.
func (d *delivery) details(ctx context.Context, card notify.Ref, m notify.Message, revision int64) error {
	p := d.c.Post(store.PartDetails)
	if p.Ref.ID != "" && p.Shown >= revision {
		return nil
	}
	m.Part = store.PartDetails
	if p.Ref.ID != "" {
		err := d.update(ctx, notify.Ref(p.Ref), m)
		var e *notify.Error
		if err == nil {
			return d.s.store.Posted(ctx, d.c, store.PartDetails, p.Ref, revision, d.s.now())
		}
		if !errors.As(err, &e) || e.Reason != notify.MessageGone || p.Reposts >= maxReposts {
			return err
		}
		if err := d.s.store.Lost(ctx, d.c, store.PartDetails); err != nil {
			return err
		}
		d.forget(store.PartDetails)
	}
	ref, found, err := d.reply(ctx, store.PartDetails, card, m, revision)
	if err != nil || !found {
		return err
	}
	return d.refresh(ctx, store.PartDetails, ref, m, revision)
}

func (d *delivery) reply(
	ctx context.Context, part string, card notify.Ref, m notify.Message, revision int64,
) (notify.Ref, bool, error) {
	m.Part = part
	return d.post(ctx, part, revision, func(ctx context.Context) (notify.Ref, bool, error) {
		return d.findReply(ctx, card, part)
	}, func(ctx context.Context) (notify.Ref, error) {
		return d.send(ctx, opReply, func(ctx context.Context) (notify.Ref, error) {
			return d.parts.Notifier.Reply(ctx, card, m)
		})
	})
}

// merged is the address of a line of the thread that was not posted because a newer one came before its turn.
const merged = "merged"

// once posts the messages that are said once: a changed verdict, the end, notes. Of several changes only the newest is told:
// those that waited for the chat are not replayed.
func (d *delivery) once(ctx context.Context, card notify.Ref) error {
	var waiting []store.Post
	last := -1
	for _, p := range d.c.Posts {
		if len(p.Body) == 0 || p.Ref.ID != "" || p.Shown > 0 {
			continue
		}
		if strings.HasPrefix(p.Part, changePart) {
			last = len(waiting)
		}
		waiting = append(waiting, p)
	}
	for i, p := range waiting {
		if strings.HasPrefix(p.Part, changePart) && i < last && !p.Doubtful() {
			if err := d.s.store.Posted(ctx, d.c, p.Part, store.Ref{Channel: card.Channel, ID: merged}, 1, d.s.now()); err != nil {
				return err
			}
			continue
		}
		var m notify.Message
		if err := json.Unmarshal(p.Body, &m); err != nil {
			return fmt.Errorf("read message %q: %w", p.Part, err)
		}
		if _, _, err := d.reply(ctx, p.Part, card, m, 1); err != nil {
			return err
		}
	}
	return nil
}

// picture uploads the chart into the thread, once, when there is something to see. It has its own time and never holds
// the texts up: a failure costs one line in the thread.
func (d *delivery) picture(ctx context.Context, card notify.Ref, r triage.Report, m notify.Message, set settings) error {
	artist, ok := d.parts.Notifier.(notify.Illustrator)
	if !ok || !d.parts.Pictures || d.parts.picturesRefused.Load() || r.Verdict == triage.NoBottleneck {
		return nil
	}
	if p := d.c.Post(partPicture); p.Ref.ID != "" || p.Doubtful() {
		return nil // Uploaded, or perhaps so: a second copy is worse than none.
	}
	pic, err := chart.Picture(r, m, chart.Options{Language: m.Language, Location: set.zone()})
	if errors.Is(err, chart.ErrNothing) {
		return nil
	}
	if err == nil {
		if err := d.s.store.Intend(ctx, d.c, partPicture, d.s.now()); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, pictureTime)
		err = d.s.call(limited, opUpload, func(ctx context.Context) error { return artist.Illustrate(ctx, card, pic) })
		cancel()
	}
	if err == nil {
		return d.drawn(ctx, card, "uploaded")
	}
	e, _ := errors.AsType[*notify.Error](err)
	if e != nil && e.Reason == notify.RateLimited && e.Retryable && d.c.Attempts < maxPictureTries {
		// The texts are out: only the picture is left for the next time.
		return errors.Join(err, d.s.store.Unposted(ctx, d.c, partPicture))
	}
	d.s.log.Warn("picture not uploaded", zap.String("incident_id", d.c.IncidentID), zap.Error(err))
	if err := d.drawn(ctx, card, "failed"); err != nil {
		return err
	}
	if e != nil && e.Reason == notify.Auth {
		// The app may not upload: that is so for all incidents, and no news for the people in the thread.
		d.parts.picturesRefused.Store(true)
		return nil
	}
	why := "error"
	if e != nil {
		why = string(e.Reason)
	}
	line := notify.NewPictureFailed(d.c.IncidentID, m.Language, why)
	if _, _, err := d.reply(ctx, partPictureFailed, card, line, 1); err != nil {
		d.s.log.Warn("missing picture not told", zap.String("incident_id", d.c.IncidentID), zap.Error(err))
	}
	return nil
}

func (d *delivery) drawn(ctx context.Context, card notify.Ref, how string) error {
	return d.s.store.Posted(ctx, d.c, partPicture, store.Ref{Channel: card.Channel, ID: how}, 1, d.s.now())
}
