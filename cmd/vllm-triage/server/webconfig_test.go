package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{cert, key}
}

// issue makes a certificate for both ends of a connection and writes it and its key to files.
func (a authority) issue(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "alertmanager"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	raw, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600))
	return certFile, keyFile
}

func (a authority) file(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600))
	return name
}

// served lets the service of a world listen as `serve` does, with the TLS and users of a web configuration.
func served(t *testing.T, webConfig string) (w *world, address string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "web.yaml")
	require.NoError(t, os.WriteFile(file, []byte(webConfig), 0o600))
	w = newWorld(t, setup{sections: map[string]string{
		"server":  fmt.Sprintf(`{web_config_file: %q}`, file),
		"webhook": `{by_web_config: true}`,
	}})
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return w, l.Addr().String()
}

// ask makes a request and returns its status, or 0 when there was no connection.
func ask(t *testing.T, method, address string, client *tls.Config, with func(*http.Request)) int {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: client}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(notification(0, alert{name: "TTFT"})))
	require.NoError(t, err)
	if with != nil {
		with(req)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0
	}
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// With by_web_config a client certificate lets in, for webhooks and pages, when the listener has verified it against its
// authority: none, another authority's, and one that was only asked for do not.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t)
	certificate := func(a authority) []tls.Certificate {
		pair, err := tls.LoadX509KeyPair(a.issue(t))
		require.NoError(t, err)
		return []tls.Certificate{pair}
	}
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	for mode, want := range map[string]struct{ good, none, foreign int }{
		"RequireAndVerifyClientCert": {http.StatusOK, 0, 0},
		"VerifyClientCertIfGiven":    {http.StatusOK, http.StatusUnauthorized, 0},
		"RequireAnyClientCert":       {http.StatusUnauthorized, 0, http.StatusUnauthorized},
		"RequestClientCert":          {http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf("tls_server_config: {cert_file: %q, key_file: %q, client_auth_type: %s", cert, key, mode)
			if want.foreign == 0 {
				text += fmt.Sprintf(", client_ca_file: %q", ours.file(t))
			}
			_, address := served(t, text+"}\n")
			for _, page := range []struct{ method, path string }{{http.MethodPost, "/webhook/alertmanager"}, {http.MethodGet, "/api/v1/incidents"}} {
				status := func(certs []tls.Certificate) int {
					return ask(t, page.method, "https://"+address+page.path, &tls.Config{RootCAs: roots, Certificates: certs, MinVersion: tls.VersionTLS12}, nil)
				}
				require.Equal(t, want.good, status(certificate(ours)), "%s with our certificate", page.path)
				require.Equal(t, want.none, status(nil), "%s without", page.path)
				require.Equal(t, want.foreign, status(certificate(others)), "%s with another authority's", page.path)
			}
		})
	}
}

// The users of the web configuration may post. A configuration with users that is loaded while a listener without any runs
// lets nobody in: that listener checks no password.
func TestUsersOfTheWebConfig(t *testing.T) {
	t.Parallel()
	const hash = "$2a$04$/hI0ZyjaZypfjWR.zPjUHepXL17gN6B8QPjnXQetUQtPxEuJ/2wTG" // bcrypt of "right".
	w, address := served(t, fmt.Sprintf("basic_auth_users: {alertmanager: %q}\n", hash))
	as := func(password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("alertmanager", password) }
	}
	webhook := "http://" + address + "/webhook/alertmanager"
	require.Equal(t, http.StatusOK, ask(t, http.MethodPost, webhook, nil, as("right")))
	require.Equal(t, http.StatusUnauthorized, ask(t, http.MethodPost, webhook, nil, as("wrong")))
	require.Equal(t, http.StatusUnauthorized, ask(t, http.MethodPost, webhook, nil, nil))

	plain := newWorld(t, setup{})
	plain.server.Swap(w.server.Parts())
	status, _ := plain.post("/webhook/alertmanager", string(notification(0, alert{name: "TTFT"})), as("anything"))
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = plain.get("/", as("anything"))
	require.Equal(t, http.StatusUnauthorized, status)
}
