package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/exporter-toolkit/web"

	"vllm-triage/config"
	"vllm-triage/notify/slack"
	"vllm-triage/promq"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/kb/runbook"
	"vllm-triage/triage/store"
)

func runCheck(ctx context.Context, env environment) error {
	set := flags(env, "check", "", `Check a configuration file and say how it was understood: warnings, routes, knowledge base, runbooks.

With --live also ask Prometheus, Alertmanager, the database and Slack whether they can be used. Nothing is posted.`)
	path := set.String("config", defaultConfig, "configuration `file`")
	live := set.Bool("live", false, "also ask Prometheus, Alertmanager, the database and Slack")
	dump := set.Bool("dump", false, "print the configuration with defaults filled in and secrets hidden, and nothing else")
	example := set.Bool("print-example", false, "print a commented example with every key, and nothing else")
	if rest, err := parse(set, env.args); err != nil {
		return err
	} else if len(rest) > 0 {
		return usagef("unexpected argument %q; the file is named by --config", rest[0])
	}
	if *example {
		_, err := env.stdout.Write(config.Example())
		return err
	}
	c, err := loadConfig(env, *path)
	if err != nil {
		return err
	}
	if *dump {
		text, err := c.Dump()
		if err != nil {
			return err
		}
		_, err = env.stdout.Write(text)
		return err
	}
	r := &checks{w: env.stdout}
	r.ok("configuration", "%s", *path)
	r.configuration(c)
	r.knowledge(c)
	r.routes(c)
	if *live {
		r.prometheus(ctx, c)
		r.alertmanager(ctx, c)
		r.store(ctx, c)
		r.slack(ctx, c)
	}
	if r.failed > 0 {
		return fmt.Errorf("%d of the checks failed", r.failed)
	}
	return nil
}

// checks writes one line for each thing looked at and counts those that do not work.
type checks struct {
	w      io.Writer
	failed int
}

func (r *checks) ok(what, format string, args ...any) {
	fmt.Fprintf(r.w, "ok       %s: %s\n", what, fmt.Sprintf(format, args...))
}

func (r *checks) warn(what, format string, args ...any) {
	fmt.Fprintf(r.w, "warning  %s: %s\n", what, fmt.Sprintf(format, args...))
}

func (r *checks) fail(what string, err error) {
	r.failed++
	fmt.Fprintf(r.w, "FAILED   %s: %s\n", what, strings.ReplaceAll(err.Error(), "\n", "\n         "))
}

func (r *checks) configuration(c *config.Config) {
	for _, w := range c.Warnings() {
		what, text, _ := strings.Cut(w, ": ")
		r.warn(what, "%s", text)
	}
	if file := c.Server.WebConfigFile; file != "" {
		if err := web.Validate(file); err != nil {
			r.fail("server.web_config_file", err)
		} else {
			r.ok("server.web_config_file", "%s", file)
		}
	}
}

func (r *checks) knowledge(c *config.Config) {
	base, err := loadKnowledge(c.Triage.KnowledgeDir)
	if err != nil {
		r.fail("knowledge base", err)
	} else {
		r.ok("knowledge base", "%s, %s, %s, hash %s%s", count(len(base.OnAxis(kb.Bottleneck)), "bottleneck"),
			count(len(base.OnAxis(kb.Trigger)), "trigger"), count(len(base.Signals), "signal"), base.Hash,
			over(c.Triage.KnowledgeDir))
	}
	book, err := loadRunbooks(c.Triage.RunbookDir)
	if err != nil {
		r.fail("runbooks", err)
		return
	}
	r.ok("runbooks", "%s in %s%s", count(len(book.IDs()), "page"), strings.Join(runbook.Languages(), ", "),
		over(c.Triage.RunbookDir))
}

func over(dir string) string {
	if dir == "" {
		return ""
	}
	return ", with files of " + dir
}

func (r *checks) routes(c *config.Config) {
	for i, route := range c.Routes {
		r.ok(fmt.Sprintf("routes[%d]", i), "%s", c.Describe(route))
	}
	r.ok("all others", "%s", c.Describe(config.Route{}))
}

// liveTimeout bounds each question of --live.
const liveTimeout = 15 * time.Second

func (r *checks) prometheus(ctx context.Context, c *config.Config) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	client, err := prometheusClient(c)
	if err != nil {
		r.fail("prometheus", err)
		return
	}
	defer client.Close()
	version, err := client.BuildInfo(ctx)
	switch {
	case promq.IsUnauthorized(err), promq.IsUnavailable(err), promq.IsTimeout(err):
		r.fail("prometheus", err)
		return
	case err != nil || version == "":
		// Some servers that speak the API do not tell their version; a login page answers no query either.
		if _, err := client.Query(ctx, "vector(1)", time.Now()); err != nil {
			r.fail("prometheus", err)
			return
		}
		version = "unknown version"
	}
	r.ok("prometheus", "%s answers (%s)", client.Target(), version)
	r.models(ctx, client)
	r.rules(ctx, client)
}

