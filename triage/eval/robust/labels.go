package robust

import (
	"maps"

	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage"
	"vllm-triage/triage/eval"
)

// relabelled changes the labels of the alerts or of the series.
func relabelled() []Variant {
	return []Variant{
		asking("alert names the model only", func(_ eval.Case, old template.KV) template.KV {
			return keep(old, "alertname", "severity", "model_name")
		}),
		asking("alert names a pod only", func(c eval.Case, old template.KV) template.KV {
			kv := keep(old, "alertname", "severity")
			kv["pod"] = sick(c).Get("pod")
			return kv
		}),
		asking("alert names an instance only", func(c eval.Case, old template.KV) template.KV {
			kv := keep(old, "alertname", "severity")
			kv["instance"] = sick(c).Get("instance")
			return kv
		}),
		asking("alert names nothing", func(_ eval.Case, old template.KV) template.KV { return keep(old, "alertname", "severity") }),
		asking("alert names labels that no series has", func(_ eval.Case, old template.KV) template.KV {
			kv := maps.Clone(old)
			kv["cluster"], kv["namespace"] = "eu-1", "models"
			return kv
		}),
		series("series without namespace and pod", func(b *labels.Builder) { b.Del("namespace", "pod") }),
		series("series without instance", func(b *labels.Builder) { b.Del("instance") }).placedByPod(),
		series("series with a cluster label", func(b *labels.Builder) { b.Set("cluster", "eu-1") }),
		series("series with a container, a service and a node label", func(b *labels.Builder) {
			b.Set("container", "vllm").Set("service", "vllm").Set("node", "n-"+b.Get("pod"))
		}),
		series("series without the engine label", func(b *labels.Builder) { b.Del("engine") }),
		series("host names for instances", func(b *labels.Builder) {
			if v := b.Get("instance"); v != "" {
				b.Set("instance", "gpu-"+b.Get("pod")+".example.org:8000")
			}
		}).withoutPlace(),
	}
}

// asking changes the labels of the alerts.
func asking(name string, f func(c eval.Case, old template.KV) template.KV) Variant {
	return Variant{Group: groupLabels, Name: name, Case: func(c eval.Case) (eval.Case, bool) {
		if c.Payload == nil {
			return c, false
		}
		return withPayload(c, func(p *triage.Payload) {
			for i := range p.Alerts {
				p.Alerts[i].Labels = f(c, p.Alerts[i].Labels)
			}
		}), true
	}}
}

// withPayload asks with a changed copy of the notification.
func withPayload(c eval.Case, change func(*triage.Payload)) eval.Case {
	p := *c.Payload
	p.Alerts = append(template.Alerts{}, p.Alerts...)
	change(&p)
	c.Payload = &p
	id, now := c.Incident.ID, c.Incident.Now
	c.Incident = triage.NewIncidents(p, now)[0]
	c.Incident.ID = id
	return c
}

func keep(old template.KV, names ...string) template.KV {
	out := template.KV{}
	for _, n := range names {
		if v, ok := old[n]; ok {
			out[n] = v
		}
	}
	return out
}

// sick is the labels of a series of the replica that the case is about, of the first one when it is about all.
func sick(c eval.Case) labels.Labels {
	var first labels.Labels
	for _, s := range c.Recording.Data.Store().Series() {
		l := s.Labels
		if nameOf(l) != "vllm:num_requests_running" || c.Incident.Scope.Model != "" && l.Get("model_name") != c.Incident.Scope.Model {
			continue
		}
		if first.IsEmpty() {
			first = l
		}
		if l.Get("instance") == c.Where {
			return l
		}
	}
	return first
}

// series changes the labels of what targets export.
func series(name string, f func(*labels.Builder)) Variant {
	return Variant{Group: groupLabels, Name: name, Data: func(r *eval.Recording) *memstore.Store {
		return r.Data.Store().Map(func(l labels.Labels) (labels.Labels, bool) {
			if isAlert(nameOf(l)) {
				return l, true
			}
			b := labels.NewBuilder(l)
			f(b)
			return b.Labels(), true
		})
	}}
}

// placedByPod scores the place by the name of the pod.
func (v Variant) placedByPod() Variant {
	v.Case = func(c eval.Case) (eval.Case, bool) {
		if l := sick(c); c.Where == l.Get("instance") {
			c.Where = l.Get("pod")
		}
		return c, true
	}
	return v
}

// withoutPlace leaves the place unscored: the transformation gives it another name.
func (v Variant) withoutPlace() Variant {
	v.Case = func(c eval.Case) (eval.Case, bool) {
		c.Where = ""
		return c, true
	}
	return v
}
