package fakeslack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Message is a message as Slack keeps it. Edits hold what it said before, oldest first.
type Message struct {
	Channel   string          `json:"channel"`
	TS        string          `json:"ts"`
	ThreadTS  string          `json:"thread_ts,omitempty"`
	User      string          `json:"user"`
	Text      string          `json:"text"`
	Blocks    json.RawMessage `json:"blocks,omitempty"`
	Metadata  *Metadata       `json:"metadata,omitempty"`
	Broadcast bool            `json:"reply_broadcast,omitempty"`
	// Unfurl is true unless the post switched both link and media previews off.
	Unfurl  bool   `json:"unfurl,omitempty"`
	Edits   []Edit `json:"edits,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
	Files   []File `json:"files,omitempty"`
	// To is the only user who sees it; set on ephemeral messages.
	To string `json:"to,omitempty"`
}

// Edit is one earlier state of a message.
type Edit struct {
	At     time.Time       `json:"at"`
	Text   string          `json:"text"`
	Blocks json.RawMessage `json:"blocks,omitempty"`
}

// Metadata is what an app hangs onto a message.
type Metadata struct {
	EventType    string         `json:"event_type"`
	EventPayload map[string]any `json:"event_payload"`
}

// File is an uploaded file.
type File struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	AltText  string `json:"alt_txt"`
	MimeType string `json:"mimetype"`
	Content  []byte `json:"-"`
}

// Channel is a conversation.
type Channel struct {
	ID   string
	Name string // Without "#".
	// Absent is true while the bot is not a member: posts are refused.
	Absent   bool
	Archived bool
	// Private channels hide from bots that are not in them.
	Private bool

	messages []*Message
	allowed  time.Time // When the rate limit lets the next call through.
	tokens   float64
}

// Markup is what Slack makes of the message's texts.
func (m Message) Markup() Markup { return ReadMarkup(m.Text, m.Blocks) }

// Kind is the kind in the message's metadata, or empty.
func (m Message) Kind() string {
	if m.Metadata == nil {
		return ""
	}
	kind, _ := m.Metadata.EventPayload["kind"].(string)
	return kind
}

// AddChannel adds or replaces a channel.
func (s *Server) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[c.ID] = &c
}

// Roots returns the messages of a channel that stand in the channel itself, oldest first, deleted ones left out.
func (s *Server) Roots(channel string) []Message {
	return s.find(channel, func(m *Message) bool { return m.ThreadTS == "" && m.To == "" })
}

// Thread returns the replies to a message, oldest first.
func (s *Server) Thread(channel, ts string) []Message {
	return s.find(channel, func(m *Message) bool { return m.ThreadTS == ts && m.To == "" })
}

// Ephemeral returns what only single users see, oldest first.
func (s *Server) Ephemeral(channel string) []Message {
	return s.find(channel, func(m *Message) bool { return m.To != "" })
}

func (s *Server) find(channel string, want func(*Message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	c := s.channel(channel)
	if c == nil {
		return nil
	}
	for _, m := range c.messages {
		if !m.Deleted && want(m) {
			out = append(out, clone(m))
		}
	}
	return out
}

func clone(m *Message) Message {
	out := *m
	out.Edits = slices.Clone(m.Edits)
	out.Files = slices.Clone(m.Files)
	return out
}

// Delete removes a message, as a person with the right to do so.
func (s *Server) Delete(channel, ts string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.message(channel, ts)
	if m == nil {
		return false
	}
	m.Deleted = true
	return true
}

// Say posts a message as a person.
func (s *Server) Say(channel, user, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channel(channel)
	if c == nil {
		return ""
	}
	m := &Message{Channel: c.ID, TS: s.nextTS(), User: user, Text: text}
	c.messages = append(c.messages, m)
	return m.TS
}

// channel finds a channel by id or, as chat.postMessage does, by name. The caller holds the lock.
func (s *Server) channel(ref string) *Channel {
	if c, ok := s.channels[ref]; ok {
		return c
	}
	name := strings.TrimPrefix(ref, "#")
	for _, c := range s.channels {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (s *Server) message(channel, ts string) *Message {
	c := s.channel(channel)
	if c == nil {
		return nil
	}
	for _, m := range c.messages {
		if m.TS == ts && !m.Deleted {
			return m
		}
	}
	return nil
}

// nextTS is the time of the call in microseconds, moved on until it is unique.
func (s *Server) nextTS() string {
	micros := max(s.now().UnixMicro(), s.lastTS+1)
	s.lastTS = micros
	return fmt.Sprintf("%d.%06d", micros/1_000_000, micros%1_000_000)
}
