package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// The states of a conversation.
const (
	Active  = "active"  // Delivered when it has news.
	Shadow  = "shadow"  // Kept, never delivered.
	Dead    = "dead"    // Given up: the channel or the token does not work.
	Expired = "expired" // Its news became too old before they could be delivered.
)

// Ref is the address that a chat gave to a message.
type Ref struct{ Channel, ID string }

// Conversation is one incident in one channel.
type Conversation struct {
	ID         int64
	IncidentID string
	Channel    string
	Settings   json.RawMessage
	State      string
	Wanted     int64     // The newest revision.
	Shown      int64     // The revision that the channel shows.
	WantedAt   time.Time // Since when it has had news.
	NextAt     time.Time
	Attempts   int    // Since the last success.
	Reason     string // Class of the last failure.
	Error      string
	Posts      []Post // By the time they were wanted.

	owner string
}

// Post is one message of a conversation.
type Post struct {
	Part string // "card", "details", or a name that is used once: the body is then fixed.
	// Body is the message, for those that are not rendered from the incident.
	Body json.RawMessage
	// Shown is the revision that it shows; 0: none, or it is not known which. Parts with a body are at 1 once posted.
	Shown     int64
	Ref       Ref       // Where it is, once posted.
	IntentAt  time.Time // When somebody was about to post it; zero once Ref is known.
	Reposts   int       // How often it was posted afresh because it was deleted.
	CreatedAt time.Time
}

// The parts that are rendered from the incident.
const (
	PartCard    = "card"
	PartDetails = "details"
)

// Doubtful says that the message was perhaps posted, by somebody who did not live to tell.
func (p Post) Doubtful() bool { return !p.IntentAt.IsZero() && p.Ref.ID == "" }

// Post returns a part of the conversation, which may not have been posted yet.
func (c Conversation) Post(part string) Post {
	for _, p := range c.Posts {
		if p.Part == part {
			return p
		}
	}
	return Post{Part: part}
}

// want makes a revision of the incident wanted in a channel.
func (t *tx) want(ctx context.Context, incident string, target Target, revision, now int64) error {
	state, settings := Active, string(target.Settings)
	if target.Shadow {
		state = Shadow
	}
	if settings == "" {
		settings = "{}"
	}
	var id int64
	// A dead conversation stays so: it is revived when the cause is mended. One that expired has news again.
	if _, err := t.one(ctx, []any{&id}, `INSERT INTO conversations (incident_id, channel, target, state, wanted, wanted_at,
		next_at) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (incident_id, channel) DO UPDATE SET
			wanted_at = CASE WHEN conversations.shown = conversations.wanted OR conversations.state = 'expired'
				THEN excluded.wanted_at ELSE conversations.wanted_at END,
			state = CASE WHEN conversations.state = 'dead' THEN 'dead' ELSE excluded.state END,
			wanted = excluded.wanted, target = excluded.target
		RETURNING id`, incident, target.Channel, settings, state, revision, now, now); err != nil {
		return err
	}
	if target.Changed == nil {
		return nil
	}
	return t.addPost(ctx, id, fmt.Sprintf("change-%d", revision), target.Changed, now)
}

func (t *tx) addPost(ctx context.Context, conversation int64, part string, body json.RawMessage, now int64) error {
	return t.exec(ctx, `INSERT INTO posts (conversation_id, part, body, created_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (conversation_id, part) DO NOTHING`, conversation, part, string(body), now)
}

// AddNote adds a message to the threads of an incident. The name makes it happen once.
func (s *Store) AddNote(ctx context.Context, incident, name string, body json.RawMessage, now time.Time) error {
	return s.do(ctx, "add note", func(ctx context.Context, t *tx) error {
		var ids []int64
		if err := t.each(ctx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}, `SELECT id FROM conversations WHERE incident_id = ? AND state = 'active'`, incident); err != nil {
			return err
		}
		for _, id := range ids {
			if err := t.addPost(ctx, id, "note-"+name, body, millis(now)); err != nil {
				return err
			}
			// Shown falls back by one, so that there are news without a new revision.
			if err := t.exec(ctx, `UPDATE conversations SET wanted_at = CASE WHEN shown = wanted THEN ? ELSE wanted_at END,
				shown = CASE WHEN shown = wanted THEN shown - 1 ELSE shown END, next_at = ? WHERE id = ?`, millis(now), millis(now), id); err != nil {
				return err
			}
		}
		return nil
	})
}

