// Package config reads the service's configuration: strict YAML over defaults, secrets from files or the environment, and
// every mistake at once, each with its line and path.
//
// A Config never holds a secret's text where it could be printed: Secret and Address redact themselves in every format.
// Secrets in files are read on each use, so that a rotated token needs no restart.
package config
