package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/notify"
)

// newTalk makes the conversation around the cards. It asks for the configuration of the moment each time, so that a reload
// reaches it.
func (s *Server) newTalk() (*chatops.Service, error) {
	slack := s.Parts().Config.Slack
	return chatops.New(chatops.Config{
		Settings: s.talkSettings, Store: s.store, APIURL: slack.APIURL, Timeout: time.Duration(slack.Timeout),
		Token:         func() (string, error) { return s.Parts().Config.Slack.BotToken.Read() },
		SigningSecret: func() (string, error) { return s.Parts().Config.Slack.SigningSecret.Read() },
		AppToken:      func() (string, error) { return s.Parts().Config.Slack.AppToken.Read() },
		ResponseHosts: s.responseHosts,
		Sign: func(incident, address string) string {
			return s.signLink(s.Parts(), incident, address)
		},
		NoteLanguage: s.languageOf,
		Noted: func() {
			signal(s.wake)
			signal(s.tell)
		},
		Metrics: s.metrics.talk, Log: s.log.Named("chatops"), Now: s.now,
	})
}

func (s *Server) talkSettings() chatops.Settings {
	p := s.Parts()
	zone, err := time.LoadLocation(cmp.Or(p.Config.Slack.Timezone, "UTC"))
	if err != nil {
		zone = time.UTC
	}
	return chatops.Settings{
		Engine: p.Engine, Knowledge: p.Knowledge, Runbooks: p.Runbooks, Models: p.Models, Silencer: p.Silencer,
		Permissions: p.Config.Slack.Permissions, Language: p.Config.Slack.Language, Zone: zone,
		Message: notify.Options{
			BaseURL: p.Config.Server.ExternalURL, PrometheusURL: p.Config.Links.Prometheus,
			GrafanaExplore: p.Config.Links.GrafanaExplore,
		},
	}
}

// languageOf is the language of an incident's first thread; empty when it has none.
func (s *Server) languageOf(ctx context.Context, incident string) string {
	conversations, err := s.store.Conversations(ctx, incident)
	if err != nil || len(conversations) == 0 {
		return ""
	}
	var set settings
	if err := json.Unmarshal(conversations[0].Settings, &set); err != nil {
		return ""
	}
	return set.Language
}

// signLink makes an address of an incident one that whoever sees the message may open.
func (s *Server) signLink(p *Parts, incident, address string) string {
	u, err := url.Parse(address)
	if err != nil || !p.Config.Pages.Links || s.open {
		return address
	}
	// Rounded to the hour, so that edits of one message do not differ in the link alone.
	expires := s.now().Add(time.Duration(p.Config.Pages.LinkTTL)).Truncate(time.Hour).Add(time.Hour).Unix()
	q := u.Query()
	q.Set(paramExpires, strconv.FormatInt(expires, 10))
	q.Set(paramSignature, s.linkSignature(incident, expires))
	u.RawQuery = q.Encode()
	return u.String()
}

// talkRoutes are what Slack calls. They are open to everybody and answer signed requests only.
func (s *Server) talkRoutes(e *echo.Echo) {
	for path, handle := range chatops.Routes() {
		e.POST(path, func(c echo.Context) error {
			if s.talk == nil {
				return echo.NewHTTPError(http.StatusNotFound, "Slack is not configured")
			}
			handle(s.talk, c.Response(), c.Request())
			return nil
		})
	}
}

// runSocket keeps the connection of Socket Mode until ctx ends, when there is an app token.
func (s *Server) runSocket(ctx context.Context) {
	if s.talk == nil || !s.Parts().Config.Slack.AppToken.IsSet() {
		return
	}
	if err := s.talk.RunSocket(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.log.Error("socket to Slack ended", zap.Error(err))
	}
}

// socketProblem says that Socket Mode is down for longer than it may be; empty otherwise.
func (s *Server) socketProblem() string {
	if s.talk == nil || !s.Parts().Config.Slack.AppToken.IsSet() {
		return ""
	}
	alive := s.talk.LastAlive()
	if alive.Before(s.started) {
		alive = s.started
	}
	if silence := s.now().Sub(alive); silence > chatGrace {
		return "the socket to Slack has been down for " + silence.Round(time.Second).String()
	}
	return ""
}
