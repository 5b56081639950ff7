package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"vllm-triage/cmd/vllm-triage/server/chatops"
)

// talkMetrics counts what people ask for and what came of it. It implements chatops.Metrics.
type talkMetrics struct {
	rejected *prometheus.CounterVec
	handled  *prometheus.CounterVec
	answered *prometheus.CounterVec
}

var _ chatops.Metrics = (*talkMetrics)(nil)

func newTalkMetrics(r prometheus.Registerer) *talkMetrics {
	m := &talkMetrics{
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_slack_requests_rejected_total", Help: "Requests of Slack, or of who claims to be it, that were not handled.",
		}, []string{"endpoint", "reason"}),
		handled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_slack_acts_total", Help: "What people asked for in Slack, by how it ended.",
		}, []string{"act", "outcome"}),
		answered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm_triage_slack_answers_total", Help: "Answers that came after the acknowledgement.",
		}, []string{"result"}),
	}
	r.MustRegister(m.rejected, m.handled, m.answered)
	for _, reason := range chatops.Rejections() {
		for _, e := range chatops.Endpoints() {
			m.rejected.WithLabelValues(string(e), string(reason))
		}
	}
	for _, a := range chatops.Acts() {
		m.handled.WithLabelValues(string(a), string(chatops.Done))
	}
	for _, result := range []string{"delivered", "failed"} {
		m.answered.WithLabelValues(result)
	}
	return m
}

// Rejected implements chatops.Metrics.
func (m *talkMetrics) Rejected(e chatops.Endpoint, r chatops.Rejection) {
	m.rejected.WithLabelValues(string(e), string(r)).Inc()
}

// Handled implements chatops.Metrics.
func (m *talkMetrics) Handled(a chatops.Act, o chatops.Outcome) {
	m.handled.WithLabelValues(string(a), string(o)).Inc()
}

// Answered implements chatops.Metrics.
func (m *talkMetrics) Answered(delivered bool) {
	result := "failed"
	if delivered {
		result = "delivered"
	}
	m.answered.WithLabelValues(result).Inc()
}
