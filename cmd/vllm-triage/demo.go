package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/config"
	"vllm-triage/notify"
	"vllm-triage/notify/console"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/notify/slack/preview"
	"vllm-triage/promq/recording"
	"vllm-triage/triage/store"
)

// demoData are recorded incidents of a real vLLM, without the truth about them.
//
//go:embed demodata
var demoData embed.FS

// defaultDemo is the incident that is shown when none is named.
const defaultDemo = "kv-longer-outputs-a"

// demoPatience is how long the demonstration waits for its message.
const demoPatience = time.Minute

func runDemo(ctx context.Context, env environment) error {
	set := flags(env, "demo", "[INCIDENT]", `Start the real service on a recorded incident: Alertmanager's webhook is posted to it, it asks the recorded Prometheus as
of that moment, and the Slack message appears here as text and on a page as Slack shows it.

Incidents: `+strings.Join(demoNames(), ", "))
	listen := set.String("listen", "127.0.0.1:0", "`address` of the page")
	lang := set.String("lang", "en", "language of the message: en or ko")
	once := set.Bool("once", false, "end after the message was shown")
	token := set.String("slack-token", env.getenv("VLLM_TRIAGE_SLACK_BOT_TOKEN"), "bot token: post to Slack for real")
	channel := set.String("channel", "", "Slack channel, with --slack-token")
	args, err := parse(set, env.args)
	if err != nil {
		return err
	}
	name := defaultDemo
	switch {
	case len(args) > 1:
		return usagef("name at most one incident")
	case len(args) == 1:
		name = args[0]
	}
	if (*token == "") != (*channel == "") && *channel != "" {
		return usagef("--channel needs --slack-token")
	}
	if err := checkLanguage(*lang); err != nil {
		return err
	}
	d := &demo{env: env, lang: *lang, listen: *listen, token: *token, channel: *channel}
	if err := d.load(name); err != nil {
		return err
	}
	return d.run(ctx, *once)
}

func demoNames() []string {
	entries, err := demoData.ReadDir("demodata")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// demo is one demonstration.
type demo struct {
	env                          environment
	lang, listen, token, channel string

	rec      *recording.Recording
	webhooks []recordedWebhook
	at       time.Time // The service's present: when the last of the webhooks was received.
}

type recordedWebhook struct {
	body []byte
	at   time.Time
}

// load reads the recording: its series, and the webhooks up to the last that brought a new alert.
func (d *demo) load(name string) error {
	dir, err := fs.Sub(demoData, path.Join("demodata", name))
	if err == nil {
		_, err = fs.Stat(dir, "recording.json")
	}
	if err != nil {
		return usagef("there is no incident %q; there are %s", name, strings.Join(demoNames(), ", "))
	}
	raw, err := fs.ReadFile(dir, "recording.json")
	if err != nil {
		return err
	}
	var meta recordingFile
	if err := json.Unmarshal(raw, &meta); err != nil {
		return fmt.Errorf("read recording.json: %w", err)
	}
	for _, w := range meta.Webhooks {
		body, err := fs.ReadFile(dir, path.Join("webhooks", w.File))
		if err != nil {
			return err
		}
		d.webhooks = append(d.webhooks, recordedWebhook{body, w.ReceivedAt})
		if bytes.Contains(body, []byte(`"status":"firing"`)) {
			d.at = w.ReceivedAt
		}
	}
	tsdb, err := fs.Sub(dir, "tsdb")
	if err != nil {
		return err
	}
	d.rec, err = recording.OpenFS(tsdb)
	return err
}

// run starts Prometheus, Slack and the service, posts the webhooks and shows what comes of them.
func (d *demo) run(ctx context.Context, once bool) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prom, stopProm, err := d.rec.Start(d.at)
	if err != nil {
		return err
	}
	defer stopProm()
	chat := fakeslack.New(fakeslack.Options{Now: func() time.Time { return d.at }})
	defer chat.Close()
	api, stopChat, err := chat.Listen(ctx)
	if err != nil {
		return err
	}
	defer stopChat()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.listen)
	if err != nil {
		return fmt.Errorf("listen on --listen: %w", err)
	}
	base := "http://" + l.Addr().String()
	cfg, secret, err := d.config(base, prom, api)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	dir, err := os.MkdirTemp("", "vllm-triage-demo-")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	st, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "demo.db"), store.Options{NoSync: true})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, st.Close()) }()

	clock := &demoClock{at: d.at}
	svc, err := d.service(ctx, cfg, st, clock)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	stopWeb := serveDemo(l, d.pages(svc, chat))
	defer stopWeb()
	if err := d.post(ctx, base, secret, clock); err != nil {
		return err
	}
	var wg sync.WaitGroup
	working, stopWork := context.WithCancel(ctx)
	defer func() {
		stopWork()
		wg.Wait()
	}()
	wg.Go(func() { _ = svc.Run(working) }) // It ends with the demonstration; its store goes with it.
	if err := d.show(ctx, svc, st); err != nil {
		return err
	}
	if once {
		return nil
	}
	fmt.Fprintf(d.env.stdout, "\nAs Slack shows it:  %s/\nIncidents:          %s/incidents\nEnd with Ctrl-C.\n", base, base)
	<-ctx.Done()
	return nil
}

