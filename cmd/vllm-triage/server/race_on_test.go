//go:build race

package server_test

// raced says that the race detector runs. It makes the transpiled SQLite ten times slower, so stories that are long only to be
// large are told shorter; `make test` tells them in full without the detector.
const raced = true
