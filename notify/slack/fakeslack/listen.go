package fakeslack

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Listen serves the workspace on a free port of 127.0.0.1 and returns its address, "http://127.0.0.1:PORT". Stop ends
// it and waits for requests in flight.
func (s *Server) Listen(ctx context.Context) (base string, stop func(), err error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // Ends with ErrServerClosed when stopped.
	}()
	return "http://" + l.Addr().String(), func() {
		s.Close()
		_ = server.Close() // Nobody is left to hear of a listener that would not close.
		<-done
	}, nil
}
