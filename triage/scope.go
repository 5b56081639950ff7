package triage

import (
	"cmp"
	"fmt"
	"strings"
)

// Scope is what an incident is about. Empty fields are not restricted. It is the part of the alerts' labels that survives
// from the replica's series to the webhook, so any subset may be set.
type Scope struct {
	Model     string `json:"model_name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Job       string `json:"job,omitempty"`
	Service   string `json:"service,omitempty"`
	Instance  string `json:"instance,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Engine    string `json:"engine,omitempty"`
}

// Key names the scope in one line, the same for equal scopes and different for others. It groups alerts into incidents.
func (s Scope) Key() string {
	var b strings.Builder
	for _, f := range s.fields() {
		if f.value != "" {
			fmt.Fprintf(&b, "%s=%q,", f.label, f.value)
		}
	}
	return strings.TrimSuffix(b.String(), ",")
}

type scopeField struct{ label, value string }

// fields lists the scope as Prometheus labels, in a fixed order.
func (s Scope) fields() []scopeField {
	return []scopeField{
		{"model_name", s.Model},
		{"namespace", s.Namespace},
		{"cluster", s.Cluster},
		{"job", s.Job},
		{"service", s.Service},
		{"instance", s.Instance},
		{"pod", s.Pod},
		{"engine", s.Engine},
	}
}

// scopeOf reads the scope out of an alert's labels. An alert that names its model is about the model, whatever replica it
// names too, so that alerts of one fault meet in one incident; without a model the replica has to lead to it.
func scopeOf(labels map[string]string) Scope {
	s := Scope{
		Model:     cmp.Or(labels["model_name"], labels["model"], labels["model_id"]),
		Namespace: cmp.Or(labels["namespace"], labels["exported_namespace"], labels["kubernetes_namespace"]),
		Cluster:   labels["cluster"],
	}
	if s.Model == "" {
		s.Instance = labels["instance"]
		s.Pod = cmp.Or(labels["pod"], labels["exported_pod"], labels["pod_name"])
		if s.Instance == "" && s.Pod == "" {
			s.Job = labels["job"]
			s.Service = labels["service"]
		}
	}
	return s
}
