// Package reload takes up a changed configuration while the service runs: on a signal, on a request, and when a file that it
// was read from changes. A reload that fails changes nothing.
package reload

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Triggers of a reload: a closed set, they are a metric label.
const (
	BySignal  = "signal"
	ByRequest = "request"
	ByFile    = "file"
)

// Options are what a Reloader needs.
type Options struct {
	// Apply reads, validates and builds everything new and then puts it in place. When it returns an error, what was in
	// place still is.
	Apply func(ctx context.Context) error
	// Paths lists the files and directories whose change is a reason to reload; it is asked each time, as a reload may
	// change them.
	Paths func() []string
	// Every is how often Paths are looked at; 0 does not look.
	Every    time.Duration
	Log      *zap.Logger
	Registry prometheus.Registerer
}

// Reloader runs one reload at a time.
type Reloader struct {
	o    Options
	seen string // Fingerprint of the paths at the last reload.

	mu          sync.Mutex
	reloads     *prometheus.CounterVec
	successful  prometheus.Gauge
	lastSuccess prometheus.Gauge
}

// New returns a Reloader for a configuration that has just been put in place, which counts as the first success.
func New(o Options) *Reloader {
	r := &Reloader{
		o: o,
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_config_reloads_total", Help: "Reloads of the configuration, by what asked for them and how they ended.",
		}, []string{"trigger", "result"}),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vllm_triage_config_last_reload_successful", Help: "Whether the last reload of the configuration was taken up.",
		}),
		lastSuccess: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vllm_triage_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration in force was taken up, in seconds since 1970.",
		}),
	}
	for _, trigger := range []string{BySignal, ByRequest, ByFile} {
		for _, result := range []string{"success", "failure"} {
			r.reloads.WithLabelValues(trigger, result)
		}
	}
	if o.Registry != nil {
		o.Registry.MustRegister(r.reloads, r.successful, r.lastSuccess)
	}
	r.seen = Fingerprint(o.Paths()...)
	r.successful.Set(1)
	r.lastSuccess.SetToCurrentTime()
	return r
}

// Reload takes up the configuration now. The error says why it was refused; it is logged and counted already.
func (r *Reloader) Reload(ctx context.Context, trigger string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Before reading: a change in between is then seen as one.
	seen := Fingerprint(r.o.Paths()...)
	err := r.o.Apply(ctx)
	r.seen = seen
	if err != nil {
		r.reloads.WithLabelValues(trigger, "failure").Inc()
		r.successful.Set(0)
		r.o.Log.Error("configuration not reloaded: the old one stays in force", zap.String("trigger", trigger), zap.Error(err))
		return err
	}
	// A reload may bring other paths.
	if trigger != ByFile {
		r.seen = Fingerprint(r.o.Paths()...)
	}
	r.reloads.WithLabelValues(trigger, "success").Inc()
	r.successful.Set(1)
	r.lastSuccess.SetToCurrentTime()
	r.o.Log.Info("configuration reloaded", zap.String("trigger", trigger))
	return nil
}

// Run reloads on signals and file changes until ctx ends.
func (r *Reloader) Run(ctx context.Context, signals <-chan os.Signal) {
	var tick <-chan time.Time
	if r.o.Every > 0 {
		t := time.NewTicker(r.o.Every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			_ = r.Reload(ctx, BySignal) // Logged and counted there.
		case <-tick:
			if r.changed() {
				_ = r.Reload(ctx, ByFile) // The same.
			}
		}
	}
}

func (r *Reloader) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Fingerprint(r.o.Paths()...) != r.seen
}
