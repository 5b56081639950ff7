// Package promq asks Prometheus, and servers that speak its HTTP API (Thanos, Mimir, VictoriaMetrics), and turns the
// answers into numbers that can be reasoned about.
//
// It holds the client with its error classes, query templates and selectors built through the PromQL syntax tree, series
// on a regular grid with holes, and robust statistics. It knows nothing of vLLM, alerts or Slack, and imports nothing else
// of this module.
//
// Nothing here reads the clock to decide anything: instants and windows come in as arguments.
package promq
