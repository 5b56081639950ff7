package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/triage/store"
)

// Server is the service. Handler serves requests; Run works in the background until its context ends.
type Server struct {
	parts   atomic.Pointer[Parts]
	store   *store.Store
	log     *zap.Logger
	metrics *Metrics
	tracer  trace.Tracer
	version string
	owner   string
	now     func() time.Time
	open    bool
	reload  func() error
	key     []byte // Signs links and form tokens.
	gather  prometheus.Gatherer
	level   *zap.AtomicLevel
	limits  Timeouts
	started time.Time

	echo     *echo.Echo
	draining atomic.Bool
	guard    atomic.Pointer[string] // The web configuration that guards the listener; nil: none does.
	wake     chan struct{}          // News for the worker.
	tell     chan struct{}          // News for the deliverer.
	chat     chatHealth
	disk     storeHealth
	sweeping sweeping
	talk     *chatops.Service // nil without Slack.

	responseHosts []string
}

// New builds the service. It makes, or reads from the store, the key that signs links.
func New(ctx context.Context, o Options) (*Server, error) {
	s := &Server{
		store: o.Store, log: o.Log, metrics: o.Metrics, version: o.Version, owner: o.Owner, now: o.Now, open: o.Open,
		reload: o.Reload, gather: o.Gatherer, wake: make(chan struct{}, 1), tell: make(chan struct{}, 1),
		tracer: newTracer(o.Tracing), level: o.Level, limits: o.Timeouts.withDefaults(), responseHosts: o.ResponseHosts,
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	s.started = s.now()
	s.chat.good, s.chat.channels = s.started, map[string]bool{}
	s.parts.Store(o.Parts)
	key, err := s.linkKey(ctx, o.Parts)
	if err != nil {
		return nil, err
	}
	s.key = key
	if o.Parts.Config.Slack.Enabled() {
		if s.talk, err = s.newTalk(); err != nil {
			return nil, err
		}
	}
	s.echo = s.routes()
	return s, s.wantChores(ctx)
}

// linkKey is the configured key, or one that is made once and kept in the store, so that all replicas share it.
func (s *Server) linkKey(ctx context.Context, p *Parts) ([]byte, error) {
	if p.Config.Pages.LinkKey.IsSet() {
		text, err := p.Config.Pages.LinkKey.Read()
		if err != nil {
			return nil, fmt.Errorf("read pages.link_key: %w", err)
		}
		sum := sha256.Sum256([]byte(text))
		return sum[:], nil
	}
	text, err := s.store.SettingOrNew(ctx, "link_key", func() string {
		var b [32]byte
		_, _ = rand.Read(b[:]) // Never fails: crypto/rand ends the program instead.
		return hex.EncodeToString(b[:])
	})
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}

// sign is a keyed hash for a purpose.
func (s *Server) sign(purpose, text string) string {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "%s\x00%s", purpose, text)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Handler serves the webhook, pages, API, metrics and health.
func (s *Server) Handler() http.Handler { return s.echo }

// Swap puts the parts of a new configuration in place. Work that has begun ends with the old ones.
func (s *Server) Swap(p *Parts) { s.parts.Store(p) }

// Parts returns what is in force.
func (s *Server) Parts() *Parts { return s.parts.Load() }

// Run works until ctx ends: it claims jobs and deliveries, finishes what it has begun within half of the time that a shutdown
// may take, and gives back the rest.
func (s *Server) Run(ctx context.Context) error {
	work, cancelWork := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelWork()
	stopped := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(time.Duration(s.Parts().Config.Server.ShutdownTimeout) / 2):
			cancelWork()
		case <-work.Done():
		}
	})
	defer stopped()
	var wg sync.WaitGroup
	for range max(s.Parts().Config.Triage.Workers, 1) {
		wg.Go(func() { s.loop(ctx, work, line{s.wake, s.store.NextJob, s.workOnce}) })
	}
	for range deliverers {
		wg.Go(func() { s.loop(ctx, work, line{s.tell, s.store.NextDelivery, s.deliverOnce}) })
	}
	wg.Go(func() { s.watchChat(ctx) })
	wg.Go(func() { s.runSocket(ctx) })
	wg.Wait()
	s.Close(work)
	// What was claimed and not finished goes to others at once instead of at the end of its lease.
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return s.store.Release(release, s.owner)
}

// Close ends conversations with people: what was begun is finished, or cut short when ctx ends. Run does it at its end.
func (s *Server) Close(ctx context.Context) {
	if s.talk == nil {
		return
	}
	if err := s.talk.Close(ctx); err != nil {
		s.log.Warn("answers to people cut short", zap.Error(err))
	}
}

// Drain makes the service refuse webhooks and say that it is not ready; Alertmanager takes them elsewhere or tries again.
func (s *Server) Drain() { s.draining.Store(true) }

// Serve runs the service on a listener until ctx ends, then shuts down within the configured time.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	web := s.httpServer(s.Handler())
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- s.Run(background) }()
	go func() {
		if err := s.listen(web, l); !errors.Is(err, http.ErrServerClosed) {
			ended <- err
			return
		}
		ended <- nil
	}()
	var first error
	waiting := 2
	select {
	case <-ctx.Done():
	case first = <-ended:
		waiting--
	}
	s.Drain()
	limit := time.Duration(s.Parts().Config.Server.ShutdownTimeout)
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	errs := []error{first, web.Shutdown(deadline)}
	stop()
	for range waiting {
		select {
		case err := <-ended:
			errs = append(errs, err)
		case <-deadline.Done():
			// Leases end by themselves: others take over what is left.
			return errors.Join(append(errs, errors.New("shutdown took too long: unfinished work goes to others when its lease ends"))...)
		}
	}
	return errors.Join(errs...)
}

// listen serves plainly, or with the TLS and users of server.web_config_file, which is read again on every request.
func (s *Server) listen(web *http.Server, l net.Listener) error {
	file := s.Parts().Config.Server.WebConfigFile
	if file == "" {
		return web.Serve(l)
	}
	s.guard.Store(&file)
	systemd := false
	return toolkit.Serve(l, web, &toolkit.FlagConfig{WebConfigFile: &file, WebSystemdSocket: &systemd},
		slog.New(zapslog.NewHandler(s.log.Core())))
}

// httpServer has limits against slow and endless clients.
func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: s.limits.Header,
		ReadTimeout:       s.limits.Read,
		WriteTimeout:      s.limits.Write,
		IdleTimeout:       s.limits.Idle,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(s.log.Named("http")),
	}
}
