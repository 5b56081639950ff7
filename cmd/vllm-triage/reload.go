package main

import (
	"context"
	"crypto/sha256"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/config"
)

// watchEvery is how often the configuration file is looked at. Polling sees what a mounted Kubernetes volume does, which
// file notifications often do not.
const watchEvery = 10 * time.Second

// reload loads the configuration, builds everything anew and swaps it in. A mistake changes nothing.
func reload(s *server.Server, m *server.Metrics, log *zap.Logger, file string, env config.Lookup, open bool) error {
	cfg, err := config.Load(file, env)
	if err == nil {
		err = mayServe(cfg, open)
	}
	var parts *server.Parts
	if err == nil {
		parts, err = assemble(cfg)
	}
	if err != nil {
		m.Loaded(false, time.Now())
		log.Error("configuration not loaded, the old one stays in force", zap.String("file", file), zap.Error(err))
		return err
	}
	for _, key := range needsRestart(s.Parts().Config, cfg) {
		log.Warn("a change of this key takes effect at the next start", zap.String("key", key))
	}
	s.Swap(parts)
	m.Loaded(true, time.Now())
	log.Info("configuration loaded", zap.String("file", file), zap.String("knowledge", parts.Knowledge.Hash))
	return nil
}

// needsRestart lists the keys that differ and cannot change while the service runs.
func needsRestart(old, fresh *config.Config) []string {
	var out []string
	for key, differs := range map[string]bool{
		"server.listen":          old.Server.Listen != fresh.Server.Listen,
		"server.metrics_listen":  old.Server.MetricsListen != fresh.Server.MetricsListen,
		"server.web_config_file": old.Server.WebConfigFile != fresh.Server.WebConfigFile,
		"storage":                !old.Storage.Equal(fresh.Storage),
		"triage.workers":         old.Triage.Workers != fresh.Triage.Workers,
	} {
		if differs {
			out = append(out, key)
		}
	}
	return out
}

// watch calls changed on SIGHUP and when the content of the file changes.
func watch(ctx context.Context, file string, changed func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer signal.Stop(hup)
		t := time.NewTicker(watchEvery)
		defer t.Stop()
		last := digest(file)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				last = digest(file)
				changed()
			case <-t.C:
				if now := digest(file); now != last {
					last = now
					changed()
				}
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// digest is the hash of a file; the zero hash when it cannot be read.
func digest(file string) [sha256.Size]byte {
	data, err := os.ReadFile(file) //nolint:gosec // The operator names it.
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(data)
}
