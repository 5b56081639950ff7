// Package sim asks the engine about incidents that nobody recorded.
//
// The rules were written while looking at a few dozen recordings of one small model on one kind of machine. Here a
// discrete-time model of vLLM's V1 server (scheduler, KV blocks, token budget, prefix cache, LoRA slots, grammar compiler,
// API process, clients with a time-out) runs fleets that look quite different: fast and slow models, pools of hundreds to tens of
// thousands of blocks, 16 to 1024 slots, one to twenty replicas, other scrape intervals, loads and lengths. It exports the
// metric names and labels of vLLM 0.32 into a store that the engine reads as it would a Prometheus.
//
// What is true is measured, not assumed: the model counts for how much of the time each limit held requests back
// (Meter), and a scenario in which the intended limit does not clearly bind alone is dropped with the reason, not scored. See
// Scenario.Truth for the rules.
//
// Everything is virtual time and seeded: the same scenario and seed give the same samples. TestUnseen runs a small fixed
// set on every change; VLLM_TRIAGE_SIM=all runs every scenario with several seeds and prints the table:
//
//	VLLM_TRIAGE_SIM=all go test ./triage/eval/sim -run TestUnseen -v
package sim
