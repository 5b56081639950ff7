package notify

// Message is a report made ready for a chat: built once from a triage.Report, the same for every notifier.
type Message struct{}