// models says which models are scraped, and so what can be triaged.
func (r *checks) models(ctx context.Context, client *promq.Client) {
	const query = `count by (model_name) ({__name__=~"vllm[:_]num_requests_running"})`
	res, err := client.Query(ctx, query, time.Now())
	if err != nil {
		r.fail("vLLM metrics", err)
		return
	}
	vector, _ := res.Value.(model.Vector)
	if len(vector) == 0 {
		r.warn("vLLM metrics", "none found: is vLLM scraped by this Prometheus?")
		return
	}
	var models []string
	for _, s := range vector {
		models = append(models, fmt.Sprintf("%q (%s)", string(s.Metric["model_name"]), count(int(s.Value), "engine")))
	}
	slices.Sort(models)
	r.ok("vLLM metrics", "%s", strings.Join(models, ", "))
}

// ofVLLM matches queries about vLLM's metrics, in both spellings.
var ofVLLM = regexp.MustCompile(`\bvllm[:_]`)

// rules says which alerts the server evaluates that can lead to an incident, and how long each waits before it fires.
func (r *checks) rules(ctx context.Context, client *promq.Client) {
	res, err := client.Rules(ctx)
	if err != nil {
		r.warn("alert rules", "not told by this server: %v", err)
		return
	}
	var names []string
	for _, g := range res.Groups {
		for _, rule := range g.Rules {
			if a, ok := rule.(v1.AlertingRule); ok && ofVLLM.MatchString(a.Query) {
				names = append(names, fmt.Sprintf("%s (for %s)", a.Name, model.Duration(a.Duration*float64(time.Second))))
			}
		}
	}
	if len(names) == 0 {
		r.warn("alert rules", "none about vLLM: see deploy/prometheus/rules")
		return
	}
	slices.Sort(names)
	r.ok("alert rules", "%s", strings.Join(slices.Compact(names), ", "))
}

// alertmanager asks each member of the cluster by itself: the service is content with one, and would not notice the others.
func (r *checks) alertmanager(ctx context.Context, c *config.Config) {
	for i, peer := range c.Alertmanager.Peers() {
		what := "alertmanager"
		if len(c.Alertmanager.URLs) > 0 {
			what += ".urls[" + strconv.Itoa(i) + "]"
		}
		limited, cancel := context.WithTimeout(ctx, liveTimeout)
		client, err := alertmanagerAt(c, peer)
		if err == nil {
			var version string
			if version, err = client.Version(limited); err == nil {
				r.ok(what, "%s answers (%s)", peer, version)
			}
			client.Close()
		}
		cancel()
		if err != nil {
			r.fail(what, err)
		}
	}
}

func (r *checks) store(ctx context.Context, c *config.Config) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	s, err := existingStore(ctx, c)
	if errors.Is(err, fs.ErrNotExist) {
		r.warn("storage", "%v: serve makes one", err)
		return
	}
	if err != nil {
		r.fail("storage", err)
		return
	}
	err = s.Ping(ctx)
	var stats store.Stats
	if err == nil {
		stats, err = s.Stats(ctx, time.Now())
	}
	if err = errors.Join(err, s.Close()); err != nil {
		r.fail("storage", err)
		return
	}
	r.ok("storage", "%s, %s, %d firing, %.1f MB", s.Engine(),
		count(stats.Incidents["firing"]+stats.Incidents["resolved"], "incident"), stats.Incidents["firing"], float64(stats.Bytes)/1e6)
}

func (r *checks) slack(ctx context.Context, c *config.Config) {
	if !c.Slack.Enabled() {
		return // The warnings say so.
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	n, err := slackNotifier(c)
	if err != nil {
		r.fail("slack", err)
		return
	}
	id, err := n.Check(ctx)
	if err != nil {
		r.fail("slack", err)
		return
	}
	r.ok("slack", "%s in %s (%s)", id.User, id.Team, id.URL)
	for _, scope := range id.Missing {
		r.fail("slack", fmt.Errorf("scope %s is missing: add it under OAuth & Permissions and install the app again", scope))
	}
	groups := c.Slack.Permissions.Groups()
	if len(groups) > 0 && !id.Can(slack.ScopeGroups) {
		r.fail("slack", fmt.Errorf("scope %s is missing: slack.permissions names %s, and without the scope nobody is let in by group",
			slack.ScopeGroups, strings.Join(groups, ", ")))
	}
	for _, m := range id.Optional {
		if m.Scope == slack.ScopeGroups {
			continue // Said above where it matters.
		}
		r.warn("slack", "without scope %s: no %s", m.Scope, m.Loses)
	}
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
