/**
 * Trace context in headers, if OpenTelemetry is installed: the first attempt continues the trace of the producer, a
 * retry begins a trace of its own with a link to it.
 */
import type * as OpenTelemetry from '@opentelemetry/api';
import type { Middleware } from './middleware.js';

/** The middleware that queues and workers have without being given it: none, unless OpenTelemetry is installed. */
export const tracing: Middleware[] = found();

function found(): Middleware[] {
  try {
    return [middleware(require('@opentelemetry/api'))];
  } catch {
    return [];
  }
}

function middleware({ context, propagation, SpanKind, SpanStatusCode, trace }: typeof OpenTelemetry): Middleware {
  return {
    push(_, headers) {
      const carrier: Record<string, string> = {};
      propagation.inject(context.active(), carrier);
      for (const [name, value] of Object.entries(carrier)) headers[name] ??= value;
    },
    handle(job, next) {
      const producer = propagation.extract(context.active(), job.headers);
      const origin = trace.getSpanContext(producer);
      const isRetry = job.attempt > 1;
      const options = {
        kind: SpanKind.CONSUMER,
        root: isRetry,
        links: isRetry && origin ? [{ context: origin }] : [],
        attributes: {
          'messaging.system': 'dq',
          'messaging.operation.type': 'process',
          'messaging.destination.name': job.queueName,
          'messaging.message.id': job.id,
          'messaging.dq.attempt': job.attempt,
        },
      };
      return trace
        .getTracer('dq-client')
        .startActiveSpan(`process ${job.queueName}`, options, producer, async (span) => {
          try {
            return await next();
          } catch (error) {
            span.recordException(error as Error);
            span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
            throw error;
          } finally {
            span.end();
          }
        });
    },
  };
}
