package fakeslack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// BotUser is the user that the app's messages come from.
const BotUser = "U0TRIAGE"

// DefaultChannel is the channel that every server begins with.
const DefaultChannel = "C0ALERTS"

// Options describe the workspace.
type Options struct {
	// Token is the bot token that calls must carry; empty takes any that begins with "xoxb-".
	Token string
	// Scopes are what the app was granted; nil grants AllScopes.
	Scopes []string
	// Now is the workspace's clock; nil is time.Now.
	Now func() time.Time
	// RateEvery is how often a channel takes a message once Burst are used up; 0 switches the limit off.
	RateEvery time.Duration
	Burst     int
	// FilePolls is how often files.info answers without a type before an upload is processed.
	FilePolls int
	// NoCharts refuses data_visualization blocks, as workspaces do that do not have them yet.
	NoCharts bool
}

// AllScopes are the scopes of the methods that the server knows.
func AllScopes() []string {
	return []string{
		"chat:write", "chat:write.public", "commands", "files:write", "files:read", "channels:history", "groups:history",
		"users:read",
	}
}

// Server is the workspace. It serves the Web API under /api/, uploads under /upload/ and response URLs under /response/.
// Create it with New; it is safe for concurrent use.
type Server struct {
	o   Options
	now func() time.Time

	mu        sync.Mutex
	channels  map[string]*Channel
	files     map[string]*upload
	views     []View
	responses map[string]*response
	triggers  map[string]time.Time
	users     map[string]string
	faults    []*Fault
	calls     []Call
	violation []string
	lastTS    int64
	serial    int
	closed    chan struct{}
	closeOnce sync.Once
}

// Call is one request that the server answered.
type Call struct {
	Method  string
	Channel string
	At      time.Time
	// Error is the error code of the answer, an HTTP status, "hang" or "drop"; empty when it went well.
	Error string
	// Kind is the kind in the metadata of a post.
	Kind string
}

// New returns a workspace with the channel DefaultChannel, in which the bot is a member.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Scopes == nil {
		o.Scopes = AllScopes()
	}
	return &Server{
		o: o, now: o.Now,
		channels:  map[string]*Channel{DefaultChannel: {ID: DefaultChannel, Name: "vllm-alerts"}},
		files:     map[string]*upload{},
		responses: map[string]*response{},
		triggers:  map[string]time.Time{},
		users:     map[string]string{},
		closed:    make(chan struct{}),
	}
}

// Close lets go of requests that hang. It does not close listeners: those belong to who opened them.
func (s *Server) Close() { s.closeOnce.Do(func() { close(s.closed) }) }

// Calls returns all requests so far, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Violations returns what was wrong with the texts of messages that were taken nevertheless: characters that should
// have been escaped, links that are no http or https. Slack shows such messages, wrongly.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violation)
}

// methods maps the names of Web API methods to their handlers and the scopes of which one is needed.
func (s *Server) methods() map[string]method {
	return map[string]method{
		"auth.test":                    {run: s.authTest},
		"chat.postMessage":             {run: s.postMessage, scopes: []string{"chat:write"}, limited: true},
		"chat.update":                  {run: s.update, scopes: []string{"chat:write"}, limited: true},
		"chat.delete":                  {run: s.deleteMessage, scopes: []string{"chat:write"}},
		"chat.postEphemeral":           {run: s.postEphemeral, scopes: []string{"chat:write"}},
		"chat.getPermalink":            {run: s.permalink},
		"conversations.history":        {run: s.history, scopes: []string{"channels:history", "groups:history"}},
		"conversations.replies":        {run: s.replies, scopes: []string{"channels:history", "groups:history"}},
		"files.getUploadURLExternal":   {run: s.uploadURL, scopes: []string{"files:write"}},
		"files.completeUploadExternal": {run: s.completeUpload, scopes: []string{"files:write"}},
		"files.info":                   {run: s.fileInfo, scopes: []string{"files:read"}},
		"users.info":                   {run: s.userInfo, scopes: []string{"users:read"}},
		"views.open":                   {run: s.openView},
		"views.update":                 {run: s.updateView},
	}
}

type method struct {
	run    func(*request) answer
	scopes []string
	// limited methods count against the channel's rate.
	limited bool
}

type request struct {
	*http.Request
	form func(string) string
}

// answer is the JSON of a reply; ok is added.
type answer map[string]any

