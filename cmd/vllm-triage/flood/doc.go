// Package flood measures how many webhooks the real program takes a second, each stored and synchronised to the disk before
// it is answered, how long they take, and how much memory it needs under them. A bare Echo handler that stores nothing runs
// beside it, to tell the cost of durability from the cost of HTTP on the same machine.
//
//	go test ./cmd/vllm-triage/flood -run '^$' -bench . -args -flood 60s
package flood
