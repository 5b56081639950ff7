// Package promqtest makes a Prometheus out of series written by hand, for tests and for the examples of the knowledge base.
//
// The notation is that of promtool's unit tests:
//
//	load 15s
//	  # one line a series, one value every 15 s from time zero on
//	  vllm:num_requests_running{instance="a"}  8x40
//	  vllm:generation_tokens_total{instance="a"}  0+600x20 _x5 12000+300x10 stale
//
// The real PromQL engine answers behind the real HTTP API, so queries are tested with PromQL and not against invented
// matrices; faults can be injected to see what a reader makes of a server that is down, slow, partial or wrong.
//
// The package does not import testing: outside tests it executes the examples of the knowledge base.
package promqtest
