// Package e2e runs what is shipped, together: a real Prometheus with deploy/prometheus, a real Alertmanager with
// deploy/alertmanager, the real binary, a simulated vLLM server that turns bad, and a fake Slack that checks what it gets.
//
//	make e2e
//
// Only times are changed, so that it takes two minutes instead of twenty.
package e2e
