// Trace context and middleware of one's own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Queue, RetryError, Worker } from 'dq-client';
import { eventually, Server } from './server.mjs';

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());

test('the first attempt continues the trace of the producer, a retry begins one with a link', async (t) => {
  const server = await Server.start(t);
  const queue = new Queue('q', { connection: server.url });
  const inside = [];
  const work = async ({ attempt }) => {
    inside.push(trace.getActiveSpan().spanContext().spanId);
    if (attempt === 1) throw new RetryError({ after: 0 });
  };
  const worker = new Worker('q', work, { connection: server.url });
  t.after(() => Promise.all([worker.close(), queue.close()]));
  const producer = trace.getTracer('test').startSpan('order');
  await context.with(trace.setSpan(context.active(), producer), () => queue.add('n', 0, { id: 'm' }));
  const spans = () => exporter.getFinishedSpans();
  await eventually('both attempts have ended', () => spans().length === 2);
  const [first, second] = spans();
  const { traceId, spanId } = producer.spanContext();
  assert.deepEqual([first.spanContext().traceId, first.parentSpanContext.spanId], [traceId, spanId]);
  assert.notEqual(second.spanContext().traceId, traceId);
  assert.equal(second.parentSpanContext, undefined);
  assert.deepEqual(
    second.links.map((link) => link.context.spanId),
    [spanId],
  );
  assert.deepEqual(inside, [first.spanContext().spanId, second.spanContext().spanId]);
  assert.equal(first.attributes['messaging.destination.name'], 'q');
});

test('middleware adds headers and surrounds handlers', async (t) => {
  const server = await Server.start(t);
  const said = [];
  const middleware = [
    {
      push: (queue, headers) => Object.assign(headers, { tenant: queue }),
      handle: async (job, next) => {
        said.push(`before ${job.headers.tenant}`);
        const result = await next();
        said.push(`after ${result}`);
        return `${result}!`;
      },
    },
  ];
  const queue = new Queue('q', { connection: server.url, middleware });
  const worker = new Worker('q', () => 'done', { connection: server.url, middleware });
  t.after(() => Promise.all([worker.close(), queue.close()]));
  assert.equal(await queue.addAndWait('n', 0, { timeout: 5000 }), 'done!');
  assert.deepEqual(said, ['before q', 'after done']);
});
