package config

import _ "embed"

//go:embed example.yaml
var example []byte

// Example is a commented configuration with every key. It is valid once the files it names exist.
func Example() []byte { return append([]byte(nil), example...) }