const conversationColumns = `id, incident_id, channel, target, state, wanted, shown, wanted_at, next_at, attempts, reason, error,
	owner`

func scanConversation(rows *sql.Rows) (Conversation, error) {
	var c Conversation
	var settings string
	var wantedAt, nextAt int64
	err := rows.Scan(&c.ID, &c.IncidentID, &c.Channel, &settings, &c.State, &c.Wanted, &c.Shown, &wantedAt, &nextAt,
		&c.Attempts, &c.Reason, &c.Error, &c.owner)
	c.Settings, c.WantedAt, c.NextAt = json.RawMessage(settings), fromMillis(wantedAt), fromMillis(nextAt)
	return c, err
}

// ClaimConversation takes the conversation whose news have waited longest, of those in which nothing was told yet before the
// others: when a channel takes less than there is to tell, a first message matters more than an edit. found is false when none
// is due.
func (s *Store) ClaimConversation(
	ctx context.Context, owner string, now time.Time, lease time.Duration,
) (c Conversation, found bool, err error) {
	err = s.do(ctx, "claim conversation", func(ctx context.Context, t *tx) error {
		found = false
		if err := t.each(ctx, func(rows *sql.Rows) error {
			var err error
			found = true
			c, err = scanConversation(rows)
			return err
		}, `UPDATE conversations SET owner = ?, lease_until = ?, attempts = attempts + 1 WHERE id = (
				SELECT id FROM conversations WHERE state = 'active' AND shown < wanted AND next_at <= ? AND lease_until <= ?
				ORDER BY CASE WHEN shown > 0 THEN 1 ELSE 0 END, next_at, wanted_at, id LIMIT 1`+s.d.skipLocked+`)
			RETURNING `+conversationColumns, owner, millis(now.Add(lease)), millis(now), millis(now)); err != nil || !found {
			return err
		}
		var err error
		c.Posts, err = t.posts(ctx, c.ID)
		return err
	})
	return c, found, err
}

const postColumns = `part, body, shown, ref_channel, ref_id, intent_at, reposts, created_at`

func scanPost(rows *sql.Rows) (Post, error) {
	var p Post
	var body string
	var intent, created int64
	err := rows.Scan(&p.Part, &body, &p.Shown, &p.Ref.Channel, &p.Ref.ID, &intent, &p.Reposts, &created)
	p.IntentAt, p.CreatedAt = fromMillis(intent), fromMillis(created)
	if body != "" {
		p.Body = json.RawMessage(body)
	}
	return p, err
}

func (t *tx) posts(ctx context.Context, conversation int64) ([]Post, error) {
	var out []Post
	err := t.each(ctx, func(rows *sql.Rows) error {
		p, err := scanPost(rows)
		out = append(out, p)
		return err
	}, `SELECT `+postColumns+` FROM posts WHERE conversation_id = ? AND done = 0 ORDER BY created_at, part`, conversation)
	return out, err
}

// mine is the condition that a conversation is still its claimer's.
const mine = ` WHERE id = ? AND owner = ?`

// RenewConversation prolongs the lease of a conversation.
func (s *Store) RenewConversation(ctx context.Context, c Conversation, until time.Time) error {
	return s.do(ctx, "renew lease", func(ctx context.Context, t *tx) error {
		return t.must(ctx, ErrLeaseLost, `UPDATE conversations SET lease_until = ?`+mine, millis(until), c.ID, c.owner)
	})
}

// check makes sure that the conversation is the claimer's, and keeps it so until the commit.
func (t *tx) check(ctx context.Context, c Conversation) error {
	return t.must(ctx, ErrLeaseLost, `UPDATE conversations SET owner = owner`+mine, c.ID, c.owner)
}

