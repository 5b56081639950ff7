package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"vllm-triage/triage/store"
)

// storeCollector reads figures from the store when Prometheus asks: what waits, and since when.
type storeCollector struct {
	s         *store.Store
	log       *zap.Logger
	items     *prometheus.Desc
	age       *prometheus.Desc
	incidents *prometheus.Desc
	bytes     *prometheus.Desc
}

// NewStoreCollector returns the metrics of what the store holds.
func NewStoreCollector(s *store.Store, log *zap.Logger) prometheus.Collector {
	return &storeCollector{
		s: s, log: log,
		items: prometheus.NewDesc("vllm_triage_queue_items",
			"Jobs, and messages with news (outbox), by state; dead ones wait for an operator.", []string{"queue", "state"}, nil),
		age: prometheus.NewDesc("vllm_triage_queue_oldest_age_seconds",
			"How long what is due longest has waited, by queue.", []string{"queue"}, nil),
		incidents: prometheus.NewDesc("vllm_triage_incidents", "Incidents kept, by status.", []string{"status"}, nil),
		bytes:     prometheus.NewDesc("vllm_triage_store_size_bytes", "Size of the database.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.items, c.age, c.incidents, c.bytes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	st, err := c.s.Stats(ctx, time.Now())
	if err != nil {
		c.log.Warn("store figures not read", zap.Error(err))
		ch <- prometheus.NewInvalidMetric(c.items, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, state := range []string{"ready", "running", "dead"} {
		gauge(c.items, float64(st.Jobs[state]), "jobs", state)
	}
	for state, name := range map[string]string{
		store.Active: "ready", store.Shadow: "shadow", store.Dead: "dead", store.Expired: "expired",
	} {
		gauge(c.items, float64(st.Conversations[state]), "outbox", name)
	}
	for _, status := range []string{"firing", "resolved"} {
		gauge(c.incidents, float64(st.Incidents[status]), status)
	}
	gauge(c.age, st.OldestJob.Seconds(), "jobs")
	gauge(c.age, st.OldestConversation.Seconds(), "outbox")
	gauge(c.bytes, float64(st.Bytes))
}
