// Package robust changes recorded incidents in ways that must not change the answer, and measures what the engine makes of
// them: metrics missing or under the names of other vLLM versions, other labels, more replicas, slower scrapes, less or
// disturbed data before the incident, other moments of asking, neighbours with faults of their own, and a Prometheus that
// fails, warns or lags.
//
// A transformation touches the data or the question, never the truth. Where it takes the information away, the engine may
// say that it does not know; it may not become sure of something else.
package robust
