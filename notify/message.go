package notify

import (
	"time"

	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// Message is a report made ready for a chat: built once by NewMessage, the same for every notifier. All texts are plain
// text in the message's language, on one line each and free of control characters; names in them come from labels and
// are not trusted, so a notifier escapes every text before it adds its own markup. A Message is plain data: it survives
// a round trip through JSON.
type Message struct {
	// Kind says which part of the conversation a notifier writes: the card itself or one of the replies below it.
	Kind Kind `json:"kind"`
	// Part tells replies of one kind apart: no two replies about an incident share one. A Finder finds a reply by it.
	Part       string         `json:"part,omitempty"`
	IncidentID string         `json:"incident_id"`
	Language   string         `json:"language"` // A language that has a catalogue.
	Status     Status         `json:"status"`
	Verdict    triage.Verdict `json:"verdict"`
	Severity   Severity       `json:"severity"`
	// Mention is whom the first post calls, in the notifier's own spelling (Slack: U…, S…, here or channel).
	Mention string `json:"mention,omitempty"`
	// Broadcast shows a reply in the channel too.
	Broadcast bool `json:"broadcast,omitempty"`
	// Shadow marks a message that is recorded and shown but not posted.
	Shadow bool `json:"shadow,omitempty"`

	// Headline says what binds and on what; Lead what changed, where, how sure and since when. Together they are what a
	// phone shows at 3 a.m.
	Headline string `json:"headline"`
	Lead     string `json:"lead"`
	// Summary is Headline, Lead and the first step as one line, for notifications and screen readers.
	Summary string `json:"summary"`

	Subject    string  `json:"subject"` // The model and namespace, or what else the alert is about.
	Bottleneck Claim   `json:"bottleneck"`
	Changed    Claim   `json:"changed"`
	ChangedBy  string  `json:"changed_by,omitempty"` // The strongest evidence for the change.
	Candidates []Claim `json:"candidates,omitempty"` // The best bottlenecks of an inconclusive report.

	Where      string   `json:"where,omitempty"`
	Places     []string `json:"places,omitempty"` // At most MaxPlaces of them.
	MorePlaces int      `json:"more_places,omitempty"`
	Since      string   `json:"since,omitempty"`
	StatusText string   `json:"status_text,omitempty"` // "firing for 7 min", "resolved after 12 min".
	Late       string   `json:"late,omitempty"`

	Impact    []string   `json:"impact,omitempty"`
	Steps     []Step     `json:"steps,omitempty"`
	Blocked   *Blocked   `json:"blocked,omitempty"`
	Also      *Claim     `json:"also,omitempty"` // A second bottleneck that limits too.
	RunnerUp  string     `json:"runner_up,omitempty"`
	Compare   []Compare  `json:"compare,omitempty"` // The incident's values beside the ones after it.
	Chain     []string   `json:"chain,omitempty"`
	Evidence  []Evidence `json:"evidence,omitempty"`
	ChangeFor []Evidence `json:"change_for,omitempty"` // Evidence for the change.

	RuledOut   []Reasoned `json:"ruled_out,omitempty"`
	NotChecked []Reasoned `json:"not_checked,omitempty"`
	Gaps       []Reasoned `json:"gaps,omitempty"`
	Notes      []string   `json:"notes,omitempty"`
	Timeline   []Event    `json:"timeline,omitempty"`
	Zone       string     `json:"zone,omitempty"` // Of the clocks, for example "KST".
	Queries    []Query    `json:"queries,omitempty"`
	Panels     []Panel    `json:"panels,omitempty"`

	GapsText   string   `json:"gaps_text,omitempty"`   // "3 signals had no data".
	AlertsText string   `json:"alerts_text,omitempty"` // "2 alerts fire, 1 resolved: VLLMHighTTFT, VLLMPreempting".
	Counters   []string `json:"counters,omitempty"`    // "came back 3 times", "updated 4 times".
	Footer     []string `json:"footer,omitempty"`
	Links      Links    `json:"links,omitzero"`

	// Change is set when the verdict differs from the previous report's; it is what a KindChange reply says.
	Change *Change `json:"change,omitempty"`
	// Note is what a KindNote reply says.
	Note *Note `json:"note,omitempty"`
}

// MaxPlaces is how many places a Message names; the rest is counted.
const MaxPlaces = 50

// Kind is a part of the conversation about one incident.
type Kind string

// The kinds of messages.
const (
	KindCard    Kind = "card"    // The root: one an incident, edited in place.
	KindDetails Kind = "details" // The reply with evidence, gaps, timeline and queries, edited in place.
	KindChange  Kind = "change"  // A reply that says that the verdict changed, and why.
	// KindResolved is a reply that says that the incident is over, with the values of then and now.
	KindResolved Kind = "resolved"
	KindNote     Kind = "note" // A reply of a few lines: feedback, a silence, a picture that failed.
)

// As returns the message as another part of the conversation.
func (m Message) As(k Kind) Message {
	m.Kind = k
	return m
}

// Status is the state of the incident as the card shows it.
type Status string

// The states of an incident.
const (
	Firing    Status = "firing"
	Recovered Status = "recovered" // The alert still fires but the data is back to normal.
	Resolved  Status = "resolved"
	Adhoc     Status = "adhoc"
)

// Severity is how loud the alert is, by its label.
type Severity string

// The severities.
const (
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// Level is a confidence as people read it.
type Level string

// The levels, by probability.
const (
	High   Level = "high"   // 0.8 and more.
	Medium Level = "medium" // 0.6 to 0.8.
	Low    Level = "low"    // 0.4 to 0.6.
	None   Level = "none"   // Less: inconclusive.
)

// LevelOf is the level of a probability.
func LevelOf(probability float64) Level {
	switch {
	case probability >= 0.8:
		return High
	case probability >= 0.6:
		return Medium
	case probability >= 0.4:
		return Low
	default: // NaN too.
		return None
	}
}

// Claim is one hypothesis as the card names it.
type Claim struct {
	ID         string `json:"id"`
	Title      string `json:"title"`
	Explain    string `json:"explain,omitempty"`
	Level      Level  `json:"level"`
	Confidence string `json:"confidence"` // "high confidence".
	Runbook    string `json:"runbook,omitempty"`
}

// Step is a next step.
type Step struct {
	Text   string `json:"text"`
	Option string `json:"option,omitempty"` // A vLLM option, shown as code.
	Cost   string `json:"cost,omitempty"`
}

// Blocked says what stands in the way of a verdict.
type Blocked struct {
	Text  string `json:"text"`
	Query *Query `json:"query,omitempty"` // What would decide.
}

// Compare is one signal during the incident and after it.
type Compare struct {
	Label  string `json:"label"`
	During string `json:"during"`
	Now    string `json:"now"`
}

// Evidence is one row of the evidence table. A row without a label is about no signal but about the sum itself: that
// similar evidence counts less, or that another cause explains it.
type Evidence struct {
	Label    string `json:"label"`
	Reading  string `json:"reading"` // "5 % → 98 %".
	Text     string `json:"text,omitempty"`
	Supports bool   `json:"supports"`
	Unknown  bool   `json:"unknown,omitempty"` // Neither for nor against: what it asks for could not be computed.
	Query    *Query `json:"query,omitempty"`
}

// Reasoned is something with the reason for it: a cause that was ruled out, a signal that is missing.
type Reasoned struct {
	Title string `json:"title"`
	Why   string `json:"why,omitempty"`
}

// Event is one line of the timeline.
type Event struct {
	At    time.Time `json:"at"`
	Clock string    `json:"clock"` // 14:02:07, in the message's zone.
	Text  string    `json:"text"`
}

// Query is PromQL that readers can repeat.
type Query struct {
	Label   string `json:"label,omitempty"`
	PromQL  string `json:"promql"`
	Outcome string `json:"outcome,omitempty"`
	URL     string `json:"url,omitempty"` // Opens it in Prometheus.
}

// Panel is one small chart.
type Panel struct {
	Label   string      `json:"label"`
	Unit    triage.Unit `json:"unit,omitempty"`
	Spark   string      `json:"spark"`   // The series as a line of blocks: ▁▂▅▇.
	Reading string      `json:"reading"` // Its last value.
	Start   time.Time   `json:"start"`   // In the readers' time zone.
	StepMS  int64       `json:"step_ms"`
	Values  []*float64  `json:"values"`
}

// Links are addresses that readers can open; an empty one is not known. All are http or https.
type Links struct {
	Incident     string `json:"incident,omitempty"`
	Runbook      string `json:"runbook,omitempty"`       // The page of the first cause.
	AlertRunbook string `json:"alert_runbook,omitempty"` // The alert rule's own.
	Prometheus   string `json:"prometheus,omitempty"`
	Grafana      string `json:"grafana,omitempty"`
	Alertmanager string `json:"alertmanager,omitempty"`
}

// Change is a change of the verdict between two reports on one incident.
type Change struct {
	Text    string   `json:"text"` // "Verdict changed: KV cache full (medium) → Prefill-bound (high)".
	Because []string `json:"because,omitempty"`
}

// Note is a reply of a few lines.
type Note struct {
	Lines []string `json:"lines"`
	// Actor is the user who did it, in the notifier's own spelling (Slack: U…); empty for the service itself.
	Actor string `json:"actor,omitempty"`
}

// NewPictureFailed is a reply that says why there is no picture. The text of the card went out before.
func NewPictureFailed(incidentID, language, why string) Message {
	line := locale.For(language).Fill("ui.picture.failed", "why", Clean(why, maxSentence))
	return NewNote(incidentID, language, "", line)
}

// NewNote is a message that adds a few lines to the thread of an incident.
func NewNote(incidentID, language, actor string, lines ...string) Message {
	m := Message{Kind: KindNote, IncidentID: incidentID, Language: language, Note: &Note{Actor: actor}}
	for _, line := range lines {
		m.Note.Lines = append(m.Note.Lines, Clean(line, maxSentence))
	}
	if len(m.Note.Lines) > 0 {
		m.Summary = m.Note.Lines[0]
	}
	return m
}
