package config

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// Dump returns the configuration as YAML, defaults filled in and secrets as "<secret>".
func (c *Config) Dump() ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return b.Bytes(), nil
}