// Intend notes that a part is about to be posted. It must be called, and have returned, before the chat is asked to.
func (s *Store) Intend(ctx context.Context, c Conversation, part string, now time.Time) error {
	return s.do(ctx, "note intent", func(ctx context.Context, t *tx) error {
		if err := t.check(ctx, c); err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO posts (conversation_id, part, intent_at, created_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (conversation_id, part) DO UPDATE SET intent_at = excluded.intent_at`,
			c.ID, part, millis(now), millis(now))
	})
}

// Unposted takes an intent back: the chat has said that the message was not posted, or it was looked for and is not there.
func (s *Store) Unposted(ctx context.Context, c Conversation, part string) error {
	return s.do(ctx, "drop intent", func(ctx context.Context, t *tx) error {
		if err := t.check(ctx, c); err != nil {
			return err
		}
		return t.exec(ctx, `UPDATE posts SET intent_at = 0 WHERE conversation_id = ? AND part = ? AND ref_id = ''`, c.ID, part)
	})
}

// Posted notes that a part shows a revision, and where it is. Revision 0 says that it is there, but not what it shows.
func (s *Store) Posted(ctx context.Context, c Conversation, part string, ref Ref, revision int64, now time.Time) error {
	return s.do(ctx, "note message", func(ctx context.Context, t *tx) error {
		if err := t.check(ctx, c); err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO posts (conversation_id, part, ref_channel, ref_id, shown, created_at)
			VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (conversation_id, part) DO UPDATE SET ref_channel = excluded.ref_channel,
			ref_id = excluded.ref_id, shown = excluded.shown, intent_at = 0`, c.ID, part, ref.Channel, ref.ID, revision, millis(now))
	})
}

// Lost notes that a message is gone from the chat. What hangs below a lost card is gone with it.
func (s *Store) Lost(ctx context.Context, c Conversation, part string) error {
	return s.do(ctx, "note lost message", func(ctx context.Context, t *tx) error {
		if err := t.check(ctx, c); err != nil {
			return err
		}
		if part == PartCard {
			if err := t.exec(ctx, `UPDATE posts SET ref_channel = '', ref_id = '', shown = 0, intent_at = 0
				WHERE conversation_id = ? AND part = ?`, c.ID, PartDetails); err != nil {
				return err
			}
		}
		return t.exec(ctx, `UPDATE posts SET ref_channel = '', ref_id = '', shown = 0, intent_at = 0, reposts = reposts + 1
			WHERE conversation_id = ? AND part = ?`, c.ID, part)
	})
}

// Delivered gives a conversation back after everything up to a revision was delivered. News are delivered again not before
// next, notes at once.
func (s *Store) Delivered(ctx context.Context, c Conversation, revision int64, now, next time.Time) error {
	return s.do(ctx, "finish delivery", func(ctx context.Context, t *tx) error {
		if err := t.must(ctx, ErrLeaseLost, `UPDATE conversations SET shown = ?, next_at = ?, attempts = 0, owner = '',
			lease_until = 0, reason = '', error = '', wanted_at = CASE WHEN wanted > ? THEN ? ELSE wanted_at END`+mine,
			revision, millis(next), revision, millis(now), c.ID, c.owner); err != nil {
			return err
		}
		// Messages that are said once need not be read again.
		if err := t.exec(ctx, `UPDATE posts SET done = 1, body = '-' WHERE conversation_id = ? AND body <> ''
			AND ref_id <> '' AND done = 0 AND part <> 'card'`, c.ID); err != nil {
			return err
		}
		// One that was added while this delivery was under way is news without a new revision.
		return t.exec(ctx, `UPDATE conversations SET shown = shown - 1, wanted_at = ?, next_at = ? WHERE id = ?
			AND shown >= wanted AND EXISTS (SELECT 1 FROM posts WHERE conversation_id = conversations.id AND body <> ''
			AND ref_id = '' AND done = 0)`, millis(now), millis(now), c.ID)
	})
}

// ChannelID returns the id that the chat gave to a channel when it took a message for it; empty when it has not yet.
func (s *Store) ChannelID(ctx context.Context, channel string) (id string, err error) {
	err = s.query(ctx, "look up channel", func(rows *sql.Rows) error { return rows.Scan(&id) },
		`SELECT p.ref_channel FROM posts p JOIN conversations c ON c.id = p.conversation_id
		 WHERE c.channel = ? AND p.ref_channel <> '' ORDER BY p.created_at DESC LIMIT 1`, channel)
	return id, err
}