// config is the configuration of the demonstration, read the way every configuration is.
func (d *demo) config(base, prom, api string) (cfg *config.Config, secret string, err error) {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Never fails: crypto/rand ends the program instead.
	secret = hex.EncodeToString(b[:])
	token, channel, apiURL := "xoxb-demo", fakeslack.DefaultChannel, api+"/api/" //nolint:gosec // Of a Slack that is none.
	// The card shows its buttons, as a real one does.
	signing := secret
	if d.token != "" {
		token, apiURL = d.token, "https://slack.com/api/" //nolint:gosec // The user's own, from a flag.
		channel, signing = d.channel, ""                  // Slack does not reach this process: buttons would not work.
	}
	text := fmt.Sprintf(`
server: {listen: %q, external_url: %q}
webhook: {bearer_token: %q}
pages: {links: true}
storage: "sqlite:demo.db"
prometheus: {url: %q}
slack: {bot_token: %q, api_url: %q, channel: %q, language: %q%s}
links: {prometheus: %q}
triage: {debounce: 0s}
`, "127.0.0.1:9099", base, secret, prom, token, apiURL, channel, d.lang, interactive(signing), prom)
	cfg, err = config.Parse([]byte(text), "", config.NoEnv)
	return cfg, secret, err
}

// interactive is what the configuration of Slack has beside the rest when buttons work.
func interactive(signing string) string {
	if signing == "" {
		return ""
	}
	return fmt.Sprintf(", signing_secret: %q", signing)
}

func (d *demo) service(ctx context.Context, cfg *config.Config, st *store.Store, clock *demoClock) (*server.Server, error) {
	parts, err := assemble(cfg)
	if err != nil {
		return nil, err
	}
	reg := prometheus.NewRegistry()
	return server.New(ctx, server.Options{
		Parts: parts, Store: st, Log: zap.NewNop(), Metrics: server.NewMetrics(reg, version), Version: version, Owner: ownerName(),
		Now: clock.now, Gatherer: reg,
	})
}

// pages shows the chat at / and the service below it.
func (d *demo) pages(svc *server.Server, chat *fakeslack.Server) http.Handler {
	mux := http.NewServeMux()
	if d.token == "" {
		slack := preview.Handler(chat, preview.Options{Channel: fakeslack.DefaultChannel, Name: "llm-oncall", Language: d.lang})
		for _, p := range []string{"GET /{$}", "GET /preview.css", "GET /files/"} {
			mux.Handle(p, slack)
		}
	}
	// Whoever runs the demonstration may see all of it: the page's own links carry signatures, the list does not.
	mux.Handle("/", svc.Handler())
	return mux
}

// post delivers the recorded webhooks as Alertmanager did.
func (d *demo) post(ctx context.Context, base, secret string, clock *demoClock) error {
	for _, w := range d.webhooks {
		if w.at.After(d.at) {
			break
		}
		clock.set(w.at)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/webhook/alertmanager", bytes.NewReader(w.body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(io.LimitReader(res.Body, 4096))
		if err := errors.Join(err, res.Body.Close()); err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("the service answered the webhook with %s: %s", res.Status, answer)
		}
	}
	clock.set(d.at)
	return nil
}

// show waits until the message is out and prints it.
func (d *demo) show(ctx context.Context, svc *server.Server, st *store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for {
		incidents, err := st.Incidents(ctx, store.Filter{Limit: 1})
		if err != nil {
			return err
		}
		waiting, err := st.PendingConversations(ctx)
		if err != nil {
			return err
		}
		if len(incidents) == 1 && incidents[0].Revision > 0 && len(waiting) == 0 {
			return d.print(ctx, svc, st, incidents[0])
		}
		for _, c := range waiting {
			if c.Error != "" {
				return fmt.Errorf("the message could not be delivered: %s", c.Error)
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("no message came: the demonstration gives up")
		case <-t.C:
		}
	}
}

func (d *demo) print(ctx context.Context, svc *server.Server, st *store.Store, in store.Incident) error {
	reports, err := st.Reports(ctx, in.ID)
	if err != nil {
		return err
	}
	if reports.Latest == nil {
		return errors.New("there is no report")
	}
	m := svc.Message(in, reports, d.lang)
	n := console.New(d.env.stdout, console.Auto)
	if _, err := n.Post(ctx, "", m); err != nil {
		return err
	}
	_, err = n.Reply(ctx, notify.Ref{}, m.As(notify.KindDetails))
	return err
}

// demoClock is the recorded present.
type demoClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *demoClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *demoClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = t
}

func serveDemo(l net.Listener, h http.Handler) (stop func()) {
	web := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = web.Serve(l) // Ends with ErrServerClosed when stopped.
	}()
	return func() {
		_ = web.Close()
		<-done
	}
}
