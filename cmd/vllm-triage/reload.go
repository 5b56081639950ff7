package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/cmd/vllm-triage/server/reload"
	"vllm-triage/config"
)

// reloadEvery is how often the files of the configuration are looked at. Polling sees what a mounted Kubernetes volume does,
// which file notifications often do not.
const reloadEvery = 10 * time.Second

// source is where the configuration comes from.
type source struct {
	file string
	env  config.Lookup
	open bool // The service serves without credentials.
}

// paths are the files whose change is a reason to load the configuration again.
func (f source) paths(c *config.Config) []string {
	return []string{f.file, c.Triage.KnowledgeDir, c.Triage.RunbookDir}
}

// apply loads the configuration, builds everything anew and puts it in place. A mistake changes nothing.
func apply(ctx context.Context, s *server.Server, log *zap.Logger, level *zap.AtomicLevel, from source) error {
	cfg, err := config.Load(from.file, from.env)
	if err != nil {
		return err
	}
	if err := mayServe(cfg, from.open); err != nil {
		return err
	}
	fresh, err := zap.ParseAtomicLevel(cfg.Log.Level)
	if err != nil {
		return err
	}
	parts, err := assemble(cfg)
	if err != nil {
		return err
	}
	for _, key := range needsRestart(s.Parts().Config, cfg) {
		log.Warn("a change of this key takes effect at the next start", zap.String("key", key))
	}
	level.SetLevel(fresh.Level())
	s.Swap(parts)
	s.Revive(ctx) // What was given up may work now.
	return nil
}

// needsRestart lists the keys that differ and cannot change while the service runs, sorted.
func needsRestart(old, fresh *config.Config) []string {
	var out []string
	for key, differs := range map[string]bool{
		"log.format":             old.Log.Format != fresh.Log.Format,
		"pages.link_key":         !old.Pages.LinkKey.Equal(fresh.Pages.LinkKey),
		"pages.rate_limit":       old.Pages.RateLimit != fresh.Pages.RateLimit,
		"server.listen":          old.Server.Listen != fresh.Server.Listen,
		"server.metrics_listen":  old.Server.MetricsListen != fresh.Server.MetricsListen,
		"server.web_config_file": old.Server.WebConfigFile != fresh.Server.WebConfigFile,
		"storage":                !old.Storage.Equal(fresh.Storage),
		"tracing":                old.Tracing.Endpoint.Raw() != fresh.Tracing.Endpoint.Raw() || old.Tracing.Sample != fresh.Tracing.Sample,
		"triage.workers":         old.Triage.Workers != fresh.Triage.Workers,
	} {
		if differs {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// watch loads the configuration again on SIGHUP and when its files change, until ctx ends.
func watch(ctx context.Context, r *reload.Reloader) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	r.Run(ctx, hup)
}
