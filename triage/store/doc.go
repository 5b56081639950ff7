// Package store keeps what must survive a crash: incidents, the work to do on them and the messages to deliver, in one
// schema for SQLite (one process) and PostgreSQL (several replicas).
//
// # Intake
//
// Intake takes a whole notification in one transaction; only after its commit is the sender told. Alerts are states, not
// events: each is a period from startsAt to endsAt, and merging the same period twice, late or in another order changes
// nothing. So several Alertmanagers, retries and restarts need no memory of what was seen before; the keys of deliveries
// only tell a duplicate from a repeat in the counters. See mergeAlert for the rules.
//
// # Work
//
// A job is wanted once per key. It is claimed by a lease, which its holder renews; when the holder dies, another takes over
// at the lease's end. Whoever finishes must still hold the lease, and the result is stored in the transaction that ends the
// job. Events that arrive while a job runs make it run again.
//
// # Outbox
//
// A conversation is one incident in one channel. It holds the revision of the incident that is wanted there and the one
// that is shown, so however many changes happen while Slack is down, the next delivery shows the newest state. Before a
// part is posted the intent is committed, after it the address that the chat gave it. A part with an intent and no address
// was perhaps posted: whoever claims the conversation next must look for it first (Post.Doubtful).
//
// Status: accepted, 2026-11. Alternatives: a job library (River) brings leader election, five tables and fetches 100 ms
// apart for what are two claims here; bbolt has no way to several replicas.
package store
