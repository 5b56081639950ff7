package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"vllm-triage/cmd/vllm-triage/server/web"
)

// routes lays out all addresses of the service.
func (s *Server) routes() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = s.sourceOf
	e.HTTPErrorHandler = s.onError
	e.Use(s.recoverPanics, requestID, secureHeaders)

	e.POST("/webhook/alertmanager", s.traced("webhook", s.webhook))
	get(e, "/-/healthy", func(c echo.Context) error { return c.String(http.StatusOK, "healthy\n") })
	get(e, "/-/ready", s.ready)
	get(e, "/-/accepting", s.accepting)
	e.POST("/-/reload", s.reloadNow)
	e.GET("/-/log-level", s.logLevel)
	e.PUT("/-/log-level", s.logLevel)
	if s.gather != nil {
		get(e, "/metrics", s.metricsPage)
	}

	s.talkRoutes(e)

	assets := http.StripPrefix(web.AssetsPath, http.FileServerFS(web.Assets()))
	get(e, web.AssetsPath+"*", func(c echo.Context) error {
		c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		assets.ServeHTTP(c.Response(), c.Request())
		return nil
	})

	// On each route and not on a group: a group answers 404 where another method would do.
	limit := s.limitRate()
	get(e, "/", s.listPage, limit)
	get(e, "/incidents", s.listPage, limit)
	get(e, "/incidents/:id", s.incidentPage, limit)
	get(e, "/incidents/:id/chart.png", s.incidentChart, limit)
	// Alert rules link to /runbooks?alert=NAME.
	get(e, "/runbooks", func(c echo.Context) error { return c.Redirect(http.StatusFound, web.RunbookPath("index")) }, limit)
	get(e, "/runbooks/:cause", s.runbookPage, limit)
	e.POST("/incidents/:id/feedback", s.feedbackForm, limit)
	e.POST("/incidents/:id/steps", s.stepForm, limit)
	e.POST("/incidents/:id/outcome", s.stepForm, limit)
	e.POST("/incidents/:id/recheck", s.recheckForm, limit)
	get(e, "/api/v1/incidents", s.listAPI, limit)
	get(e, "/api/v1/incidents/:id", s.incidentAPI, limit)
	return e
}

// get adds a page and its HEAD, which load balancers and link checkers ask with.
func get(e *echo.Echo, path string, h echo.HandlerFunc, with ...echo.MiddlewareFunc) {
	e.Match([]string{http.MethodGet, http.MethodHead}, path, h, with...)
}

// limitRate limits pages and API by source; webhooks have no limit but the store's.
func (s *Server) limitRate() echo.MiddlewareFunc {
	limit := s.Parts().Config.Pages.RateLimit
	if limit <= 0 {
		return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	}
	return middleware.RateLimiterWithConfig(middleware.RateLimiterConfig{
		Store: middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{
			Rate: rate.Limit(limit), Burst: 2 * limit,
		}),
		IdentifierExtractor: func(c echo.Context) (string, error) { return c.RealIP(), nil },
		DenyHandler: func(echo.Context, string, error) error {
			return echo.NewHTTPError(http.StatusTooManyRequests, "too many requests from this address")
		},
	})
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestID gives each request a name, or keeps a sane one that it brings.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(echo.HeaderXRequestID)
		if !plainID.MatchString(id) {
			id = newID()
		}
		c.Request().Header.Set(echo.HeaderXRequestID, id)
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		return next(c)
	}
}

// secureHeaders go with every answer.
func secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", web.CSP)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer") // Signed links must not leak.
		h.Set("Cache-Control", "no-store")
		return next(c)
	}
}

// recoverPanics turns a panic into a 500 and a line in the log, without the stacks of other requests.
func (s *Server) recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if p := recover(); p != nil {
				if e, ok := p.(error); ok && errors.Is(e, http.ErrAbortHandler) {
					panic(p)
				}
				s.log.Error("request panicked", zap.Any("panic", p), zap.String("path", c.Path()), zap.Stack("stack"))
				err = echo.NewHTTPError(http.StatusInternalServerError)
			}
		}()
		return next(c)
	}
}

// metricsPage serves the service's metrics to who holds the webhook's credentials; server.metrics_listen serves them on a
// port of their own.
func (s *Server) metricsPage(c echo.Context) error {
	if r, ok := s.readerOf(c, ""); !ok || !r.full {
		return echo.NewHTTPError(http.StatusUnauthorized, "metrics need the webhook's credentials, or set server.metrics_listen")
	}
	promhttp.HandlerFor(s.gather, promhttp.HandlerOpts{}).ServeHTTP(c.Response(), c.Request())
	return nil
}

