package server

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"go.uber.org/zap"

	"vllm-triage/config"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// duplicateWindow is how long the same notification counts as a copy: Alertmanager peers send theirs within seconds, a
// retry within minutes; a repeat comes after hours.
const duplicateWindow = 10 * time.Minute

// webhook takes a notification: 2xx only once it is stored, 503 when it cannot be, so that Alertmanager tries again; 4xx
// only for what trying again cannot mend. Never 429: Alertmanager treats it as final.
func (s *Server) webhook(c echo.Context) error {
	began := time.Now() // For the metric.
	cfg := s.Parts().Config
	if !s.mayPost(c.Request(), cfg.Webhook) {
		s.metrics.webhooks.WithLabelValues(webhookForbidden).Inc()
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="vllm-triage"`)
		return c.String(http.StatusUnauthorized, "credentials are missing or wrong: set authorization.credentials_file in "+
			"Alertmanager's http_config to the token that webhook.bearer_token_file holds\n")
	}
	if s.draining.Load() {
		return s.unavailable(c, "shutting down", nil)
	}
	body, err := readBody(c.Request(), int64(cfg.Webhook.MaxBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			s.metrics.webhooks.WithLabelValues(webhookTooLarge).Inc()
			return c.String(http.StatusRequestEntityTooLarge, fmt.Sprintf(
				"the body is larger than %s: set max_alerts in Alertmanager's webhook_config, or raise webhook.max_body\n",
				cfg.Webhook.MaxBody))
		}
		s.metrics.webhooks.WithLabelValues(webhookInvalid).Inc()
		return c.String(http.StatusBadRequest, "the body could not be read\n")
	}
	payload, err := triage.ParsePayload(body)
	if err == nil && len(payload.Alerts) > cfg.Webhook.MaxAlerts {
		err = fmt.Errorf("%d alerts are more than webhook.max_alerts (%d)", len(payload.Alerts), cfg.Webhook.MaxAlerts)
	}
	if err != nil {
		s.metrics.webhooks.WithLabelValues(webhookInvalid).Inc()
		s.log.Warn("webhook refused", zap.Error(err),
			zap.String("request_id", c.Response().Header().Get(echo.HeaderXRequestID)))
		return c.String(http.StatusBadRequest, err.Error()+"\n")
	}
	now := s.now()
	payload, err = s.beat(c.Request().Context(), cfg.Heartbeat, payload, now)
	if err != nil {
		return s.unavailable(c, "the heartbeat could not be stored", err)
	}
	if len(payload.Alerts) == 0 {
		s.accepted(webhookAccepted, now, began)
		return c.JSON(http.StatusOK, map[string]any{"status": "stored"})
	}
	policy := policyOf(cfg)
	out, err := s.store.Intake(c.Request().Context(), store.Delivery{
		Key: store.DeliveryKey(payload), Received: now, Incidents: triage.NewIncidents(payload, now),
	}, policy)
	if err != nil {
		return s.unavailable(c, "the notification could not be stored", err)
	}
	s.noteIntake(c.Response().Header().Get(echo.HeaderXRequestID), payload, out, now, began)
	if policy.JoinDelay < poll { // Else the loops look before anything is due.
		signal(s.wake)
	}
	return c.JSON(http.StatusOK, map[string]any{"status": "stored"})
}

func (s *Server) accepted(result string, now, began time.Time) {
	s.metrics.webhooks.WithLabelValues(result).Inc()
	s.metrics.lastWebhook.Set(float64(now.Unix()))
	s.metrics.webhookSeconds.Observe(time.Since(began).Seconds())
}

func (s *Server) noteIntake(request string, p triage.Payload, out store.Outcome, now, began time.Time) {
	result := webhookAccepted
	if out.Duplicate {
		result = webhookDuplicate
	}
	s.accepted(result, now, began)
	for _, a := range p.Alerts {
		s.metrics.alerts.WithLabelValues(a.Status).Inc()
	}
	for _, ch := range out.Changes {
		for event, is := range map[string]bool{
			"opened": ch.Opened, "reopened": ch.Reopened, "resolved": ch.Resolved, "joined": !ch.Opened && ch.Began > 0,
		} {
			if is {
				s.metrics.incidents.WithLabelValues(event).Inc()
			}
		}
		if ch.Opened {
			s.log.Info("incident opened", zap.String("request_id", request), zap.String("incident_id", ch.IncidentID), zap.Int("alerts", ch.Began))
		}
	}
}

// unavailable answers 503, which Alertmanager takes as a reason to try again.
func (s *Server) unavailable(c echo.Context, reason string, err error) error {
	s.metrics.webhooks.WithLabelValues(webhookUnavailable).Inc()
	if err != nil {
		kind := cmp.Or(store.KindOf(err), store.Unreachable)
		s.log.Error("webhook not stored", zap.Error(err), zap.String("kind", string(kind)),
			zap.String("request_id", c.Response().Header().Get(echo.HeaderXRequestID)))
		reason += " (" + string(kind) + ")"
	}
	c.Response().Header().Set("Retry-After", "5")
	return c.String(http.StatusServiceUnavailable, reason+"; try again\n")
}

func policyOf(cfg *config.Config) store.Policy {
	return store.Policy{
		Debounce:        time.Duration(cfg.Triage.Debounce),
		JoinDelay:       min(time.Duration(cfg.Triage.Debounce), 5*time.Second),
		FlapWindow:      time.Duration(cfg.Triage.FlapWindow),
		DuplicateWindow: duplicateWindow,
	}
}

// readBody reads a body into as much memory as the sender says it needs, within the limit.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	var body bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= limit {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(nil, r.Body, limit))
	return body.Bytes(), err
}

// mayPost checks the credentials of a webhook, in constant time. Without any configured nobody may, unless the service
// was started open.
func (s *Server) mayPost(r *http.Request, w config.Webhook) bool {
	if s.open {
		return true
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && w.BearerToken.IsSet() {
		want, err := w.BearerToken.Read()
		if err != nil {
			s.log.Error("webhook token cannot be read", zap.Error(err))
			return false
		}
		return same(token, want)
	}
	if user, password, ok := r.BasicAuth(); ok && w.BasicAuth != nil {
		want, err := w.BasicAuth.Password.Read()
		if err != nil {
			s.log.Error("webhook password cannot be read", zap.Error(err))
			return false
		}
		// Both are compared, whatever the first says.
		userOK, passwordOK := same(user, w.BasicAuth.Username), same(password, want)
		return userOK && passwordOK
	}
	return w.ByWebConfig && s.verified(r)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 && b != "" }
