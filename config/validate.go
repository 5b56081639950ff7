package config

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.uber.org/zap/zapcore"
)

// noMention is how a route says that it calls nobody although slack.mention does.
const noMention = "none"

// maxPeers is more than any cluster of Alertmanagers has; each may cost its timeout.
const maxPeers = 10

var (
	// mentionPattern holds for Slack's ids of users, workspace users and user groups, and its two groups with a name.
	mentionPattern = regexp.MustCompile(`^(here|channel|none|[UWS][A-Z0-9]{2,20})$`)
	labelPattern   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	headerPattern  = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	// channelPattern holds for ids (C…, G…, D…) and for names, which Slack keeps in lower case in any script.
	channelPattern = regexp.MustCompile(`^([CGD][A-Z0-9]{2,20}|#?[^\s#@<>|&,A-Z]{1,80})$`)

	// languages have a catalogue of messages.
	languages = []string{"en", "ko"}
)

// validate checks everything that can be checked without asking anyone else.
func (c *Config) validate(p *problems) {
	c.validateServer(p)
	c.validateWebhook(p)
	c.validatePages(p)
	c.validateStorage(p)
	c.validatePrometheus(p)
	c.validateSlack(p)
	c.validateRoutes(p)
	c.validateTriage(p)
	c.validateLinks(p)
	c.validateHeartbeat(p)
	if !c.Tracing.Endpoint.IsZero() {
		p.base("tracing.endpoint", c.Tracing.Endpoint)
	}
	if !(c.Tracing.Sample > 0 && c.Tracing.Sample <= 1) { // NaN is neither.
		p.add("tracing.sample", "must be above 0 and at most 1")
	}
	if _, err := zapcore.ParseLevel(c.Log.Level); err != nil || !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) {
		p.add("log.level", `must be "debug", "info", "warn" or "error"`)
	}
	if c.Log.Format != "json" && c.Log.Format != "console" {
		p.add("log.format", `must be "json" or "console"`)
	}
}

func (c *Config) validateServer(p *problems) {
	s := c.Server
	p.listen("server.listen", s.Listen)
	if s.MetricsListen != "" {
		p.listen("server.metrics_listen", s.MetricsListen)
		if s.MetricsListen == s.Listen && !strings.HasSuffix(s.Listen, ":0") {
			p.add("server.metrics_listen", "is the same as server.listen; leave it out to serve metrics there")
		}
	}
	if s.ExternalURL != "" {
		p.link("server.external_url", s.ExternalURL)
	}
	if s.WebConfigFile != "" {
		p.readable("server.web_config_file", s.WebConfigFile)
	}
	for i, cidr := range s.TrustedProxies {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			p.add("server.trusted_proxies["+strconv.Itoa(i)+"]", "must be a network such as 10.0.0.0/8 or 192.0.2.7/32")
		}
	}
	p.between("server.shutdown_timeout", s.ShutdownTimeout, time.Second, 25*time.Second)
}

func (c *Config) validateWebhook(p *problems) {
	w := c.Webhook
	if b := w.BasicAuth; b != nil {
		if b.Username == "" || strings.Contains(b.Username, ":") {
			p.add("webhook.basic_auth.username", "must be set and must not hold a colon")
		}
		if !b.Password.IsSet() {
			p.add("webhook.basic_auth.password", "is missing; give password_file, password or "+EnvPrefix+"WEBHOOK_PASSWORD")
		}
	}
	if w.ByWebConfig && c.Server.WebConfigFile == "" {
		p.add("webhook.by_web_config", "needs server.web_config_file")
	}
	if token, err := w.BearerToken.Read(); err == nil && token != "" && len(token) < 16 {
		p.add("webhook.bearer_token", "is shorter than 16 characters; make one with: openssl rand -base64 32")
	}
	if w.MaxBody < 64<<10 || w.MaxBody > 64<<20 {
		p.add("webhook.max_body", "must be between 64KiB and 64MiB")
	}
	p.number("webhook.max_alerts", w.MaxAlerts, 100_000)
}

// Authenticated says whether anything proves who posts alerts.
func (w Webhook) Authenticated() bool {
	return w.BearerToken.IsSet() || w.BasicAuth != nil || w.ByWebConfig
}

