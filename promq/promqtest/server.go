package promqtest

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"vllm-triage/promq"
	"vllm-triage/promq/recording"
)

// TB is what Load needs of a test; *testing.T, *testing.B and *testing.F have it.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Load starts a server on the series of a notation and stops it when the test ends.
func Load(t TB, notation string, opts ...Option) *Server {
	t.Helper()
	store, err := New(notation, opts...)
	if err != nil {
		t.Fatalf("load: %v", err)
		return nil
	}
	return Serve(t, store)
}

// Serve starts a server on a store and stops it when the test ends.
func Serve(t TB, store *Store) *Server {
	t.Helper()
	s, err := NewServer(store, time.Time{})
	if err != nil {
		t.Fatalf("serve: %v", err)
		return nil
	}
	t.Cleanup(s.Close)
	return s
}

// Request is one question that the server was asked.
type Request struct {
	// Path is the path of the endpoint.
	Path string
	// Query is the PromQL, empty for endpoints that take none.
	Query string
}

// Server is a Prometheus over a store, on a loopback port and in process at once.
type Server struct {
	store  *Store
	inner  http.Handler
	url    string
	stop   func()
	client *promq.Client

	mu        sync.Mutex
	intercept func(path, query string) *Fault
	requests  []Request
}

// NewServer starts a server on a store as of an instant; the zero time shows all samples. Close stops it.
func NewServer(store *Store, asOf time.Time) (*Server, error) {
	s := &Server{store: store, inner: recording.FromStore(store).Handler(asOf)}
	var err error
	if s.url, s.stop, err = recording.Serve(s); err != nil {
		return nil, err
	}
	if s.client, err = promq.NewClient(promq.Config{URL: s.url, RoundTripper: s.RoundTripper()}); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// Close stops the server and waits for its goroutines.
func (s *Server) Close() { s.stop() }

// URL returns the base URL of the server on the loopback interface.
func (s *Server) URL() string { return s.url }

// Client returns a client that reaches the server in process, with the default limits.
func (s *Server) Client() *promq.Client { return s.client }

// RoundTripper reaches the server in process, whatever host a request names.
func (s *Server) RoundTripper() http.RoundTripper { return recording.InProcess(s) }

// Store returns the series served.
func (s *Server) Store() *Store { return s.store }

// Intercept lets f decide for each request from then on whether it meets a fault; nil stands for none. f may be called by
// several goroutines at once.
func (s *Server) Intercept(f func(path, query string) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// Requests returns what was asked so far, sorted by path and query, as concurrent requests have no order of their own.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.requests)
	slices.SortFunc(out, compareRequests)
	return out
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // The handler behind reports what is wrong with a form.
	req := Request{Path: r.URL.Path, Query: r.Form.Get("query")}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	intercept := s.intercept
	s.mu.Unlock()
	if intercept != nil {
		if fault := intercept(req.Path, req.Query); fault != nil {
			fault.serve(w, r, s.inner)
			return
		}
	}
	s.inner.ServeHTTP(w, r)
}
