package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vllm-triage/notify"
	"vllm-triage/triage"
)

// The outcomes of a webhook, as the label "result".
const (
	webhookStored      = "stored"
	webhookDuplicate   = "duplicate"
	webhookInvalid     = "invalid"
	webhookTooLarge    = "too_large"
	webhookForbidden   = "unauthorized"
	webhookUnavailable = "unavailable"
)

// Metrics are the service's own, in Prometheus' naming.
type Metrics struct {
	webhooks       *prometheus.CounterVec
	webhookSeconds prometheus.Histogram
	alerts         *prometheus.CounterVec
	incidents      *prometheus.CounterVec
	triages        *prometheus.CounterVec
	triageSeconds  *prometheus.HistogramVec
	queries        *prometheus.CounterVec
	deliveries     *prometheus.CounterVec
	lateness       prometheus.Histogram
	lost           *prometheus.CounterVec
	lookups        *prometheus.CounterVec
	reloadOK       prometheus.Gauge
	reloadTime     prometheus.Gauge
	lastWebhook    prometheus.Gauge
	slackOK        prometheus.Gauge
}

// NewMetrics registers the service's metrics. All series exist from the start, so that rules on them see a zero.
func NewMetrics(r prometheus.Registerer, version string) *Metrics {
	m := &Metrics{
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_webhooks_total", Help: "Webhook requests by result.",
		}, []string{"result"}),
		webhookSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vllm_triage_webhook_duration_seconds", Help: "Time to answer a webhook, its commit included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		alerts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_alerts_received_total", Help: "Alerts in accepted webhooks, by status.",
		}, []string{"status"}),
		incidents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_incidents_total", Help: "What notifications did to incidents.",
		}, []string{"event"}),
		triages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_triages_total", Help: "Triages by verdict; failed ones are repeated.",
		}, []string{"verdict"}),
		triageSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vllm_triage_triage_duration_seconds", Help: "Duration of a triage: all of it, the part that waits for Prometheus.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"stage"}),
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_prometheus_queries_total", Help: "Queries to Prometheus by outcome.",
		}, []string{"outcome"}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_deliveries_total", Help: "Deliveries to chats by result: delivered, or the class of the error.",
		}, []string{"result"}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vllm_triage_delivery_lateness_seconds", Help: "How long news waited before they were delivered.",
			Buckets: []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600},
		}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_lost_total", Help: "What was given up. It must stay 0.",
		}, []string{"what"}),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_message_lookups_total",
			Help: "Messages that were perhaps posted, by what looking for them gave; blind ones may be posted twice.",
		}, []string{"outcome"}),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vllm_triage_config_last_reload_successful", Help: "Whether the last load of the configuration succeeded.",
		}),
		reloadTime: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vllm_triage_config_last_reload_success_timestamp_seconds", Help: "When the configuration was last loaded.",
		}),
		lastWebhook: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vllm_triage_last_webhook_timestamp_seconds", Help: "When the last webhook was accepted.",
		}),
		slackOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vllm_triage_notifier_last_call_successful", Help: "Whether the last call to the chat succeeded.",
		}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "vllm_triage_build_info", Help: "A constant 1 with the version.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	r.MustRegister(build, m.webhooks, m.webhookSeconds, m.alerts, m.incidents, m.triages, m.triageSeconds, m.queries,
		m.deliveries, m.lateness, m.lost, m.lookups, m.reloadOK, m.reloadTime, m.lastWebhook, m.slackOK)
	m.initialise()
	return m
}

func (m *Metrics) initialise() {
	for _, v := range []string{
		webhookStored, webhookDuplicate, webhookInvalid, webhookTooLarge, webhookForbidden, webhookUnavailable,
	} {
		m.webhooks.WithLabelValues(v)
	}
	for _, v := range []string{"firing", "resolved"} {
		m.alerts.WithLabelValues(v)
	}
	for _, v := range []string{"opened", "reopened", "resolved", "joined"} {
		m.incidents.WithLabelValues(v)
	}
	for _, v := range []triage.Verdict{triage.CauseFound, triage.Inconclusive, triage.NoBottleneck, "failed"} {
		m.triages.WithLabelValues(string(v))
	}
	for _, v := range []string{"all", "queries"} {
		m.triageSeconds.WithLabelValues(v)
	}
	for _, v := range []string{"value", "empty", "partial", "error"} {
		m.queries.WithLabelValues(v)
	}
	for _, v := range []notify.Reason{
		"delivered", notify.RateLimited, notify.Unavailable, notify.TimedOut, notify.Auth, notify.ChannelGone,
		notify.MessageGone, notify.Rejected, notify.OtherReason,
	} {
		m.deliveries.WithLabelValues(string(v))
	}
	for _, v := range []string{"job", "conversation", "expired"} {
		m.lost.WithLabelValues(v)
	}
	for _, v := range []string{lookupFound, lookupAbsent, lookupBlind} {
		m.lookups.WithLabelValues(v)
	}
	m.Loaded(true, time.Time{})
}

// Loaded notes how a load of the configuration ended.
func (m *Metrics) Loaded(ok bool, at time.Time) {
	if !ok {
		m.reloadOK.Set(0)
		return
	}
	m.reloadOK.Set(1)
	if !at.IsZero() {
		m.reloadTime.Set(float64(at.Unix()))
	}
}

func (m *Metrics) triaged(r triage.Report) {
	m.triages.WithLabelValues(string(r.Verdict)).Inc()
	m.triageSeconds.WithLabelValues("all").Observe(float64(r.DurationMS) / 1000)
	m.triageSeconds.WithLabelValues("queries").Observe(float64(r.QueryMS) / 1000)
	for _, q := range r.QueryLog {
		m.queries.WithLabelValues(q.Outcome).Inc()
	}
}
