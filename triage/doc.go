// Package triage turns an Alertmanager notification about vLLM into a Report: a ranked hypothesis of what binds the
// server now, what changed to bring it there, where, since when, how sure, what was ruled out and what to do next.
//
// The main path is a straight line: NewIncidents reads the webhook payload, Engine.Triage asks Prometheus and weighs the
// answers, the Report carries everything that a notifier needs. Nothing in this package renders a message and nothing
// after NewIncidents reads the clock.
package triage
