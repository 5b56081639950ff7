package triage

import "time"

// SchemaVersion is the version of the JSON form of a Report. It changes only when a field changes its meaning or goes away.
const SchemaVersion = 1

// Verdict says how a triage ended.
type Verdict string

// The verdicts of a Report.
const (
	// CauseFound means that one bottleneck is supported by enough evidence to act on it.
	CauseFound Verdict = "cause_found"
	// Inconclusive means that the data does not separate the causes; Report.Inconclusive says what would.
	Inconclusive Verdict = "inconclusive"
	// NoBottleneck means that nothing binds the server: it is healthy, or so quiet that the alert's quantile is noise.
	NoBottleneck Verdict = "no_bottleneck"
)

// Report is the outcome of one triage. All lists are sorted; the same input gives the same bytes, DurationMS and the
// times in QueryLog apart.
type Report struct {
	Schema      int          `json:"schema"`
	Verdict     Verdict      `json:"verdict"`
	GeneratedAt time.Time    `json:"generated_at"` // The incident's "now", not the clock.
	Incident    IncidentInfo `json:"incident"`
	// Bottlenecks is sorted by probability, first choice first; it is never empty. For a quiet server the first is
	// healthy or low_traffic.
	Bottlenecks []Hypothesis `json:"bottlenecks"`
	// Triggers is sorted by probability; it is never empty ("none" is an answer).
	Triggers []Hypothesis `json:"triggers"`
	// Residual is the probability that the bottleneck is something that the knowledge base does not know.
	Residual float64 `json:"something_else"`
	// Chain is the causal line, earliest link first: trigger, bottleneck, consequences.
	Chain []ChainLink `json:"chain,omitempty"`
	// RunnerUp says in one line why the second bottleneck lost; empty when there is no rival.
	RunnerUp Text `json:"runner_up,omitzero"`
	// RuledOut begins with what looks most like the answer: most evidence for it, and still refuted.
	RuledOut     []RuledOut    `json:"ruled_out"`
	NotChecked   []RuledOut    `json:"not_checked,omitempty"` // By id.
	Missing      []Missing     `json:"missing"`
	Inconclusive *Blocked      `json:"inconclusive,omitempty"`
	Impact       Impact        `json:"impact,omitzero"`
	VLLM         VersionRange  `json:"vllm,omitzero"`
	Notes        []Text        `json:"notes,omitempty"`
	Panels       []Panel       `json:"panels,omitempty"`
	Knowledge    string        `json:"knowledge,omitempty"` // Hash of the knowledge base that was used.
	Queries      int           `json:"queries"`             // Number of requests made to Prometheus.
	DurationMS   int64         `json:"duration_ms"`         // Wall time of the whole triage in milliseconds.
	QueryMS      int64         `json:"query_ms"`            // Part of it during which at least one query was in flight.
	QueryLog     []QueryRecord `json:"query_log,omitempty"`
}

// Text is a sentence in English together with what is needed to say it in another language: a catalogue key and the
// values that stand in it. A renderer that knows Key uses its own template and formats Args; else it shows Text.
type Text struct {
	Text string         `json:"text,omitempty"`
	Key  string         `json:"key,omitempty"`
	Args map[string]Arg `json:"args,omitempty"`
}

// Arg is one value of a Text: a number with its unit, or a word that is not translated (a model, an instance, a label).
type Arg struct {
	Number *float64 `json:"n,omitempty"`
	Unit   Unit     `json:"unit,omitempty"`
	Word   string   `json:"s,omitempty"`
}

// IncidentInfo is the part of an incident that a report shows.
type IncidentInfo struct {
	ID       string `json:"id"`
	GroupKey string `json:"group_key"`
	Status   string `json:"status"` // "firing", "resolved" or "adhoc".
	Scope    Scope  `json:"scope"`
	// ScopeNote says which scope was taken and why, when the labels did not settle it.
	ScopeNote Text      `json:"scope_note,omitzero"`
	Onset     time.Time `json:"onset"` // When the data began to deviate.
	// OnsetUncertaintyMS is how far Onset may be off, in milliseconds: scrape interval plus rate window.
	OnsetUncertaintyMS int64   `json:"onset_uncertainty_ms"`
	Window             Span    `json:"window"`
	Baseline           *Span   `json:"baseline,omitempty"` // nil: no usable baseline, and Notes says why.
	Replicas           int     `json:"replicas"`           // Replicas (instances) seen in the window.
	Alerts             []Alert `json:"alerts"`
	Truncated          int     `json:"truncated_alerts,omitempty"`
	RunbookURL         string  `json:"runbook_url,omitempty"`  // The alert's own, http or https only.
	ExternalURL        string  `json:"external_url,omitempty"` // Alertmanager's.
}

