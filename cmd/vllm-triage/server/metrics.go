package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"vllm-triage/notify"
	"vllm-triage/triage"
)

// The outcomes of a webhook, as the label "result".
const (
	webhookAccepted    = "accepted"
	webhookDuplicate   = "duplicate"
	webhookInvalid     = "invalid"
	webhookTooLarge    = "too_large"
	webhookForbidden   = "unauthorized"
	webhookUnavailable = "unavailable"
)

// The calls to a chat, as the label "operation".
const (
	opPost   = "post"
	opUpdate = "update"
	opReply  = "reply"
	opUpload = "upload"
)

// lostExpired counts news that became too old before they could be delivered, as the label "what".
const lostExpired = "expired"

// Metrics are the service's own, in Prometheus' naming.
type Metrics struct {
	webhooks           *prometheus.CounterVec
	webhookSeconds     prometheus.Histogram
	alerts             *prometheus.CounterVec
	incidents          *prometheus.CounterVec
	triages            *prometheus.CounterVec
	triageSeconds      *prometheus.HistogramVec
	queries            *prometheus.CounterVec
	querySeconds       prometheus.Histogram
	notifications      *prometheus.CounterVec
	notificationErrors *prometheus.CounterVec
	heartbeat          prometheus.Gauge
	lateness           prometheus.Histogram
	lost               *prometheus.CounterVec
	lookups            *prometheus.CounterVec
	lastWebhook        prometheus.Gauge
	slackOK            prometheus.Gauge
	talk               *talkMetrics
}

// NewMetrics registers the service's metrics. All series exist from the start, so that rules on them see a zero.
func NewMetrics(r prometheus.Registerer, version string) *Metrics {
	m := &Metrics{
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_webhook_requests_total", Help: "Webhook requests by result.",
		}, []string{"result"}),
		webhookSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vllm_triage_webhook_duration_seconds", Help: "Time to answer a webhook, its commit included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		alerts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_alerts_received_total", Help: "Alerts in accepted webhooks, by status.",
		}, []string{"status"}),
		incidents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_incident_events_total", Help: "What notifications did to incidents.",
		}, []string{"event"}),
		triages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_verdicts_total", Help: "Triages by verdict; failed ones are repeated.",
		}, []string{"verdict"}),
		triageSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vllm_triage_triage_duration_seconds", Help: "Duration of a triage: all of it, the part that waits for Prometheus.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"stage"}),
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_prometheus_queries_total", Help: "Queries to Prometheus by outcome.",
		}, []string{"outcome"}),
		querySeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vllm_triage_prometheus_query_duration_seconds", Help: "Duration of one query to Prometheus.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_notifications_total", Help: "Calls to the chat by operation, failed ones among them.",
		}, []string{"operation"}),
		notificationErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_notification_errors_total", Help: "Calls to the chat that failed, by class of the error.",
		}, []string{"reason"}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vllm_triage_delivery_lateness_seconds", Help: "How long news waited before they were delivered.",
			Buckets: []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600},
		}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_lost_total", Help: "What was given up for good. It stays 0.",
		}, []string{"what"}),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_message_lookups_total",
			Help: "Messages that were perhaps posted, by what looking for them gave; blind ones may be posted twice.",
		}, []string{"outcome"}),
		heartbeat: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vllm_triage_heartbeat_last_received_timestamp_seconds",
			Help: "When the newest heartbeat alert was received, in seconds since 1970; 0 until the first.",
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
		m.querySeconds, m.notifications, m.notificationErrors, m.lateness, m.lost, m.lookups, m.heartbeat, m.lastWebhook, m.slackOK)
	m.talk = newTalkMetrics(r)
	m.initialise()
	return m
}

func (m *Metrics) initialise() {
	for _, v := range []string{
		webhookAccepted, webhookDuplicate, webhookInvalid, webhookTooLarge, webhookForbidden, webhookUnavailable,
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
	for _, v := range []string{opPost, opUpdate, opReply, opUpload} {
		m.notifications.WithLabelValues(v)
	}
	for _, v := range []notify.Reason{
		notify.RateLimited, notify.Unavailable, notify.TimedOut, notify.Auth, notify.ChannelGone,
		notify.MessageGone, notify.Rejected, notify.OtherReason,
	} {
		m.notificationErrors.WithLabelValues(string(v))
	}
	for _, v := range []string{lostExpired} {
		m.lost.WithLabelValues(v)
	}
	for _, v := range []string{lookupFound, lookupAbsent, lookupBlind} {
		m.lookups.WithLabelValues(v)
	}
}

func (m *Metrics) triaged(r triage.Report) {
	m.triages.WithLabelValues(string(r.Verdict)).Inc()
	m.triageSeconds.WithLabelValues("all").Observe(float64(r.DurationMS) / 1000)
	m.triageSeconds.WithLabelValues("queries").Observe(float64(r.QueryMS) / 1000)
	for _, q := range r.QueryLog {
		m.queries.WithLabelValues(q.Outcome).Inc()
		m.querySeconds.Observe(float64(q.DurationMS) / 1000)
	}
}
