//go:build !race

package kb_test

// raceDetector says that the race detector slows this binary down.
const raceDetector = false
