package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Start serves the recording on a free port of the loopback interface and returns the base URL. The stop function closes
// the listener and all connections and waits until nothing runs any more.
func (r *Recording) Start(asOf time.Time) (url string, stop func(), err error) {
	return Serve(r.Handler(asOf))
}

// RoundTripper serves the recording in process: requests are answered without a socket, whatever host they name.
func (r *Recording) RoundTripper(asOf time.Time) http.RoundTripper {
	return InProcess(r.Handler(asOf))
}

// Serve runs a handler as Start does.
func Serve(h http.Handler) (url string, stop func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve recording: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // Ends with ErrServerClosed; a failed accept shows at the client.
	}()
	return "http://" + l.Addr().String(), func() {
		_ = server.Close()
		<-done
	}, nil
}

// InProcess is a RoundTripper that calls a handler.
func InProcess(h http.Handler) http.RoundTripper { return inProcess{h} }

type inProcess struct{ handler http.Handler }

// RoundTrip runs the handler to its end in the calling goroutine; the handler must heed the request's context.
func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	served := req.Clone(ctx)
	served.RequestURI = req.URL.RequestURI()
	if served.Body == nil {
		served.Body = http.NoBody
	}
	w := &response{header: http.Header{}, status: http.StatusOK}
	if aborted := w.run(p.handler, served); aborted {
		return nil, errors.New("connection closed by handler")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)),
		StatusCode: w.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        w.header,
		Body:          io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
		Request:       req,
	}, nil
}

// response collects what a handler writes.
type response struct {
	header http.Header
	body   bytes.Buffer
	status int
	wrote  bool
}

// run calls the handler and reports whether it broke off the way http.Server allows.
func (w *response) run(h http.Handler, req *http.Request) (aborted bool) {
	defer func() {
		if r := recover(); r == http.ErrAbortHandler { //nolint:errorlint // net/http compares the value, too.
			aborted = true
		} else if r != nil {
			panic(r)
		}
	}()
	h.ServeHTTP(w, req)
	return false
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, true
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.wrote = true
	return w.body.Write(p)
}
