package chatops

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"go.uber.org/zap"
)

// maxBody bounds a request of Slack, in bytes. An interaction carries the whole message it comes from.
const maxBody = 256 << 10

// Where Slack calls the service, as in deploy/slack/manifest.yaml.
const (
	PathCommands     = "/slack/commands"
	PathInteractions = "/slack/interactions"
	PathEvents       = "/slack/events"
)

// Routes are the handlers by path; all of them take POST.
func Routes() map[string]func(s *Service, w http.ResponseWriter, r *http.Request) {
	return map[string]func(*Service, http.ResponseWriter, *http.Request){
		PathCommands: (*Service).Slash, PathInteractions: (*Service).Interactivity, PathEvents: (*Service).Events,
	}
}

// Slash answers the slash command over HTTP.
func (s *Service) Slash(w http.ResponseWriter, r *http.Request) {
	body, ok := s.receive(w, r, EndpointSlash)
	if !ok {
		return
	}
	form, err := url.ParseQuery(string(body)) // The body alone: nothing of the address counts.
	if err != nil {
		s.refuse(w, EndpointSlash, &refusal{RejectedPayload, http.StatusBadRequest, errors.New("the body is no form")})
		return
	}
	if form.Get("ssl_check") == "1" {
		return // Slack looks whether the certificate is good.
	}
	in := slash{
		Team: form.Get("team_id"), Channel: form.Get("channel_id"), User: form.Get("user_id"), UserName: form.Get("user_name"),
		Text: form.Get("text"), ResponseURL: form.Get("response_url"),
	}
	if !in.valid() {
		s.refuse(w, EndpointSlash, &refusal{RejectedPayload, http.StatusBadRequest, errors.New("not a slash command")})
		return
	}
	s.finish(w, EndpointSlash, s.onSlash(r.Context(), in))
}

// Interactivity answers buttons, menus and modals over HTTP.
func (s *Service) Interactivity(w http.ResponseWriter, r *http.Request) {
	body, ok := s.receive(w, r, EndpointInteractivity)
	if !ok {
		return
	}
	form, err := url.ParseQuery(string(body))
	if err == nil {
		var o outcome
		if o, err = s.onInteraction(r.Context(), []byte(form.Get("payload"))); err == nil {
			s.finish(w, EndpointInteractivity, o)
			return
		}
	}
	s.refuse(w, EndpointInteractivity, &refusal{RejectedPayload, http.StatusBadRequest, errors.New("not an interaction")})
}

// Events answers the Events API over HTTP: the handshake, and events, of which none is needed.
func (s *Service) Events(w http.ResponseWriter, r *http.Request) {
	body, ok := s.receive(w, r, EndpointEvents)
	if !ok {
		return
	}
	o, err := s.onEvent(body)
	if err != nil {
		s.refuse(w, EndpointEvents, &refusal{RejectedPayload, http.StatusBadRequest, errors.New("not an event")})
		return
	}
	s.finish(w, EndpointEvents, o)
}

// receive reads and verifies a request. The raw body comes first: nothing is parsed that is not signed.
func (s *Service) receive(w http.ResponseWriter, r *http.Request, e Endpoint) (body []byte, ok bool) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, e, &refusal{RejectedMethod, http.StatusMethodNotAllowed, errors.New(r.Method)})
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		bad := &refusal{RejectedUnread, http.StatusBadRequest, err}
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			bad = &refusal{RejectedTooLarge, http.StatusRequestEntityTooLarge, err}
		}
		s.refuse(w, e, bad)
		return nil, false
	}
	if bad := s.verify(r.Header, body); bad != nil {
		s.refuse(w, e, bad)
		return nil, false
	}
	s.isAlive()
	if r.Header.Get("X-Slack-Retry-Num") != "" {
		w.Header().Set("X-Slack-No-Retry", "1")
		s.refuse(w, e, &refusal{RejectedRetry, http.StatusOK, errors.New(r.Header.Get("X-Slack-Retry-Reason"))})
		return nil, false
	}
	return body, true
}

// refuse answers a request that is not handled. The body is short and tells nothing that the sender may not know.
func (s *Service) refuse(w http.ResponseWriter, e Endpoint, bad *refusal) {
	s.reject(e, bad.reason, bad.err)
	if bad.status == http.StatusOK {
		return
	}
	http.Error(w, http.StatusText(bad.status), bad.status)
}

// reject counts and logs a request that is not handled; a flood of them is logged now and then.
func (s *Service) reject(e Endpoint, r Rejection, err error) {
	s.metrics.Rejected(e, r)
	if !s.complain[r].Allow() {
		return
	}
	s.log.Warn("request of slack not handled", zap.String("endpoint", string(e)), zap.String("reason", string(r)), zap.Error(err))
}

// finish sends an answer and does what follows it.
func (s *Service) finish(w http.ResponseWriter, e Endpoint, o outcome) {
	if o.body != nil {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		data, err := json.Marshal(o.body)
		if err != nil {
			s.log.Error("answer not encoded", zap.Error(err))
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(data) // Whoever does not read it is gone.
	}
	// Sent before the rest begins, so that "looking at ..." comes before what was found.
	_ = http.NewResponseController(w).Flush()
	s.follow(e, o)
}

// follow does what comes after an answer.
func (s *Service) follow(e Endpoint, o outcome) {
	if len(o.after) > 0 && !s.run(o.after...) {
		s.reject(e, RejectedClosing, errors.New("shutting down"))
	}
}
