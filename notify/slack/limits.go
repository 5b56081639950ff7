package slack

// Slack's limits, and ours below them. Those of text count characters; ours count runes of what is sent.
// https://docs.slack.dev/reference/block-kit and, for the sum, slackapi/bolt-js#2509: it is not documented.
const (
	maxBlocks        = 50
	maxHeader        = 150
	maxText          = 2900   // Slack: 3,000 in a section.
	maxMessageText   = 10_000 // Slack refuses somewhere above 11,000 with msg_blocks_too_long.
	maxFallback      = 3800   // Slack: best below 4,000.
	maxContext       = 10
	maxButtonText    = 75
	maxButtonValue   = 2000
	maxOptionValue   = 150
	maxConfirmTitle  = 100
	maxConfirmText   = 300
	maxConfirmButton = 30
	maxTableRows     = 100
	maxListRows      = 40 // Ours: more of them nobody reads in a chat.
	maxIncidentID    = 120
	moreReserve      = 60 // What "and 1,234 more" may take.
	maxChartTitle    = 50
	maxChartCategory = 20
)
