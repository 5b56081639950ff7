package chatops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"vllm-triage/cmd/vllm-triage/server/alertmanager"
	"vllm-triage/config"
	"vllm-triage/notify"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/kb/runbook"
	"vllm-triage/triage/store"
)

// Engine answers questions. *triage.Engine is one.
type Engine interface {
	Triage(ctx context.Context, in triage.Incident) (triage.Report, error)
}

// Store is what is needed of the store. *store.Store is one.
type Store interface {
	Incident(ctx context.Context, id string) (store.Incident, []triage.Alert, error)
	Incidents(ctx context.Context, f store.Filter) ([]store.Incident, error)
	Reports(ctx context.Context, incident string) (store.Reports, error)
	Models(ctx context.Context) ([]string, error)
	SaveFeedback(ctx context.Context, f store.Feedback) error
	Feedback(ctx context.Context, incident string) ([]store.Feedback, error)
	KeepCheck(ctx context.Context, c store.Check) error
	AddNote(ctx context.Context, incident, name string, body json.RawMessage, now time.Time) error
	Enqueue(ctx context.Context, kind, incident, reason string, at time.Time) error
}

// Silencer makes, lists and ends silences. *alertmanager.Client is one.
type Silencer interface {
	CreateSilence(
		ctx context.Context, matchers []alertmanager.Matcher, start, end time.Time, createdBy, comment string,
	) (id string, err error)
	ListSilences(ctx context.Context, active bool, tag string) ([]alertmanager.Silence, error)
	ExpireSilence(ctx context.Context, id string) error
}

// Settings are what a reload of the configuration may change. They are asked for once for each thing to do.
type Settings struct {
	Engine    Engine
	Knowledge *kb.Base
	Runbooks  *runbook.Book
	// Models knows which models there are; nil: only those of incidents.
	Models ModelSource
	// Silencer is nil when no Alertmanager is configured.
	Silencer    Silencer
	Permissions config.Permissions
	// Language and Zone are taken for people of whom Slack does not tell them, and for what everybody sees.
	Language string
	Zone     *time.Location // nil: UTC.
	// Message says how messages link: addresses of this service, Prometheus and Grafana. Language and Location are set here.
	Message notify.Options
}

