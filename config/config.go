package config

import (
	"net/url"

	"github.com/prometheus/common/model"
)

// Config is the whole configuration of the service. Load fills it; a Config made by hand has not been validated.
type Config struct {
	Server       Server         `yaml:"server"`
	Webhook      Webhook        `yaml:"webhook"`
	Pages        Pages          `yaml:"pages"`
	Storage      Secret         `yaml:"storage"`
	StorageFile  string         `yaml:"storage_file,omitempty"`
	Retention    model.Duration `yaml:"retention"` // How long resolved incidents are kept.
	Prometheus   Prometheus     `yaml:"prometheus"`
	Alertmanager Alertmanager   `yaml:"alertmanager"`
	Slack        Slack          `yaml:"slack"`
	Routes       []Route        `yaml:"routes,omitempty"`
	Triage       Triage         `yaml:"triage"`
	Links        Links          `yaml:"links"`
	Heartbeat    Heartbeat      `yaml:"heartbeat"`
	Log          Log            `yaml:"log"`
	Tracing      Tracing        `yaml:"tracing"`
}

// Server says where the service listens and how readers reach it.
type Server struct {
	Listen      string `yaml:"listen"`       // host:port of the webhook, the pages and the Slack callbacks.
	ExternalURL string `yaml:"external_url"` // Where readers reach Listen; empty: messages carry no links to pages.
	// MetricsListen takes /metrics and health (/-/healthy, /-/ready, /-/accepting) to a port of their own, without authentication.
	MetricsListen string `yaml:"metrics_listen,omitempty"`
	// WebConfigFile is a web configuration of prometheus/exporter-toolkit: TLS, client certificates, users.
	WebConfigFile string `yaml:"web_config_file,omitempty"`
	// TrustedProxies are the CIDRs whose X-Forwarded-For and user header are believed. Empty: none.
	TrustedProxies  []string       `yaml:"trusted_proxies,omitempty"`
	ShutdownTimeout model.Duration `yaml:"shutdown_timeout"` // At most 25 s, so that Kubernetes does not kill first.
}

// Webhook says who may post alerts, and how much at once. Its credentials also open the API and /-/reload.
type Webhook struct {
	BearerToken     Secret     `yaml:"bearer_token,omitempty"`
	BearerTokenFile string     `yaml:"bearer_token_file,omitempty"`
	BasicAuth       *BasicAuth `yaml:"basic_auth,omitempty"`
	// ByWebConfig accepts what server.web_config_file verified: a client certificate, or one of its users.
	ByWebConfig bool  `yaml:"by_web_config,omitempty"`
	MaxBody     Bytes `yaml:"max_body"`
	MaxAlerts   int   `yaml:"max_alerts"`
}

// BasicAuth is a user with a password.
type BasicAuth struct {
	Username     string `yaml:"username"`
	Password     Secret `yaml:"password,omitempty"`
	PasswordFile string `yaml:"password_file,omitempty"`
}

// Pages says who may read the incident pages and the API, beside the holders of the webhook's credentials.
type Pages struct {
	// Links signs the links in messages: whoever has one reads that incident until it expires.
	Links   bool           `yaml:"links"`
	LinkTTL model.Duration `yaml:"link_ttl"`
	// LinkKey signs the links; without one the service makes a key and keeps it in its database.
	LinkKey     Secret `yaml:"link_key,omitempty"`
	LinkKeyFile string `yaml:"link_key_file,omitempty"`
	// UserHeader is the header in which an authenticating proxy names the user; it counts only from server.trusted_proxies.
	UserHeader string `yaml:"user_header,omitempty"`
	// PublicRunbooks serves runbooks without an incident's numbers to everyone: alert rules link to them.
	PublicRunbooks bool `yaml:"public_runbooks"`
	RateLimit      int  `yaml:"rate_limit"` // Requests a second and source, to pages and API.
}

// Prometheus says which server the engine asks.
type Prometheus struct {
	URL         Address             `yaml:"url"`
	HTTP        HTTPClient          `yaml:"http_config"`
	Timeout     model.Duration      `yaml:"timeout"`
	Concurrency int                 `yaml:"concurrency"`
	MaxResponse Bytes               `yaml:"max_response"`
	Params      map[string][]string `yaml:"params,omitempty"` // Sent with every query, such as dedup: ["true"].
}

// Values returns Params as URL parameters.
func (p Prometheus) Values() url.Values { return url.Values(p.Params) }

