package triage

import "time"

// Alert is one alert of an incident as Alertmanager sent it. Its own Status decides, never that of the notification.
type Alert struct {
	Fingerprint  string            `json:"fingerprint"`
	Name         string            `json:"alertname"`
	Status       string            `json:"status"` // "firing" or "resolved".
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"starts_at"`        // When it fired: after the rule's "for".
	EndsAt       time.Time         `json:"ends_at,omitzero"` // Set on resolved alerts only.
	GeneratorURL string            `json:"generator_url,omitempty"`
}
