// Package recording serves recorded metrics as a Prometheus.
//
// A recording is a directory of Prometheus TSDB blocks. It is read once, without being changed, into memory, and answered
// by the real PromQL engine through the HTTP API that a live server has, so that the same client reads both.
//
// Blocks are read with the index and chunk packages of the TSDB, not with the TSDB itself: that one pulls the service
// discovery of every cloud into the binary, needs a writable directory, and maps files into memory, where a truncated file
// kills the process.
package recording
