// Package server is the running service: it takes Alertmanager's webhooks, triages incidents in the background, delivers
// what was found, and serves pages, API and health.
//
// The line through it: webhook.go stores a notification and answers; worker.go claims the job, asks the engine and stores
// the report; deliver.go claims what has news and tells it. Each of them can be killed at any instant: what is done next
// is read from the store.
package server
