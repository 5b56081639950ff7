package fakeslack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

var tsPattern = regexp.MustCompile(`^\d{10}\.\d{6}$`)

// maxMessage is the length at which Slack refuses or cuts a text.
const maxMessage = 40_000

func (s *Server) authTest(*request) answer {
	return answer{
		"url": "https://example.slack.com/", "team": "Example", "team_id": "T0EXAMPLE",
		"user": "vllm-triage", "user_id": BotUser, "bot_id": "B0TRIAGE",
	}
}

// open finds the channel of a call that wants to write to it.
func (s *Server) open(req *request) (*Channel, answer) {
	c := s.channel(req.form("channel"))
	switch {
	case c == nil, c.Private && c.Absent:
		return nil, fail("channel_not_found")
	case c.Archived:
		return nil, fail("is_archived")
	case c.Absent && !slices.Contains(s.o.Scopes, "chat:write.public"):
		return nil, fail("not_in_channel")
	}
	return c, nil
}

// content checks text, blocks and metadata of a call.
func (s *Server) content(req *request, m *Message) answer {
	m.Text = req.form("text")
	if b := req.form("blocks"); b != "" && b != "[]" {
		m.Blocks = json.RawMessage(b)
		if s.o.NoCharts && strings.Contains(b, `"data_visualization"`) {
			return fail("invalid_blocks", "[ERROR] unsupported type: data_visualization [json-pointer:/blocks]")
		}
		if code, messages := Validate(m.Blocks); code != "" {
			return fail(code, messages...)
		}
	}
	if m.Text == "" && m.Blocks == nil && req.form("attachments") == "" {
		return fail("no_text")
	}
	if utf8.RuneCountInString(m.Text) > maxMessage {
		return fail("msg_too_long")
	}
	if raw := req.form("metadata"); raw != "" {
		var meta Metadata
		if err := json.Unmarshal([]byte(raw), &meta); err != nil || meta.EventType == "" || meta.EventPayload == nil {
			return fail("invalid_metadata_format")
		}
		if len(raw) > 8000 {
			return fail("metadata_too_large")
		}
		m.Metadata = &meta
	}
	for _, v := range ReadMarkup(m.Text, m.Blocks).Violations {
		s.violation = append(s.violation, req.URL.Path+": "+v)
	}
	return nil
}

func (s *Server) postMessage(req *request) answer {
	c, bad := s.open(req)
	if bad != nil {
		return bad
	}
	m := &Message{
		Channel: c.ID, User: BotUser, Broadcast: req.form("reply_broadcast") == "true",
		Unfurl: req.form("unfurl_links") != "false" || req.form("unfurl_media") != "false",
	}
	if bad := s.content(req, m); bad != nil {
		return bad
	}
	if ts := req.form("thread_ts"); ts != "" {
		parent, code := c.parent(ts)
		if code != "" {
			return fail(code)
		}
		if !parent.Deleted {
			m.ThreadTS = ts
		} // Else Slack posts it in the channel and says so only by leaving thread_ts out (slack-go/slack#1571).
	}
	m.TS = s.nextTS()
	c.messages = append(c.messages, m)
	return answer{"channel": c.ID, "ts": m.TS, "message": shape(m, true)}
}

// parent finds the root that a reply wants to go under.
func (c *Channel) parent(ts string) (*Message, string) {
	if !tsPattern.MatchString(ts) {
		return nil, "invalid_thread_ts"
	}
	for _, m := range c.messages {
		if m.TS == ts {
			if m.ThreadTS != "" {
				return nil, "cannot_reply_to_message"
			}
			return m, ""
		}
	}
	return nil, "thread_not_found"
}

func (s *Server) update(req *request) answer {
	c, bad := s.open(req)
	if bad != nil {
		return bad
	}
	m := s.message(c.ID, req.form("ts"))
	switch {
	case m == nil:
		return fail("message_not_found")
	case m.User != BotUser:
		return fail("cant_update_message")
	}
	next := &Message{Metadata: m.Metadata}
	if bad := s.content(req, next); bad != nil {
		return bad
	}
	m.Edits = append(m.Edits, Edit{At: s.now(), Text: m.Text, Blocks: m.Blocks})
	m.Text, m.Blocks, m.Metadata = next.Text, next.Blocks, next.Metadata
	return answer{"channel": c.ID, "ts": m.TS, "text": m.Text, "message": shape(m, true)}
}