// Alertmanager says where silences are made and lost resolves looked up. It is optional.
type Alertmanager struct {
	URL Address `yaml:"url,omitempty"`
	// URLs are the members of a cluster, instead of URL. They are asked in this order until one answers.
	URLs    []Address      `yaml:"urls,omitempty"`
	HTTP    HTTPClient     `yaml:"http_config"`
	Timeout model.Duration `yaml:"timeout"`
}

// Peers are the addresses to ask, in order; empty when there is no Alertmanager.
func (a Alertmanager) Peers() []Address {
	if a.URL.IsZero() {
		return a.URLs
	}
	return []Address{a.URL}
}

// Slack is the app that posts.
type Slack struct {
	BotToken          Secret         `yaml:"bot_token,omitempty"`
	BotTokenFile      string         `yaml:"bot_token_file,omitempty"`
	SigningSecret     Secret         `yaml:"signing_secret,omitempty"`
	SigningSecretFile string         `yaml:"signing_secret_file,omitempty"`
	AppToken          Secret         `yaml:"app_token,omitempty"` // With it the app uses Socket Mode.
	AppTokenFile      string         `yaml:"app_token_file,omitempty"`
	APIURL            string         `yaml:"api_url"`
	Timeout           model.Duration `yaml:"timeout"`
	// Channel, Language, Timezone and Mention are what a route takes when it says nothing.
	Channel  string `yaml:"channel,omitempty"`
	Language string `yaml:"language"`
	Timezone string `yaml:"timezone"`
	Mention  string `yaml:"mention,omitempty"`
	// Permissions says who may use commands, buttons and silences; empty: everybody in the workspace.
	Permissions Permissions `yaml:"permissions,omitempty"`
}

// Enabled says whether there is a bot token, without reading it.
func (s Slack) Enabled() bool { return s.BotToken.IsSet() }

// Triage tunes the engine and when it runs.
type Triage struct {
	Debounce model.Duration `yaml:"debounce"` // Wait for more alerts after the first one.
	// Retriage are the times after the first alert at which a firing incident is looked at again.
	Retriage     []model.Duration `yaml:"retriage"`
	EditInterval model.Duration   `yaml:"edit_interval"` // A message is edited at most this often.
	// FlapWindow is how long after its end an incident is continued instead of a new one opened.
	FlapWindow model.Duration `yaml:"flap_window"`
	// MaxAge is how old an incident's news may be before it is no longer posted.
	MaxAge      model.Duration `yaml:"max_age"`
	LookBack    model.Duration `yaml:"look_back"`
	MaxWindow   model.Duration `yaml:"max_window"`
	Timeout     model.Duration `yaml:"timeout"`
	MaxReplicas int            `yaml:"max_replicas"` // Replicas that are read one by one.
	Workers     int            `yaml:"workers"`      // Triages at once.
	// Matchers are added to every query, in PromQL: cluster="eu-1", region=~"eu.*".
	Matchers []string `yaml:"matchers,omitempty"`
	// KnowledgeDir lays files over the built-in knowledge base: signals.yaml, causes/*.yaml.
	KnowledgeDir string `yaml:"knowledge_dir,omitempty"`
	// RunbookDir lays pages over the built-in runbooks: en/<cause>.md, ko/<cause>.md.
	RunbookDir string `yaml:"runbook_dir,omitempty"`
}

// Links are addresses that messages lead to. They are shown, never fetched.
type Links struct {
	// Prometheus is where readers reach Prometheus, or a URL with {query} or {query_json} in it as below.
	Prometheus string `yaml:"prometheus,omitempty"`
	// GrafanaExplore is a URL with {query}, {query_json}, {from} and {to} in it.
	GrafanaExplore string `yaml:"grafana_explore,omitempty"`
}

// Heartbeat watches an alert that always fires: when it stops coming, the way from Prometheus to here is broken.
type Heartbeat struct {
	Alertnames []string       `yaml:"alertnames"`
	Timeout    model.Duration `yaml:"timeout"`           // Silence longer than this is reported.
	Channel    string         `yaml:"channel,omitempty"` // Empty: slack.channel.
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error.
	Format string `yaml:"format"` // json or console.
}

// Tracing sends traces of the service's own work to an OpenTelemetry collector. Without an endpoint nothing is sent.
type Tracing struct {
	// Endpoint takes OTLP over HTTP; without a path, /v1/traces is added: http://collector:4318.
	Endpoint Address `yaml:"endpoint,omitempty"`
	Sample   float64 `yaml:"sample"` // Share of the traces that are sent, up to 1. A caller's decision comes first.
}
