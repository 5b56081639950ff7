// Package slack tells reports in Slack: one card per incident that is edited in place, its details in the thread.
//
// Bodies are rich_text and table blocks, whose texts Slack shows as they are: nothing in a label can become a mention, a
// link or a format there. What Slack parses (the fallback text, plain_text and mrkdwn objects) goes through escape.
//
// Slack has no idempotency key. A post whose answer was lost is reported as Maybe; FindPosted looks for it by the
// metadata that every post carries.
package slack