// Span is a closed interval of time.
type Span struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// Hypothesis is one cause with its probability and all that was found for and against it.
type Hypothesis struct {
	ID          string  `json:"id"`
	Title       string  `json:"title"`       // English; renderers translate by ID.
	Probability float64 `json:"probability"` // 0 to 1.
	// Score is the sum in log-odds of Prior and the Weights of Evidence.
	Score float64 `json:"score"`
	Prior float64 `json:"prior"`
	// Coverage is the share of the cause's key evidence that could be read, 0 to 1.
	Coverage float64    `json:"coverage"`
	Where    []Place    `json:"where"`
	Since    time.Time  `json:"since,omitzero"`
	Evidence []Evidence `json:"evidence"` // Strongest first.
	Actions  []Action   `json:"actions,omitempty"`
	// Consequences are the symptoms that this cause explains and that were seen.
	Consequences []string `json:"consequences,omitempty"`
}

// Place is where a hypothesis applies. Empty fields mean "all".
type Place struct {
	Model    string `json:"model_name,omitempty"`
	Instance string `json:"instance,omitempty"`
	Engine   string `json:"engine,omitempty"`
	Pod      string `json:"pod,omitempty"`
}

// Evidence is one line of the sum that ranks a hypothesis.
type Evidence struct {
	Signal string `json:"signal"`
	Text
	Unit     Unit     `json:"unit,omitempty"`
	Before   *float64 `json:"before"` // nil: no baseline or not applicable.
	During   *float64 `json:"during"` // nil: not read.
	Supports bool     `json:"supports"`
	Weight   float64  `json:"weight"`          // Log-odds, after the family discount; negative speaks against.
	Query    string   `json:"query,omitempty"` // PromQL that shows it.
}

// Action is a next step with the numbers filled in.
type Action struct {
	Text
	Option string `json:"option,omitempty"` // The vLLM option it turns, for example "--max-num-seqs".
	Cost   Text   `json:"cost,omitzero"`    // What it costs or risks.
}

// ChainLink is one link of the causal line.
type ChainLink struct {
	ID    string    `json:"id"`   // A trigger, a bottleneck or a signal.
	Kind  string    `json:"kind"` // "trigger", "bottleneck" or "consequence".
	Title string    `json:"title"`
	Since time.Time `json:"since,omitzero"`
}

// RuledOut is a cause that the data refutes, or that could not be checked, with the reason.
type RuledOut struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Why    string `json:"why"` // English; Reason carries the same for translation.
	Reason Text   `json:"reason,omitzero"`
}

// Missing is a signal that could not be read.
type Missing struct {
	Signal string `json:"signal"`
	State  State  `json:"state"`
	Why    string `json:"why"`
}

// State is what became of reading a signal. Only Present data may support or refute a cause.
type State string

// The states of an observation.
const (
	Present State = "present"
	Absent  State = "absent" // The name is not exported in this scope.
	Stale   State = "stale"  // It was exported but has no sample in the window: the source is down.
	Failed  State = "failed" // The query failed.
)

// Blocked says why a report is inconclusive.
type Blocked struct {
	Text
	Query string `json:"query,omitempty"` // PromQL that would decide.
}

// Impact says what users feel.
type Impact struct {
	Lines []Text `json:"lines,omitempty"`
}

// VersionRange is the range of vLLM versions that exports the names seen.
type VersionRange struct {
	Min  string `json:"min,omitempty"`  // For example "0.32.0".
	Max  string `json:"max,omitempty"`  // Empty: no upper bound known.
	Text string `json:"text,omitempty"` // For people: "0.32 or newer".
}

// Panel is one small chart: a signal over the look-back, on the time axis that all panels share.
type Panel struct {
	Signal string    `json:"signal"`
	Title  string    `json:"title"`
	Unit   Unit      `json:"unit,omitempty"`
	Role   string    `json:"role"` // "alert", "evidence" or "trigger".
	Start  time.Time `json:"start"`
	StepMS int64     `json:"step_ms"`
	// Values has one value a step; nil is a hole.
	Values []*float64 `json:"values"`
}

// QueryRecord is one request made to Prometheus, so that readers can repeat it.
type QueryRecord struct {
	ID         string `json:"id"` // The signal or purpose.
	Query      string `json:"query"`
	Outcome    string `json:"outcome"` // "value", "empty", "error" or "partial".
	DurationMS int64  `json:"duration_ms"`
	Error      string `json:"error,omitempty"`
}
