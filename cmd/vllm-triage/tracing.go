package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"vllm-triage/config"
)

// tracing is where the spans of the service go.
type tracing struct {
	provider trace.TracerProvider // nil: nowhere.
	stop     func()               // Sends what is left.
}

// tracingStop bounds the last sending of spans: a collector that does not answer must not hold a shutdown up.
const tracingStop = 3 * time.Second

// newTracing makes what sends spans to the configured collector, in the background and in batches. A collector that is away
// costs nothing but spans and a warning in the log.
func newTracing(ctx context.Context, c config.Tracing, owner string, log *zap.Logger) (tracing, error) {
	if c.Endpoint.IsZero() {
		return tracing{stop: func() {}}, nil
	}
	endpoint, err := url.Parse(c.Endpoint.Raw())
	if err != nil {
		return tracing{}, fmt.Errorf("tracing.endpoint: %w", err)
	}
	if strings.Trim(endpoint.Path, "/") == "" {
		endpoint.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()))
	if err != nil {
		return tracing{}, fmt.Errorf("tracing.endpoint: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces not sent", zap.Error(err)) }))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(c.Sample))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "vllm-triage"), attribute.String("service.version", version),
			attribute.String("service.instance.id", owner),
		)),
	)
	return tracing{provider, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracingStop)
		defer cancel()
		if err := provider.Shutdown(limited); err != nil {
			log.Warn("last traces not sent", zap.Error(err))
		}
	}}, nil
}
