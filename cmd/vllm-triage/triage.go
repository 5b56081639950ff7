package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/config"

	"vllm-triage/promq"
	"vllm-triage/triage"
)

func runTriage(ctx context.Context, env environment) error {
	fs := flags(env, "triage", "", "Ask a live Prometheus what binds a model now, or did at a time, and what changed.")
	url := fs.String("prometheus", env.getenv("VLLM_TRIAGE_PROMETHEUS_URL"), "`URL` of Prometheus or what speaks its API")
	httpFile := fs.String("http-config", "", "`file` with an http_config as Prometheus has it (authentication, TLS, headers)")
	model := fs.String("model", "", "model_name; empty takes the one with data")
	namespace := fs.String("namespace", "", "namespace")
	instance := fs.String("instance", "", "instance")
	at := fs.String("at", "", "`time` to ask about, RFC 3339 or HH:MM of today; empty is now")
	forFlag := fs.Duration("for", 0, "how long the trouble has lasted; 0 lets the data decide")
	timeout := fs.Duration("timeout", 30*time.Second, "limit for one query")
	output := fs.String("output", "text", "`format`: text, json (the report) or slack (Block Kit of the message and its details)")
	lang := fs.String("lang", "en", "language of the text: en or ko")
	dirKB := fs.String("knowledge", "", "directory with causes and signals that override or add to the built-in ones")
	if _, err := parse(fs, env.args); err != nil {
		return err
	}
	if *url == "" {
		return usagef("--prometheus is missing, for example --prometheus http://127.0.0.1:9090")
	}
	now, err := askedTime(*at, time.Now())
	if err != nil {
		return err
	}
	if err := checkOutput(*output, *lang); err != nil {
		return err
	}
	if *forFlag < 0 {
		return usagef("--for is negative")
	}
	httpConfig := promq.DefaultHTTP()
	if *httpFile != "" {
		loaded, _, err := config.LoadHTTPConfigFile(*httpFile)
		if err != nil {
			return err
		}
		httpConfig = *loaded
	}
	base, err := loadKnowledge(*dirKB)
	if err != nil {
		return err
	}
	client, err := promq.NewClient(promq.Config{URL: *url, HTTP: httpConfig, Timeout: *timeout})
	if err != nil {
		return err
	}
	scope := triage.Scope{Model: *model, Namespace: *namespace, Instance: *instance}
	report, err := triage.NewEngine(base, client, triage.Options{}).Triage(ctx, triage.NewAdhoc(scope, now, *forFlag))
	if err != nil {
		return err
	}
	if err := printReport(env.stdout, report, *output, *lang); err != nil {
		return err
	}
	return unanswered(report)
}

// unanswered is an error when Prometheus answered nothing at all: the report then tells about Prometheus and not about
// the model, and a script must see that. It carries what the first query met.
func unanswered(r triage.Report) error {
	for _, q := range r.QueryLog {
		if q.Error == "" {
			return nil
		}
	}
	if len(r.QueryLog) == 0 {
		return nil
	}
	return fmt.Errorf("none of %d queries was answered: %s", len(r.QueryLog), r.QueryLog[0].Error)
}

// askedTime reads a point in time as people write it.
func askedTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return now, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		if t.After(now) {
			return time.Time{}, usagef("--at %s has not come yet: it is %s", s, now.UTC().Format(time.RFC3339))
		}
		return t, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if t.After(now) {
				t = t.AddDate(0, 0, -1) // 23:50, asked at 00:10, was yesterday.
			}
			return t, nil
		}
	}
	return time.Time{}, usagef("--at %q is neither RFC 3339 (2026-11-29T14:05:00Z) nor a time of day (14:05)", s)
}
