package server

import (
	"cmp"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// newTracer returns the tracer of this package; without a provider one that records nothing.
func newTracer(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		p = noop.NewTracerProvider()
	}
	return p.Tracer("vllm-triage/server")
}

// traced runs a handler in a span, which belongs to the trace of the caller where it has one: Alertmanager does when its own
// tracing is configured. A notification's trace ends with its 200; the triage that it leads to is work of its own, found by
// the incident's id.
func (s *Server) traced(name string, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := s.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", r.Method), attribute.String("http.route", c.Path())))
		defer span.End()
		c.SetRequest(r.WithContext(ctx))
		err := next(c)
		status := c.Response().Status
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if err != nil || status >= 500 {
			span.SetStatus(codes.Error, "")
		}
		return err
	}
}

// incidentID is the attribute that names an incident, in spans as in the log.
func incidentID(id string) trace.SpanStartEventOption {
	return trace.WithAttributes(attribute.String("incident_id", id))
}

// endSpan ends the span of something that may have failed.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, cmp.Or(err.Error(), "failed"))
	}
	span.End()
}
