package server_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// stuck is an engine that works until it is told to stop.
type stuck struct{ began chan struct{} }

// Triage implements server.Triager.
func (s stuck) Triage(ctx context.Context, _ triage.Incident) (triage.Report, error) {
	close(s.began)
	<-ctx.Done()
	return triage.Report{}, context.Cause(ctx)
}

// A shutdown ends within its time although a triage does not: it is cut short and given back, so that another replica has it at
// once and not when the lease ends. No attempt is counted against it that nobody made.
func TestShutdownGivesWorkBack(t *testing.T) {
	t.Parallel()
	engine := stuck{make(chan struct{})}
	w := newWorld(t, setup{triager: engine, sections: map[string]string{
		"server": `{shutdown_timeout: 1s}`, "triage": `{debounce: 0s}`,
	}})
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancelCause(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.server.Serve(ctx, l) }()
	w.notify(alert{name: "TTFT"})
	<-engine.began
	_, found, err := w.store.Claim(t.Context(), "another", w.clock.now(), time.Minute)
	require.NoError(t, err)
	require.False(t, found, "it is held")

	stop(errors.New("SIGTERM"))
	require.NoError(t, <-done)
	status, answer := w.post("/webhook/alertmanager", string(notification(0, alert{name: "Late"})), authorized)
	require.Equal(t, http.StatusServiceUnavailable, status, "not taken any more: Alertmanager tries elsewhere, or again")
	require.Contains(t, answer, "shutting down")
	j, found, err := w.store.Claim(t.Context(), "another", w.clock.now(), time.Minute)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, store.KindTriage, j.Kind)
	require.Equal(t, w.incident().ID, j.IncidentID)
}
