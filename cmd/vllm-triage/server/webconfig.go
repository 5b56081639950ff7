package server

import (
	"fmt"
	"net/http"
	"os"
	"slices"

	"go.yaml.in/yaml/v4"
)

// webConfig is what matters here of a web configuration of prometheus/exporter-toolkit.
type webConfig struct {
	Users map[string]string `yaml:"basic_auth_users"`
	TLS   struct {
		ClientAuth string `yaml:"client_auth_type"`
	} `yaml:"tls_server_config"`
}

func readWebConfig(file string) (webConfig, error) {
	var c webConfig
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, &c)
	}
	if err != nil {
		return c, fmt.Errorf("read server.web_config_file: %w", err)
	}
	return c, nil
}

// CheckWebConfig makes sure that a web configuration verifies who asks. Encryption alone does not.
func CheckWebConfig(file string) error {
	c, err := readWebConfig(file)
	if err != nil {
		return err
	}
	if len(c.Users) > 0 || slices.Contains([]string{"RequireAndVerifyClientCert", "VerifyClientCertIfGiven"}, c.TLS.ClientAuth) {
		return nil
	}
	return fmt.Errorf("webhook.by_web_config: %s verifies nobody: give it basic_auth_users, or tls_server_config with "+
		"client_auth_type RequireAndVerifyClientCert and client_ca_file", file)
}

// verified says whether the listener's web configuration has checked who asks: by a client certificate, or by a password,
// without which it lets nobody through while it knows users. It asks the file that the listener was started with, and on each
// request, as the listener does: the content may have changed, while a file that was configured later guards nothing yet.
func (s *Server) verified(r *http.Request) bool {
	file := s.guard.Load()
	if file == nil {
		return false
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	if _, _, ok := r.BasicAuth(); !ok {
		return false
	}
	c, err := readWebConfig(*file)
	return err == nil && len(c.Users) > 0
}
