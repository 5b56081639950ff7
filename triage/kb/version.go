package kb

// Fingerprint ties a metric name to the vLLM versions that export it, so that presence and, within a scope that exports
// anything, absence narrow the version (reference: vllm-metrics §1.11).
type Fingerprint struct {
	Name string `yaml:"name"`
	// Since is the first version that exports it.
	Since string `yaml:"since"`
	// Until is the last version that exports it; empty means that it still does.
	Until string `yaml:"until"`
	// Absent says that absence means "before Since": V1 creates every series at start.
	Absent bool `yaml:"absent"`
	// With lists names beside which a server of Since or newer exports it too: they belong to one feature or one front end.
	// Its absence is then noticed, and says nothing of the version.
	With []string `yaml:"with"`
}
