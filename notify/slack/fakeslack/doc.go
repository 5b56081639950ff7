// Package fakeslack is a Slack for tests and demonstrations: it takes messages over Slack's Web API, refuses what Slack
// refuses and in the same words, keeps every message with its edits and its thread, and can be told to fail.
//
// It checks the limits of Block Kit on what arrives, not on types, so it can be trusted to find what a client library
// lets through. Where Slack's limits are not documented it takes the strictest observation.
package fakeslack
