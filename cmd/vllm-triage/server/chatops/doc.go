// Package chatops is the conversation around the cards: the slash command, the buttons and the modal, over HTTP or over
// Socket Mode with the same handlers.
//
// Slack gives an app three seconds to answer. So every request is answered at once, and what needs Prometheus, the store or
// Slack itself happens after the answer; its result goes to the response URL of the request, or, when that is used up or
// expired, into the channel.
//
// Whatever a person does with an old message, twice, at the same time as somebody else, or without permission gets an
// answer that only this person sees, in the person's language. What the channel should know becomes a line in the thread.
package chatops
