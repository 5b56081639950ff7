// Package crash kills the real program at random instants while two real Alertmanagers deliver a storm to it and Slack
// misbehaves, and then counts: every incident must end with exactly one message that shows its newest state.
//
//	go test -tags crash ./cmd/vllm-triage/crash -v -args -crashes 200
//
// With -other PATH every second replica runs the program at PATH, for example the last release: a rolling upgrade.
//
// The two Alertmanagers do not know of each other, so everything is delivered twice. It runs on SQLite with one process and
// on PostgreSQL with two replicas.
package crash