func (c *Config) validatePages(p *problems) {
	p.between("pages.link_ttl", c.Pages.LinkTTL, time.Minute, 366*24*time.Hour)
	if key, err := c.Pages.LinkKey.Read(); err == nil && key != "" && len(key) < 32 {
		p.add("pages.link_key", "is shorter than 32 characters; make one with: openssl rand -base64 32")
	}
	if c.Pages.UserHeader != "" {
		if !headerPattern.MatchString(c.Pages.UserHeader) {
			p.add("pages.user_header", "must be the name of a header, such as X-Auth-Request-User")
		}
		if len(c.Server.TrustedProxies) == 0 {
			p.add("pages.user_header", "needs server.trusted_proxies: anyone could send the header otherwise")
		}
	}
	p.number("pages.rate_limit", c.Pages.RateLimit, 10_000)
}

func (c *Config) validateStorage(p *problems) {
	p.between("retention", c.Retention, time.Hour, 10*366*24*time.Hour)
	dsn, err := c.Storage.Read()
	if err != nil {
		return // bind has said so.
	}
	if scheme, rest, ok := strings.Cut(dsn, ":"); ok && strings.HasPrefix(rest, "//") && scheme != "sqlite" {
		if scheme != "postgres" && scheme != "postgresql" {
			p.add("storage", "must be sqlite:FILE or postgres://USER@HOST/DATABASE")
		} else if u, err := url.Parse(dsn); err != nil || u.Host == "" && u.Query().Get("host") == "" || len(u.Path) < 2 {
			p.add("storage", "must name host and database: postgres://USER@HOST/DATABASE")
		}
		return
	}
	if strings.TrimLeft(strings.TrimPrefix(dsn, "sqlite:"), "/") == "" {
		p.add("storage", "must name a file: sqlite:///data/vllm-triage.db")
	}
}

func (c *Config) validatePrometheus(p *problems) {
	if c.Prometheus.URL.IsZero() {
		p.add("prometheus.url", "is missing: the server that scrapes vLLM, such as http://prometheus:9090")
	} else {
		p.base("prometheus.url", c.Prometheus.URL)
	}
	if err := c.Prometheus.HTTP.validate(); err != nil {
		p.add("prometheus.http_config", err.Error())
	}
	p.between("prometheus.timeout", c.Prometheus.Timeout, time.Second, 5*time.Minute)
	p.number("prometheus.concurrency", c.Prometheus.Concurrency, 100)
	if c.Prometheus.MaxResponse < 1<<20 || c.Prometheus.MaxResponse > 1<<30 {
		p.add("prometheus.max_response", "must be between 1MiB and 1GiB")
	}
	c.Alertmanager.validate(p)
}

func (a Alertmanager) validate(p *problems) {
	if !a.URL.IsZero() {
		p.base("alertmanager.url", a.URL)
		if len(a.URLs) > 0 {
			p.add("alertmanager.urls", "give one address in url or all members of a cluster in urls, not both")
		}
	}
	seen := map[string]bool{}
	for i, peer := range a.URLs {
		path := "alertmanager.urls[" + strconv.Itoa(i) + "]"
		p.base(path, peer)
		if seen[peer.Raw()] {
			p.add(path, "is in the list already")
		}
		seen[peer.Raw()] = true
	}
	if len(a.URLs) > maxPeers {
		p.add("alertmanager.urls", "must not have more than "+strconv.Itoa(maxPeers)+" entries")
	}
	if err := a.HTTP.validate(); err != nil {
		p.add("alertmanager.http_config", err.Error())
	}
	p.between("alertmanager.timeout", a.Timeout, time.Second, time.Minute)
}