func fail(code string, messages ...string) answer {
	a := answer{"error": code}
	if len(messages) > 0 {
		a["errors"] = messages
		a["response_metadata"] = answer{"messages": messages}
	}
	return a
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 32<<20)
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/"):
		s.api(w, r, strings.TrimPrefix(r.URL.Path, "/api/"))
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		s.takeUpload(w, r, strings.TrimPrefix(r.URL.Path, "/upload/"))
	case strings.HasPrefix(r.URL.Path, "/response/"):
		s.respond(w, r, strings.TrimPrefix(r.URL.Path, "/response/"))
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) api(w http.ResponseWriter, r *http.Request, name string) {
	req, err := parse(r)
	if err != nil {
		writeJSON(w, fail("invalid_form_data", err.Error()))
		return
	}
	call := Call{Method: name, Channel: req.form("channel"), At: s.now(), Kind: kindOf(req.form("metadata"))}
	f := s.fault(name)
	if f != nil && f.before(w, r, s.closed) {
		s.record(call, f.label())
		return
	}
	a, status := s.answer(name, req)
	if code, _ := a["error"].(string); code != "" {
		s.record(call, code)
	} else {
		s.record(call, map[bool]string{true: "drop"}[f != nil])
	}
	if f != nil { // It was done, and nobody will hear of it.
		dropConnection(w)
		return
	}
	w.Header().Set("X-Oauth-Scopes", strings.Join(s.o.Scopes, ","))
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", fmt.Sprint(a["retry_after"]))
		w.WriteHeader(status)
	}
	writeJSON(w, a)
}

// answer does what a call asks for.
func (s *Server) answer(name string, req *request) (answer, int) {
	m, ok := s.methods()[name]
	if !ok {
		return fail("unknown_method"), http.StatusOK
	}
	if code := s.authorise(req); code != "" {
		return fail(code), http.StatusOK
	}
	if len(m.scopes) > 0 && !slices.ContainsFunc(m.scopes, func(x string) bool { return slices.Contains(s.o.Scopes, x) }) {
		a := fail("missing_scope")
		a["needed"], a["provided"] = m.scopes[0], strings.Join(s.o.Scopes, ",")
		return a, http.StatusOK
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.limited {
		if wait := s.limit(s.channel(req.form("channel"))); wait > 0 {
			a := fail("ratelimited")
			a["retry_after"] = int((wait + time.Second - 1) / time.Second)
			return a, http.StatusTooManyRequests
		}
	}
	return m.run(req), http.StatusOK
}

func (s *Server) authorise(req *request) string {
	token := req.form("token")
	if h := req.Header.Get("Authorization"); h != "" {
		token = strings.TrimPrefix(h, "Bearer ")
	}
	switch {
	case token == "":
		return "not_authed"
	case s.o.Token != "" && token != s.o.Token, !strings.HasPrefix(token, "xoxb-"):
		return "invalid_auth"
	}
	return ""
}

// limit takes one message from a channel's allowance and returns how long to wait when there is none.
func (s *Server) limit(c *Channel) time.Duration {
	if s.o.RateEvery <= 0 || c == nil {
		return 0
	}
	now := s.now()
	burst := float64(max(s.o.Burst, 1))
	if c.allowed.IsZero() {
		c.tokens = burst
	} else {
		c.tokens = min(burst, c.tokens+float64(now.Sub(c.allowed))/float64(s.o.RateEvery))
	}
	c.allowed = now
	if c.tokens < 1 {
		return time.Duration((1 - c.tokens) * float64(s.o.RateEvery))
	}
	c.tokens--
	return 0
}

func (s *Server) record(c Call, code string) {
	c.Error = code
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// parse reads the arguments of a call, a form or JSON.
func parse(r *http.Request) (*request, error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, fmt.Errorf("decode body: %w", err)
		}
		return &request{Request: r, form: func(k string) string {
			switch v := body[k].(type) {
			case nil:
				return ""
			case string:
				return v
			default:
				b, err := json.Marshal(v)
				if err != nil {
					return ""
				}
				return string(b)
			}
		}}, nil
	}
	if err := r.ParseForm(); err != nil {
		return nil, fmt.Errorf("parse form: %w", err)
	}
	return &request{Request: r, form: r.Form.Get}, nil
}

func writeJSON(w http.ResponseWriter, a answer) {
	a["ok"] = a["error"] == nil
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err := json.NewEncoder(w).Encode(a); err != nil {
		return // The client is gone.
	}
}

func kindOf(metadata string) string {
	var m Metadata
	if json.Unmarshal([]byte(metadata), &m) != nil {
		return ""
	}
	kind, _ := m.EventPayload["kind"].(string)
	return kind
}
