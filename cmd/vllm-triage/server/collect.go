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
	s             *store.Store
	log           *zap.Logger
	jobs          *prometheus.Desc
	conversations *prometheus.Desc
	incidents     *prometheus.Desc
	jobAge        *prometheus.Desc
	newsAge       *prometheus.Desc
	bytes         *prometheus.Desc
}

// NewStoreCollector returns the metrics of what the store holds.
func NewStoreCollector(s *store.Store, log *zap.Logger) prometheus.Collector {
	return &storeCollector{
		s: s, log: log,
		jobs: prometheus.NewDesc("vllm_triage_jobs", "Jobs by state; dead ones wait for an operator.", []string{"state"}, nil),
		conversations: prometheus.NewDesc("vllm_triage_conversations",
			"Messages by state; active ones have news that are not delivered yet.", []string{"state"}, nil),
		incidents: prometheus.NewDesc("vllm_triage_incidents_kept", "Incidents kept, by status.", []string{"status"}, nil),
		jobAge: prometheus.NewDesc("vllm_triage_oldest_job_age_seconds",
			"How long the work that is due longest has waited.", nil, nil),
		newsAge: prometheus.NewDesc("vllm_triage_oldest_undelivered_age_seconds",
			"How long the oldest news have waited for delivery.", nil, nil),
		bytes: prometheus.NewDesc("vllm_triage_store_size_bytes", "Size of the database.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.jobs, c.conversations, c.incidents, c.jobAge, c.newsAge, c.bytes} {
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
		ch <- prometheus.NewInvalidMetric(c.jobs, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, state := range []string{"ready", "running", "dead"} {
		gauge(c.jobs, float64(st.Jobs[state]), state)
	}
	for _, state := range []string{store.Active, store.Shadow, store.Dead, store.Expired} {
		gauge(c.conversations, float64(st.Conversations[state]), state)
	}
	for _, status := range []string{"firing", "resolved"} {
		gauge(c.incidents, float64(st.Incidents[status]), status)
	}
	gauge(c.jobAge, st.OldestJob.Seconds())
	gauge(c.newsAge, st.OldestConversation.Seconds())
	gauge(c.bytes, float64(st.Bytes))
}