func (c *Config) validateSlack(p *problems) {
	s := c.Slack
	p.link("slack.api_url", s.APIURL)
	if u, err := url.Parse(s.APIURL); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		p.add("slack.api_url", "must be https: the bot's token would travel in the clear")
	}
	if !strings.HasSuffix(s.APIURL, "/") {
		p.add("slack.api_url", "must end in a slash")
	}
	p.between("slack.timeout", s.Timeout, time.Second, time.Minute)
	p.prefix("slack.bot_token", s.BotToken, "xoxb-", "xoxe.xoxb-")
	p.prefix("slack.app_token", s.AppToken, "xapp-")
	if (s.AppToken.IsSet() || s.SigningSecret.IsSet()) && !s.BotToken.IsSet() {
		p.add("slack", "has no bot_token: buttons and commands need it to answer")
	}
	if s.Enabled() && s.Channel == "" && !slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Channel != "" }) {
		p.add("slack.channel", `is missing: where incidents are posted, "#name" or an id`)
	}
	p.audience("slack", s.Channel, s.Language, s.Timezone, s.Mention)
	s.Permissions.validate(p, "slack.permissions")
}

// prefix checks that a token is of the right kind. The message never shows it.
func (p *problems) prefix(path string, s Secret, prefixes ...string) {
	token, err := s.Read()
	if err != nil || token == "" || slices.ContainsFunc(prefixes, func(x string) bool { return strings.HasPrefix(token, x) }) {
		return
	}
	p.add(path, "is not of the right kind: it must start with "+prefixes[0])
}

// audience checks what slack and its routes have in common.
func (p *problems) audience(path, channel, language, zone, mention string) {
	if channel != "" && !channelPattern.MatchString(channel) {
		p.add(path+".channel", `must be a channel's name in lower case ("#llm-oncall") or its id ("C0123456789")`)
	}
	if language != "" && !slices.Contains(languages, language) {
		p.add(path+".language", `must be "en" or "ko"`)
	}
	if zone != "" {
		if _, err := time.LoadLocation(zone); err != nil {
			p.add(path+".timezone", `is not known: use a name such as "Asia/Seoul" or "UTC"`)
		}
	}
	if mention != "" && !mentionPattern.MatchString(mention) {
		p.add(path+".mention", `must be "here", "channel", "none" or the id of a user (U…) or group (S…)`)
	}
}

func (c *Config) validateRoutes(p *problems) {
	for i, r := range c.Routes {
		path := "routes[" + strconv.Itoa(i) + "]"
		p.audience(path, r.Channel, r.Language, r.Timezone, r.Mention)
		for name := range r.Match {
			p.labelName(path+".match", name)
		}
		for name := range r.MatchRE {
			p.labelName(path+".match_re", name)
			if _, twice := r.Match[name]; twice {
				p.add(path+".match_re", name+" is in match too")
			}
		}
		switch r.Mode {
		case "", Shadow, Off:
		case Live:
			if !c.Slack.Enabled() {
				p.add(path+".mode", "is live, but slack has no bot_token")
			}
		default:
			p.add(path+".mode", `must be "live", "shadow" or "off"`)
		}
		if c.Slack.Enabled() && r.Mode != Off && r.Channel == "" && c.Slack.Channel == "" {
			p.add(path+".channel", "is missing, and so is slack.channel")
		}
		if len(r.Match)+len(r.MatchRE) == 0 && !r.Continue && i < len(c.Routes)-1 {
			p.add(path, "has no matchers, so the routes below are never reached; move it to the end or set continue")
		}
	}
}

func (c *Config) validateTriage(p *problems) {
	t := c.Triage
	p.between("triage.debounce", t.Debounce, 0, 10*time.Minute)
	for i, d := range t.Retriage {
		p.between("triage.retriage["+strconv.Itoa(i)+"]", d, 10*time.Second, 24*time.Hour)
	}
	if len(t.Retriage) > 20 {
		p.add("triage.retriage", "must not have more than 20 entries")
	}
	p.between("triage.edit_interval", t.EditInterval, 0, time.Hour)
	p.between("triage.flap_window", t.FlapWindow, 0, 24*time.Hour)
	p.between("triage.max_age", t.MaxAge, time.Minute, 30*24*time.Hour)
	p.between("triage.look_back", t.LookBack, 5*time.Minute, 24*time.Hour)
	p.between("triage.max_window", t.MaxWindow, 10*time.Minute, 24*time.Hour)
	p.between("triage.timeout", t.Timeout, time.Second, 10*time.Minute)
	p.number("triage.max_replicas", t.MaxReplicas, 200)
	p.number("triage.workers", t.Workers, 64)
	for i, m := range t.Matchers {
		if _, err := parser.NewParser(parser.Options{}).ParseMetricSelector("{" + m + `,__name__="x"}`); err != nil {
			p.add("triage.matchers["+strconv.Itoa(i)+"]", `must be a PromQL matcher such as cluster="eu-1"`)
		}
	}
	p.directory("triage.knowledge_dir", t.KnowledgeDir)
	p.directory("triage.runbook_dir", t.RunbookDir)
}

