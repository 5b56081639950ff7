package chatops

// Endpoint is where a request came in.
type Endpoint string

// The endpoints.
const (
	EndpointSlash         Endpoint = "slash"
	EndpointInteractivity Endpoint = "interactivity"
	EndpointEvents        Endpoint = "events"
	EndpointSocket        Endpoint = "socket"
)

// Endpoints lists all endpoints.
func Endpoints() []Endpoint {
	return []Endpoint{EndpointSlash, EndpointInteractivity, EndpointEvents, EndpointSocket}
}

// Rejection is why a request was not handled.
type Rejection string

// The rejections.
const (
	RejectedMethod    Rejection = "method"          // Not a POST.
	RejectedTooLarge  Rejection = "too_large"       // The body is over the limit.
	RejectedUnread    Rejection = "unreadable_body" // The body broke off.
	RejectedNoSecret  Rejection = "no_secret"       // No signing secret is configured, or its file cannot be read.
	RejectedHeaders   Rejection = "missing_headers" // Not signed at all.
	RejectedSignature Rejection = "bad_signature"   // Signed with another secret, or damaged.
	RejectedClock     Rejection = "clock_skew"      // Signed with our secret at a time more than five minutes away.
	RejectedReplay    Rejection = "replayed"        // The very same signed request was handled before.
	RejectedRetry     Rejection = "retry"           // Slack sent it again.
	RejectedPayload   Rejection = "bad_payload"     // Signed, but not what Slack sends.
	RejectedBusy      Rejection = "busy"            // Too much is under way.
	RejectedClosing   Rejection = "shutting_down"
)

// Rejections lists all rejections.
func Rejections() []Rejection {
	return []Rejection{
		RejectedMethod, RejectedTooLarge, RejectedUnread, RejectedNoSecret, RejectedHeaders, RejectedSignature, RejectedClock,
		RejectedReplay, RejectedRetry, RejectedPayload, RejectedBusy, RejectedClosing,
	}
}

// Outcome is how something that a person asked for ended.
type Outcome string

// The outcomes.
const (
	Done        Outcome = "done"
	Denied      Outcome = "denied"      // The person may not.
	Repeated    Outcome = "repeated"    // The same was under way or done already.
	Unclear     Outcome = "unclear"     // It could not be understood; what may have been meant was suggested.
	Gone        Outcome = "gone"        // What it is about is no longer there.
	Unavailable Outcome = "unavailable" // It is not configured.
	Failed      Outcome = "failed"
)

// Outcomes lists all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Done, Denied, Repeated, Unclear, Gone, Unavailable, Failed}
}

// Metrics counts. All labels are closed sets: Endpoints, Rejections, Acts, Outcomes.
type Metrics interface {
	// Rejected counts a request that was not handled.
	Rejected(e Endpoint, r Rejection)
	// Handled counts something that a person asked for.
	Handled(a Act, o Outcome)
	// Answered counts an answer that was delivered after the acknowledgement, or that could not be.
	Answered(delivered bool)
}

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) Rejected(Endpoint, Rejection) {}
func (noMetrics) Handled(Act, Outcome)         {}
func (noMetrics) Answered(bool)                {}
