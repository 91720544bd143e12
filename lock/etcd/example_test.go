package etcd_test

import (
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/etcd"
	"github.com/lockchaos/lockchaos/lock/zookeeper"
)

// Spans and a histogram of OpenTelemetry, for the locks on all servers. The span of an acquire is a child of the span
// in the context of the call.
func Example_spans() {
	tracer := otel.Tracer("locks")
	duration, _ := otel.Meter("locks").Float64Histogram("lock.duration", metric.WithUnit("s"))
	observe := func(e lock.Event) {
		ctx, end := e.Context, time.Now()
		if ctx == nil { // no call caused it: a renewal or a loss
			return
		}
		kind := attribute.String("event", string(e.Kind))
		duration.Record(ctx, e.Took.Seconds(), metric.WithAttributes(kind))
		_, span := tracer.Start(ctx, e.Primitive+" "+string(e.Kind),
			trace.WithTimestamp(end.Add(-e.Took)), trace.WithAttributes(kind, attribute.String("name", e.Name)))
		if e.Err != nil {
			span.SetStatus(codes.Error, e.Err.Error())
		}
		span.End(trace.WithTimestamp(end))
	}
	_ = lock.Options{Observe: observe}
	_ = etcd.Options{Observe: observe}
	_ = zookeeper.Options{Observe: observe}
}