// SideHandler serves metrics and health on a port of their own, without authentication.
func (s *Server) SideHandler() http.Handler {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.onError
	get(e, "/-/healthy", func(c echo.Context) error { return c.String(http.StatusOK, "healthy\n") })
	get(e, "/-/ready", s.ready)
	get(e, "/-/accepting", s.accepting)
	if s.gather != nil {
		get(e, "/metrics", echo.WrapHandler(promhttp.HandlerFor(s.gather, promhttp.HandlerOpts{})))
	}
	return e
}

// accepting says whether the service takes webhooks now. Probes and load balancers ask this: it depends on nothing but the
// store, so that an outage of the chat keeps no alert out; what is taken meanwhile is told when the chat is back.
func (s *Server) accepting(c echo.Context) error {
	if problem := s.intakeProblem(c.Request().Context()); problem != "" {
		return c.String(http.StatusServiceUnavailable, problem+"\n")
	}
	return c.String(http.StatusOK, "accepting\n")
}

// intakeProblem says why webhooks are not taken; empty when they are.
func (s *Server) intakeProblem(ctx context.Context) string {
	if s.draining.Load() {
		return "shutting down"
	}
	if err := s.pingStore(ctx); err != nil {
		s.log.Warn("store is not ready", zap.Error(err))
		return "the store cannot be written"
	}
	return ""
}

// ready says whether the service does all of its work: takes webhooks and gets through to the chat.
func (s *Server) ready(c echo.Context) error {
	problem := cmp.Or(s.intakeProblem(c.Request().Context()), s.chatProblem(), s.socketProblem())
	if problem != "" {
		return c.String(http.StatusServiceUnavailable, problem+"\n")
	}
	return c.String(http.StatusOK, "ready\n")
}

// reloadNow loads the configuration again: with the webhook's credentials only.
func (s *Server) reloadNow(c echo.Context) error {
	if !s.mayPost(c.Request(), s.Parts().Config.Webhook) {
		return echo.NewHTTPError(http.StatusUnauthorized, "reloading needs the webhook's credentials")
	}
	if s.reload == nil {
		return echo.NewHTTPError(http.StatusNotFound, "there is no configuration file to load")
	}
	if err := s.reload(); err != nil {
		return c.String(http.StatusUnprocessableEntity, "the old configuration stays in force:\n"+err.Error()+"\n")
	}
	return c.String(http.StatusOK, "reloaded\n")
}

// logLevel shows the level of the log or changes it, {"level":"debug"}, until the next load of the configuration: with the
// webhook's credentials only.
func (s *Server) logLevel(c echo.Context) error {
	if !s.mayPost(c.Request(), s.Parts().Config.Webhook) {
		return echo.NewHTTPError(http.StatusUnauthorized, "the log level needs the webhook's credentials")
	}
	if s.level == nil {
		return echo.NewHTTPError(http.StatusNotFound, "the log level is fixed")
	}
	c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, 1<<10)
	s.level.ServeHTTP(c.Response(), c.Request())
	return nil
}

// onError answers with a page to browsers and with JSON to programs.
func (s *Server) onError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status, reason := http.StatusInternalServerError, ""
	if he, ok := errors.AsType[*echo.HTTPError](err); ok {
		status = he.Code
		if m, ok := he.Message.(string); ok && m != http.StatusText(status) {
			reason = m
		}
	}
	switch {
	case reason != "":
	case status == http.StatusNotFound && c.Path() == "":
		reason = "nothing is at this address: Alertmanager posts to /webhook/alertmanager, pages begin at /incidents"
	case status == http.StatusMethodNotAllowed:
		reason = "this address takes " + c.Response().Header().Get(echo.HeaderAllow)
	}
	id := c.Response().Header().Get(echo.HeaderXRequestID)
	if status >= 500 {
		s.log.Error("request failed", zap.Error(err), zap.String("path", c.Path()), zap.String("request_id", id))
	}
	if c.Request().Method == http.MethodHead {
		_ = c.NoContent(status)
		return
	}
	if wantsHTML(c.Request()) {
		c.Response().Header().Set(echo.HeaderContentType, "text/html; charset=utf-8")
		c.Response().WriteHeader(status)
		_ = web.Error(c.Response(), web.ErrorView{
			Site: s.site(c, reader{}, ""), Status: status, Reason: reason, RequestID: id,
		})
		return
	}
	_ = c.JSON(status, map[string]string{"error": http.StatusText(status), "reason": reason, "request_id": id})
}