// Config is what a Service needs.
type Config struct {
	Settings func() Settings
	Store    Store
	// Token, SigningSecret and AppToken return Slack's secrets. They are asked on each use, so files can change. SigningSecret
	// is needed for HTTP, AppToken for Socket Mode.
	Token, SigningSecret, AppToken func() (string, error)
	// APIURL is the Web API's address; empty is Slack's.
	APIURL string
	// Timeout bounds each call to Slack; 0 is DefaultTimeout.
	Timeout time.Duration
	// ResponseHosts are hosts (with port) that response URLs may lead to beside Slack's own, over http too. It is for tests
	// and demonstrations.
	ResponseHosts []string
	// Sign makes a link to an incident's page one that its readers may open; nil: links stay as they are.
	Sign func(incidentID, address string) string
	// NoteLanguage is the language of an incident's threads; nil: Settings.Language.
	NoteLanguage func(ctx context.Context, incidentID string) string
	// Noted is called when something waits to be delivered or done; it may be nil.
	Noted func()
	// Metrics counts; nil: nobody does.
	Metrics Metrics
	Log     *zap.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Defaults and limits.
const (
	DefaultTimeout = 10 * time.Second
	// prompt is how long a request may take before it must be answered: Slack waits 3 s.
	prompt = 2500 * time.Millisecond
	// repeatWindow is within which the same text by the same person runs once.
	repeatWindow = 10 * time.Second
	// maxUnderWay is how much may be done at once after the answers.
	maxUnderWay = 64
	// maxTriages is how many questions are put to the engine at once.
	maxTriages = 4
	// patience bounds one thing to do, waiting for its turn included.
	patience = 3 * time.Minute
)

// Service answers people. Create it with New; it is safe for concurrent use.
type Service struct {
	c       Config
	log     *zap.Logger
	metrics Metrics
	now     func() time.Time
	client  *http.Client // To Slack.
	hosts   map[string]bool

	base     context.Context //nolint:containedctx // Of what is done after the answers; ends with Close.
	stop     context.CancelFunc
	work     sync.WaitGroup
	closing  atomic.Bool
	underWay atomic.Int64
	triages  chan struct{}
	lock     sync.Mutex // Orders work.Add before work.Wait.

	commands *seen // What people typed a moment ago.
	requests *seen // Signatures of requests.
	running  *seen // What must not run twice at once.
	people   *cache[Person]
	groups   *cache[[]string]
	reports  *cache[triage.Report]
	models   *cache[[]Model]

	alive    atomic.Int64 // Unix nanoseconds.
	linked   atomic.Bool  // The socket is up.
	complain map[Rejection]*rate.Limiter
}

// New returns a service. It makes no call.
func New(c Config) (*Service, error) {
	switch {
	case c.Settings == nil || c.Store == nil:
		return nil, errors.New("chatops: settings and a store are needed")
	case c.Token == nil:
		return nil, errors.New("chatops: a bot token is needed")
	}
	if c.APIURL == "" {
		c.APIURL = slackgo.APIURL
	}
	if !strings.HasSuffix(c.APIURL, "/") {
		c.APIURL += "/"
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	s := &Service{
		c: c, log: c.Log, metrics: c.Metrics, now: c.Now,
		client: &http.Client{
			Timeout: c.Timeout,
			// Own connections, so that Close can drop them.
			Transport: &capped{next: http.DefaultTransport.(*http.Transport).Clone()}, //nolint:errcheck,forcetypeassert // It is one.
			// The token must not follow a redirect, and a login page is no answer.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		hosts:    map[string]bool{},
		triages:  make(chan struct{}, maxTriages),
		commands: newSeen(1000), requests: newSeen(20_000), running: newSeen(1000),
		people: newCache[Person](2000), groups: newCache[[]string](100),
		reports: newCache[triage.Report](50), models: newCache[[]Model](4),
		complain: map[Rejection]*rate.Limiter{},
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if s.metrics == nil {
		s.metrics = noMetrics{}
	}
	if s.now == nil {
		s.now = time.Now
	}
	for _, h := range c.ResponseHosts {
		s.hosts[h] = true
	}
	for _, r := range Rejections() {
		s.complain[r] = rate.NewLimiter(rate.Every(10*time.Second), 3)
	}
	s.base, s.stop = context.WithCancel(context.Background())
	return s, nil
}

func (s *Service) settings() Settings {
	set := s.c.Settings()
	if set.Zone == nil {
		set.Zone = time.UTC
	}
	return set
}

// Close refuses further requests and waits until what was begun is done, or ctx ends, which cancels it.
func (s *Service) Close(ctx context.Context) error {
	s.lock.Lock()
	s.closing.Store(true)
	s.lock.Unlock()
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("end conversations: %w", ctx.Err())
	}
	s.stop()
	<-done // Everything below heeds its context.
	s.client.CloseIdleConnections()
	return err
}

// task is what is done after a request was answered.
type task func(ctx context.Context)

// run does tasks in the background. It reports false when too much is under way or the service is closing.
func (s *Service) run(tasks ...task) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closing.Load() {
		return false
	}
	for _, t := range tasks {
		s.underWay.Add(1)
		s.work.Go(func() {
			defer s.underWay.Add(-1)
			ctx, cancel := context.WithTimeout(s.base, patience)
			defer cancel()
			defer func() {
				if p := recover(); p != nil {
					s.log.Error("panic", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
				}
			}()
			t(ctx)
		})
	}
	return true
}

// busy says whether there is no room for more to do.
func (s *Service) busy() bool { return s.underWay.Load() >= maxUnderWay }

// LastAlive is when Slack was last known to reach the service or to be reached: now while a socket is up, else the last
// request or call that went well. The library that holds the socket ends it when Slack's pings stop for 30 s. It is zero
// before the first.
func (s *Service) LastAlive() time.Time {
	if s.linked.Load() {
		return s.now()
	}
	if n := s.alive.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (s *Service) isAlive() { s.alive.Store(s.now().UnixNano()) }

// api makes a client with the token of the moment.
func (s *Service) api(options ...slackgo.Option) (*slackgo.Client, error) {
	token, err := read(s.c.Token)
	if err != nil {
		return nil, fmt.Errorf("read bot token: %w", err)
	}
	return slackgo.New(token, append([]slackgo.Option{
		slackgo.OptionAPIURL(s.c.APIURL), slackgo.OptionHTTPClient(s.client),
	}, options...)...), nil
}

// read asks for a secret, which must not be empty.
func read(secret func() (string, error)) (string, error) {
	if secret == nil {
		return "", errors.New("it is not configured")
	}
	text, err := secret()
	text = strings.TrimSpace(text)
	if err == nil && text == "" {
		err = errors.New("it is empty")
	}
	return text, err
}

// sign makes a link to an incident one that its readers may open.
func (s *Service) sign(incident, address string) string {
	if s.c.Sign == nil || address == "" {
		return address
	}
	return s.c.Sign(incident, address)
}

// incidentURL is the page of an incident, or empty when this service's address is not known.
func (s *Service) incidentURL(set Settings, id string) string {
	base := strings.TrimRight(set.Message.BaseURL, "/")
	if base == "" || id == "" {
		return ""
	}
	return s.sign(id, base+"/incidents/"+url.PathEscape(id))
}

func runbookURL(set Settings, cause, language string) string {
	base := strings.TrimRight(set.Message.BaseURL, "/")
	if base == "" {
		return ""
	}
	address := base + "/runbooks/" + url.PathEscape(cause)
	if language != "en" {
		address += "?lang=" + url.QueryEscape(language)
	}
	return address
}

// note adds lines to the threads of an incident, once for each name, in the language of the threads.
func (s *Service) note(ctx context.Context, incident, name, actor string, say func(c *catalogue) []string) error {
	language := s.noteLanguage(ctx, incident)
	body, err := json.Marshal(notify.NewNote(incident, language, actor, say(wordsIn(language))...))
	if err != nil {
		return fmt.Errorf("encode note: %w", err)
	}
	if err := s.c.Store.AddNote(ctx, incident, name, body, s.now()); err != nil {
		return err
	}
	s.noted()
	return nil
}

func (s *Service) noteLanguage(ctx context.Context, incident string) string {
	if s.c.NoteLanguage != nil {
		if l := s.c.NoteLanguage(ctx, incident); l != "" {
			return l
		}
	}
	return s.settings().Language
}

func (s *Service) noted() {
	if s.c.Noted != nil {
		s.c.Noted()
	}
}
