package server

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"vllm-triage/notify"
)

// call counts and traces one call to the chat and notes what it says about the chat's health.
func (s *Server) call(ctx context.Context, operation string, do func(context.Context) error) error {
	s.metrics.notifications.WithLabelValues(operation).Inc()
	ctx, span := s.tracer.Start(ctx, "notify "+operation, trace.WithSpanKind(trace.SpanKindClient))
	err := do(ctx)
	s.chatAnswered(err)
	if e, ok := errors.AsType[*notify.Error](err); ok {
		s.metrics.notificationErrors.WithLabelValues(string(e.Reason)).Inc()
		span.SetAttributes(attribute.String("notify.reason", string(e.Reason)))
	}
	endSpan(span, err)
	return err
}

// send is call for what leaves a message behind.
func (d *delivery) send(
	ctx context.Context, operation string, do func(context.Context) (notify.Ref, error),
) (ref notify.Ref, err error) {
	err = d.s.call(ctx, operation, func(ctx context.Context) error {
		ref, err = do(ctx)
		return err
	})
	return ref, err
}
