package config

import (
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// DefaultListen is the address of a configuration that names none.
const DefaultListen = ":9099"

// DefaultStorage is the database of a configuration that names none: a file in the working directory.
const DefaultStorage = "sqlite:vllm-triage.db"

// Default returns the configuration that a file is decoded over. It lacks what has no default: credentials and
// prometheus.url.
func Default() Config {
	return Config{
		Server:    Server{Listen: DefaultListen, ShutdownTimeout: seconds(25)},
		Webhook:   Webhook{MaxBody: 2 << 20, MaxAlerts: 10_000},
		Pages:     Pages{Links: true, LinkTTL: days(30), PublicRunbooks: true, RateLimit: 20},
		Retention: days(90),
		Prometheus: Prometheus{
			HTTP: defaultHTTP(), Timeout: seconds(10), Concurrency: 8, MaxResponse: 16 << 20,
		},
		Alertmanager: Alertmanager{HTTP: defaultHTTP(), Timeout: seconds(10)},
		Slack: Slack{
			APIURL: "https://slack.com/api/", Timeout: seconds(15), Language: "en", Timezone: "UTC",
		},
		Triage: Triage{
			Debounce:     seconds(20),
			Retriage:     []model.Duration{seconds(120), seconds(300), seconds(600)},
			EditInterval: seconds(30),
			FlapWindow:   seconds(15 * 60),
			MaxAge:       days(1),
			LookBack:     seconds(3600),
			MaxWindow:    seconds(6 * 3600),
			Timeout:      seconds(60),
			MaxReplicas:  16,
			Workers:      4,
		},
		Heartbeat: Heartbeat{Alertnames: []string{"Watchdog", "VLLMTriageHeartbeat"}, Timeout: seconds(300)},
		Log:       Log{Level: "info", Format: "json"},
		Tracing:   Tracing{Sample: 1},
	}
}

// defaultHTTP is the client of prometheus/common with its own defaults, except that no redirect is followed: it would
// nearly always lead to a login page, which must be seen as an error and must not get the credentials.
func defaultHTTP() HTTPClient {
	c := promconfig.DefaultHTTPClientConfig
	c.FollowRedirects = false
	return NewHTTPClient(c)
}

func seconds(n int) model.Duration { return model.Duration(time.Duration(n) * time.Second) }

func days(n int) model.Duration { return model.Duration(time.Duration(n) * 24 * time.Hour) }
