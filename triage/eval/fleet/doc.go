// Package fleet holds the test that proves the promise about large fleets on a real Prometheus: the number of queries of a
// triage does not grow with the number of replicas, and the bytes that come back are bounded.
//
//	FLEET=1,100,2000 go test ./triage/eval/fleet -v -timeout 60m
//
// It needs the prometheus binary of the distribution in the PATH. Without FLEET it is skipped.
package fleet
