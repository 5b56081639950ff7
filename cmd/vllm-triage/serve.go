package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"vllm-triage/cmd/vllm-triage/server"
	"vllm-triage/cmd/vllm-triage/server/reload"
	"vllm-triage/config"
	"vllm-triage/triage/store"
)

func runServe(ctx context.Context, env environment) error {
	fs := flags(env, "serve", "", "Run the service: take Alertmanager's webhooks, triage, tell.")
	file := fs.String("config", defaultConfig, "configuration `file`; \"vllm-triage check --print-example\" prints one")
	open := fs.Bool("insecure-no-auth", false, "serve without any credentials, on loopback only")
	if _, err := parse(fs, env.args); err != nil {
		return err
	}
	cfg, err := loadConfig(env, *file)
	if err != nil {
		return err
	}
	if err := mayServe(cfg, *open); err != nil {
		return err
	}
	log, level, err := newLogger(cfg.Log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }() // Fails on a terminal.
	return serve(ctx, cfg, log, &level, source{*file, env.lookupenv, *open})
}

// mayServe refuses to run without credentials for the webhook, unless that is asked for and nobody else can reach it.
func mayServe(cfg *config.Config, open bool) error {
	authenticated := cfg.Webhook.BearerToken.IsSet() || cfg.Webhook.BasicAuth != nil || cfg.Webhook.ByWebConfig
	if open {
		host, _, err := net.SplitHostPort(cfg.Server.Listen)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("--insecure-no-auth needs server.listen on loopback, for example 127.0.0.1:9099; it is %q",
				cfg.Server.Listen)
		}
		return nil
	}
	if cfg.Webhook.ByWebConfig {
		if err := server.CheckWebConfig(cfg.Server.WebConfigFile); err != nil {
			return err
		}
	}
	if !authenticated {
		return errors.New("nobody may post alerts: set webhook.bearer_token_file (or webhook.basic_auth, or " +
			"webhook.by_web_config); to try it out on loopback, give --insecure-no-auth")
	}
	return nil
}

// newLogger makes a logger and the handle that changes its level.
func newLogger(c config.Log) (*zap.Logger, zap.AtomicLevel, error) {
	level, err := zap.ParseAtomicLevel(c.Level)
	if err != nil {
		return nil, level, fmt.Errorf("log.level: %w", err)
	}
	z := zap.NewProductionConfig()
	if c.Format == "console" {
		z = zap.NewDevelopmentConfig()
		z.Development = false
	}
	z.Level = level
	z.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder
	z.DisableStacktrace = true
	log, err := z.Build()
	return log, level, err
}

// frugalGC makes the collector run when garbage is three quarters of what lives: the service is small and stands beside
// bigger ones, so some megabytes are worth more than a few per cent of the little processor time it takes. GOGC overrides it.
const frugalGC = 75

func serve(ctx context.Context, cfg *config.Config, log *zap.Logger, level *zap.AtomicLevel, from source) error {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(frugalGC)
	}
	parts, err := assemble(cfg)
	if err != nil {
		return err
	}
	st, err := makeStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // What counted was committed before.

	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := server.NewMetrics(reg, version)
	reg.MustRegister(server.NewStoreCollector(st, log))

	owner := ownerName()
	tracing, err := newTracing(ctx, cfg.Tracing, owner, log)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	defer tracing.stop()
	var s *server.Server
	reloader := reload.New(reload.Options{
		Apply: func(ctx context.Context) error { return apply(ctx, s, log, level, from) },
		Paths: func() []string {
			if s == nil { // The first look is taken before there is a server.
				return from.paths(cfg)
			}
			return from.paths(s.Parts().Config)
		},
		Every: reloadEvery, Log: log, Registry: reg,
	})
	s, err = server.New(ctx, server.Options{
		Parts: parts, Store: st, Log: log, Metrics: metrics, Version: version, Owner: owner, Open: from.open, Gatherer: reg, Tracing: tracing.provider,
		Reload: func() error { return reloader.Reload(ctx, reload.ByRequest) }, Level: level,
	})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Server.Listen)
	if err != nil {
		return fmt.Errorf("listen on server.listen: %w", err)
	}
	stopSide, err := serveSide(ctx, cfg.Server.MetricsListen, s.SideHandler(), log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer stopSide()
	for _, w := range cfg.Warnings() {
		log.Warn(w)
	}
	log.Info("vllm-triage serves", zap.String("version", version), zap.String("listen", l.Addr().String()),
		zap.String("store", st.Engine()), zap.String("knowledge", parts.Knowledge.Hash))
	beside, stopBeside := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() {
		stopBeside()
		wg.Wait()
	}()
	wg.Go(func() { greet(beside, s, log) })
	wg.Go(func() { watch(beside, reloader) })
	return s.Serve(ctx, l)
}

// makeStore opens the database of a configuration and makes it where there is none.
func makeStore(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	address, err := cfg.Storage.Read()
	if err != nil {
		return nil, fmt.Errorf("read storage: %w", err)
	}
	return store.Open(ctx, address, store.Options{Refresh: cfg.Storage.Read})
}

// ownerName names this process in leases.
func ownerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // Never fails: crypto/rand ends the program instead.
	return host + "-" + hex.EncodeToString(b[:])
}

// serveSide serves metrics and health on a port of their own, if there is one.
func serveSide(ctx context.Context, address string, h http.Handler, log *zap.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on server.metrics_listen: %w", err)
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics listener ended", zap.Error(err))
		}
	}()
	return func() {
		_ = web.Close()
		<-done
	}, nil
}
