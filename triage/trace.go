package triage

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// tracer is that of the trace that ctx carries. Without one nothing is recorded, which costs next to nothing.
func tracer(ctx context.Context) trace.Tracer {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer("vllm-triage/triage")
}

// stage runs a stage of a triage in a span.
func stage[T any](ctx context.Context, name string, do func(context.Context) T) T {
	ctx, span := tracer(ctx).Start(ctx, name)
	defer span.End()
	return do(ctx)
}

// traceQuery begins the span of one request to Prometheus and returns what ends it.
func traceQuery(ctx context.Context, id, expr string) func(QueryRecord) {
	_, span := tracer(ctx).Start(ctx, "query", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("triage.query.id", id), attribute.String("db.system.name", "prometheus"), attribute.String("db.query.text", expr)))
	return func(r QueryRecord) {
		span.SetAttributes(attribute.String("triage.query.outcome", r.Outcome))
		if r.Error != "" {
			span.SetStatus(codes.Error, r.Error)
		}
		span.End()
	}
}
