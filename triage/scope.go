package triage

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
