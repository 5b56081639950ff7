package web

// The fields of the forms.
const (
	FieldToken   = "csrf"    // Site.CSRF.
	FieldOpinion = "opinion" // OpinionRight, OpinionNotQuite or OpinionWrong.
	FieldCause   = "cause"   // The id of a bottleneck, "other", or empty.
	FieldComment = "comment" // Free text of at most MaxComment characters.
	FieldPage    = "page"    // The id of a runbook.
	FieldStep    = "step"    // The id of one of its steps.
	FieldState   = "state"   // One of the states below.
)

// MaxComment is how many characters a browser lets people write into FieldComment. The server must check it again.
const MaxComment = 1000

// The opinions on a verdict.
const (
	OpinionRight    = "right"
	OpinionNotQuite = "not_quite"
	OpinionWrong    = "wrong"
)

// The states of a step, and of a runbook as a whole.
const (
	StateOpen       = "open" // Not done, or done by mistake.
	StateDone       = "done"
	StateSkipped    = "skipped"
	StateHelped     = "helped"
	StateDidNotHelp = "did_not_help"
	StateOther      = "other" // Something else than the runbook's steps ended it.
)