// Failure says why a delivery failed and what becomes of the conversation.
type Failure struct {
	Reason string // A class: a metric label.
	Err    error
	Next   time.Time // When to try again.
	State  string    // Active, Dead or Expired.
}

// Undelivered gives a conversation back after a failure.
func (s *Store) Undelivered(ctx context.Context, c Conversation, f Failure) error {
	text := ""
	if f.Err != nil {
		text = cut(f.Err.Error())
	}
	return s.do(ctx, "note failed delivery", func(ctx context.Context, t *tx) error {
		return t.must(ctx, ErrLeaseLost, `UPDATE conversations SET next_at = ?, state = ?, owner = '', lease_until = 0,
			reason = ?, error = ?`+mine, millis(f.Next), cmp.Or(f.State, Active), f.Reason, text, c.ID, c.owner)
	})
}

// Conversations lists the conversations of an incident with their posts.
func (s *Store) Conversations(ctx context.Context, incident string) ([]Conversation, error) {
	return s.conversations(ctx, `SELECT `+conversationColumns+` FROM conversations WHERE incident_id = ? ORDER BY id`, incident)
}

// DeadConversations lists the conversations that were given up.
func (s *Store) DeadConversations(ctx context.Context) ([]Conversation, error) {
	return s.conversations(ctx, `SELECT `+conversationColumns+` FROM conversations WHERE state IN ('dead', 'expired')
		ORDER BY id LIMIT 1000`)
}

// PendingConversations lists the conversations that have news.
func (s *Store) PendingConversations(ctx context.Context) ([]Conversation, error) {
	return s.conversations(ctx, `SELECT `+conversationColumns+` FROM conversations WHERE state = 'active' AND shown < wanted
		ORDER BY next_at, id LIMIT 1000`)
}

func (s *Store) conversations(ctx context.Context, q string, args ...any) ([]Conversation, error) {
	var out []Conversation
	err := s.query(ctx, "list conversations", func(rows *sql.Rows) error {
		c, err := scanConversation(rows)
		out = append(out, c)
		return err
	}, q, args...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		err := s.query(ctx, "list posts", func(rows *sql.Rows) error {
			p, err := scanPost(rows)
			out[i].Posts = append(out[i].Posts, p)
			return err
		}, `SELECT `+postColumns+` FROM posts WHERE conversation_id = ? ORDER BY created_at, part`, out[i].ID)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ConversationAt returns the conversation that a message belongs to.
func (s *Store) ConversationAt(ctx context.Context, ref Ref) (Conversation, error) {
	all, err := s.conversations(ctx, `SELECT `+conversationColumns+` FROM conversations WHERE id IN (
		SELECT conversation_id FROM posts WHERE ref_channel = ? AND ref_id = ?)`, ref.Channel, ref.ID)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("message %s in %s: %w", ref.ID, ref.Channel, ErrNotFound)
	}
	if err != nil {
		return Conversation{}, err
	}
	return slices.MinFunc(all, func(a, b Conversation) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// ReviveConversation delivers a conversation that was given up. Id 0 revives all that are dead, as after a new token; those
// that expired are revived by their id only. It returns how many there were.
func (s *Store) ReviveConversation(ctx context.Context, id int64, now time.Time) (n int64, err error) {
	err = s.do(ctx, "revive conversation", func(ctx context.Context, t *tx) error {
		const set = `UPDATE conversations SET state = 'active', attempts = 0, next_at = ?, wanted_at = ? `
		if id == 0 {
			n, err = t.count(ctx, set+`WHERE state = 'dead'`, millis(now), millis(now))
			return err
		}
		n, err = t.count(ctx, set+`WHERE id = ? AND state IN ('dead', 'expired')`, millis(now), millis(now), id)
		if err == nil && n == 0 {
			err = fmt.Errorf("dead conversation %d: %w", id, ErrNotFound)
		}
		return err
	})
	return n, err
}