func (s *Server) deleteMessage(req *request) answer {
	m := s.message(req.form("channel"), req.form("ts"))
	switch {
	case m == nil:
		return fail("message_not_found")
	case m.User != BotUser:
		return fail("cant_delete_message")
	}
	m.Deleted = true
	return answer{"channel": m.Channel, "ts": m.TS}
}

func (s *Server) postEphemeral(req *request) answer {
	c, bad := s.open(req)
	if bad != nil {
		return bad
	}
	m := &Message{Channel: c.ID, User: BotUser, To: req.form("user"), ThreadTS: req.form("thread_ts")}
	if m.To == "" {
		return fail("user_not_in_channel")
	}
	if bad := s.content(req, m); bad != nil {
		return bad
	}
	m.TS = s.nextTS()
	c.messages = append(c.messages, m)
	return answer{"message_ts": m.TS}
}

func (s *Server) permalink(req *request) answer {
	m := s.message(req.form("channel"), req.form("message_ts"))
	if m == nil {
		return fail("message_not_found")
	}
	return answer{"channel": m.Channel, "permalink": "https://example.slack.com/archives/" + m.Channel + "/p" + m.TS}
}

func (s *Server) history(req *request) answer {
	return s.page(req, func(m *Message) bool { return m.ThreadTS == "" || m.Broadcast }, true)
}

func (s *Server) replies(req *request) answer {
	ts := req.form("ts")
	if s.message(req.form("channel"), ts) == nil {
		return fail("thread_not_found")
	}
	return s.page(req, func(m *Message) bool { return m.ThreadTS == ts || m.TS == ts }, false)
}

// page answers with one page of messages. history is newest first, replies are oldest first. Slack wants ids here,
// names are not found.
func (s *Server) page(req *request, want func(*Message) bool, newestFirst bool) answer {
	c, ok := s.channels[req.form("channel")]
	switch {
	case !ok:
		return fail("channel_not_found")
	case c.Absent:
		return fail("not_in_channel")
	}
	var all []*Message
	for _, m := range c.messages {
		if !m.Deleted && m.To == "" && want(m) && m.TS >= req.form("oldest") {
			all = append(all, m)
		}
	}
	if newestFirst {
		slices.Reverse(all)
	}
	limit := 100
	if n, err := strconv.Atoi(req.form("limit")); err == nil && n > 0 {
		limit = min(n, 1000)
	}
	start := 0
	if n, err := strconv.Atoi(req.form("cursor")); err == nil {
		start = min(n, len(all))
	}
	end := min(start+limit, len(all))
	messages := []answer{}
	for _, m := range all[start:end] {
		messages = append(messages, shape(m, req.form("include_all_metadata") == "1" || req.form("include_all_metadata") == "true"))
	}
	a := answer{"messages": messages, "has_more": end < len(all)}
	if end < len(all) {
		a["response_metadata"] = answer{"next_cursor": strconv.Itoa(end)}
	}
	return a
}

// shape is a message as Slack returns it.
func shape(m *Message, metadata bool) answer {
	a := answer{"type": "message", "ts": m.TS, "user": m.User, "text": m.Text, "bot_id": "B0TRIAGE"}
	if m.ThreadTS != "" {
		a["thread_ts"] = m.ThreadTS
	}
	if m.Blocks != nil {
		a["blocks"] = m.Blocks
	}
	if metadata && m.Metadata != nil {
		a["metadata"] = m.Metadata
	}
	if n := len(m.Edits); n > 0 {
		a["edited"] = answer{"user": m.User, "ts": fmt.Sprintf("%d.000000", m.Edits[n-1].At.Unix())}
	}
	return a
}

// SetUser tells users.info a person's time zone, for example "Asia/Seoul".
func (s *Server) SetUser(id, zone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[id] = zone
}

func (s *Server) userInfo(req *request) answer {
	id := req.form("user")
	zone, ok := s.users[id]
	if !ok {
		return fail("user_not_found")
	}
	offset := 0
	if loc, err := time.LoadLocation(zone); err == nil {
		_, offset = s.now().In(loc).Zone()
	}
	return answer{"user": answer{"id": id, "name": id, "tz": zone, "tz_offset": offset}}
}
