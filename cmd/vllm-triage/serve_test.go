package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/config"
)

// The service fails closed: without credentials for the webhook it does not start. --insecure-no-auth lets it, where nobody
// else can reach it.
func TestMayServe(t *testing.T) {
	t.Parallel()
	const prometheus = "prometheus: {url: 'http://p:9090'}\n"
	for _, c := range []struct {
		config string
		open   bool
		says   string // Empty: it may.
	}{
		{"", false, "nobody may post alerts"},
		{"webhook: {bearer_token: 0123456789abcdef}\n", false, ""},
		{"webhook: {basic_auth: {username: am, password: hunter2}}\n", false, ""},
		{"server: {listen: ':9099'}\n", true, "on loopback"},
		{"server: {listen: '0.0.0.0:9099'}\n", true, "on loopback"},
		{"server: {listen: '192.0.2.7:9099'}\n", true, "on loopback"},
		{"server: {listen: 'triage.example.org:9099'}\n", true, "on loopback"},
		{"server: {listen: '127.0.0.1:9099'}\n", true, ""},
		{"server: {listen: 'localhost:9099'}\n", true, ""},
		{"server: {listen: '[::1]:9099'}\n", true, ""},
	} {
		cfg, err := config.Parse([]byte(prometheus+c.config), "", config.NoEnv)
		require.NoError(t, err, c.config)
		if err = mayServe(cfg, c.open); c.says == "" {
			require.NoError(t, err, c.config)
		} else {
			require.ErrorContains(t, err, c.says, c.config)
		}
	}
}
