package config

import (
	"encoding/json"

	promconfig "github.com/prometheus/common/config"
)

// HTTPClient is the http_config of Prometheus and Alertmanager, word for word: operators paste theirs. Only the default of
// follow_redirects differs: false.
//
// The settings sit behind a function for the same reason as a Secret's text behind a pointer.
type HTTPClient struct {
	settings func() *promconfig.HTTPClientConfig
}

// NewHTTPClient returns settings made elsewhere.
func NewHTTPClient(c promconfig.HTTPClientConfig) HTTPClient {
	return HTTPClient{func() *promconfig.HTTPClientConfig { return &c }}
}

// Config returns the settings in the library's own type, whose secrets print when it is printed by reflection alone.
func (c HTTPClient) Config() promconfig.HTTPClientConfig {
	if c.settings == nil {
		return promconfig.HTTPClientConfig{}
	}
	return *c.settings()
}

// setDirectory makes relative paths relative to dir.
func (c HTTPClient) setDirectory(dir string) { c.settings().SetDirectory(dir) }

func (c HTTPClient) validate() error { return c.settings().Validate() }

// UnmarshalYAML implements the yaml.Unmarshaler that keeps the decoder's strictness.
func (c *HTTPClient) UnmarshalYAML(unmarshal func(any) error) error {
	var given struct {
		FollowRedirects *bool          `yaml:"follow_redirects"`
		Others          map[string]any `yaml:",inline"`
	}
	if err := unmarshal(&given); err != nil {
		return err
	}
	var got promconfig.HTTPClientConfig
	// The library's own decoding starts from its defaults, which follow redirects.
	if err := unmarshal(&got); err != nil {
		return err
	}
	got.FollowRedirects = given.FollowRedirects != nil && *given.FollowRedirects
	*c = NewHTTPClient(got)
	return nil
}

// MarshalYAML implements yaml.Marshaler; the library's secrets print as "<secret>".
func (c HTTPClient) MarshalYAML() (any, error) { return c.Config(), nil }

// MarshalJSON implements json.Marshaler in the same way.
func (c HTTPClient) MarshalJSON() ([]byte, error) { return json.Marshal(c.Config()) }