func (c *Config) validateLinks(p *problems) {
	if c.Links.Prometheus != "" {
		p.link("links.prometheus", strings.NewReplacer("{", "", "}", "").Replace(c.Links.Prometheus))
	}
	if g := c.Links.GrafanaExplore; g != "" {
		p.link("links.grafana_explore", strings.NewReplacer("{", "", "}", "").Replace(g))
		if !strings.Contains(g, "{query}") && !strings.Contains(g, "{query_json}") {
			p.add("links.grafana_explore", "must hold {query} or {query_json}, and may hold {from} and {to}")
		}
	}
}

func (c *Config) validateHeartbeat(p *problems) {
	p.between("heartbeat.timeout", c.Heartbeat.Timeout, 10*time.Second, 24*time.Hour)
	p.audience("heartbeat", c.Heartbeat.Channel, "", "", "")
}

func (p *problems) listen(path, address string) {
	_, port, err := net.SplitHostPort(address)
	if n, convErr := strconv.Atoi(port); err != nil || convErr != nil || n < 0 || n > 65535 {
		p.add(path, `must be host:port or :port, such as ":9099"`)
	}
}

// link checks an address that readers open: absolute, http or https, without credentials.
func (p *problems) link(path, s string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		p.add(path, "must be an http or https URL")
	case u.User != nil:
		p.add(path, "must not hold a user or password")
	}
}

// base checks an address that the service asks. Its text is not quoted: it may hold a password.
func (p *problems) base(path string, a Address) {
	u, err := url.Parse(a.Raw())
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		p.add(path, "must be an http or https URL")
	case u.Fragment != "":
		p.add(path, "must not hold a fragment (#…)")
	case strings.Contains(u.Path+"/", "/api/v"):
		p.add(path, "must be the base, without /api/…")
	}
}

func (p *problems) between(path string, d model.Duration, low, high time.Duration) {
	if time.Duration(d) < low || time.Duration(d) > high {
		p.add(path, "must be between "+model.Duration(low).String()+" and "+model.Duration(high).String())
	}
}

func (p *problems) number(path string, n, high int) {
	if n < 1 || n > high {
		p.add(path, "must be between 1 and "+strconv.Itoa(high))
	}
}

func (p *problems) labelName(path, name string) {
	if !labelPattern.MatchString(name) {
		p.add(path, strconv.Quote(name)+" is no label name")
	}
}

func (p *problems) readable(path, file string) {
	f, err := os.Open(file)
	if err != nil {
		p.add(path, err.Error())
		return
	}
	_ = f.Close()
}

func (p *problems) directory(path, dir string) {
	if dir == "" {
		return
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		p.add(path, err.Error())
	case !info.IsDir():
		p.add(path, dir+" is not a directory")
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Warnings lists what is allowed but probably not meant.
func (c *Config) Warnings() []string {
	var out []string
	if !c.Webhook.Authenticated() {
		out = append(out, "webhook: no bearer_token_file, basic_auth or by_web_config: serve refuses to start without --insecure-no-auth")
	}
	if !c.Slack.Enabled() {
		out = append(out, "slack: no bot_token: incidents are shown on the pages only")
	}
	if c.Server.ExternalURL == "" {
		out = append(out, "server.external_url: not set: messages carry no links to incident pages and runbooks")
	}
	if c.Slack.Enabled() && !c.Slack.AppToken.IsSet() && !c.Slack.SigningSecret.IsSet() {
		out = append(out, "slack: neither app_token nor signing_secret: buttons and commands do not work")
	}
	if c.Links.Prometheus == "" {
		out = append(out, "links.prometheus: not set: queries in messages are not links")
	}
	return out
}
