package server

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/cmd/vllm-triage/server/sweep"
	"vllm-triage/config"
	"vllm-triage/notify"
	"vllm-triage/triage"
	"vllm-triage/triage/kb"
	"vllm-triage/triage/kb/runbook"
	"vllm-triage/triage/store"
)

// Triager answers an incident. *triage.Engine is one.
type Triager interface {
	Triage(ctx context.Context, in triage.Incident) (triage.Report, error)
}

// Parts are what a configuration builds. A reload swaps them as a whole.
type Parts struct {
	Config    *config.Config
	Knowledge *kb.Base
	Runbooks  *runbook.Book
	Engine    Triager
	// Notifier delivers messages; nil keeps them on the pages only.
	Notifier notify.Notifier
	// Pictures says that the notifier may be given pictures.
	Pictures bool
	// Ping asks the chat for a sign of life; nil: readiness does not depend on it.
	Ping func(ctx context.Context) error
	// Models and Silencer are for the slash command and the buttons; see chatops.Settings.
	Models   chatops.ModelSource
	Silencer chatops.Silencer
	// Alerts knows which alerts fire; nil: ends of alerts that got lost are not looked for.
	Alerts sweep.Source

	// picturesRefused is set once the chat has said that it takes none of ours: it is not asked for each incident.
	picturesRefused atomic.Bool
}

// Options are what a Server needs that no configuration file says.
type Options struct {
	Parts   *Parts
	Store   *store.Store
	Log     *zap.Logger
	Metrics *Metrics
	Version string
	// Tracing takes the traces of webhooks, triages and deliveries; nil: none are made.
	Tracing trace.TracerProvider
	// Gatherer is what /metrics shows; nil: the address does not exist.
	Gatherer prometheus.Gatherer
	// Owner names this process in leases; it must be unique among replicas.
	Owner string
	// Now is the clock; nil is time.Now. It is read at the edges only: receipt, claim, delivery.
	Now func() time.Time
	// Open serves everything without credentials. It is for a listener on loopback.
	Open bool
	// Reload loads the configuration again; nil: reloading is not possible.
	Reload func() error
	// Level is the level of Log, to be read and changed while the service runs; nil: it is fixed.
	Level *zap.AtomicLevel
	// ResponseHosts are hosts that Slack's response URLs may lead to beside Slack's own: for tests and demonstrations.
	ResponseHosts []string
	// Timeouts bound how long a client may take; the zero value takes the defaults.
	Timeouts Timeouts
}

// Timeouts bound the parts of a request; see http.Server.
type Timeouts struct{ Header, Read, Write, Idle time.Duration }

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Header: cmp.Or(t.Header, 5*time.Second), Read: cmp.Or(t.Read, 30*time.Second),
		Write: cmp.Or(t.Write, time.Minute), Idle: cmp.Or(t.Idle, 2*time.Minute),
	}
}
