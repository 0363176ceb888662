"""Trace context travels with messages, if OpenTelemetry is installed."""

import pytest
from server import eventually

import dq_client

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SPANS = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(SPANS))
trace.set_tracer_provider(provider)


def test_the_first_attempt_is_a_child_and_a_retry_has_a_link(app, working):
    @app.task(queue="q", name="work")
    async def work(ctx):
        if ctx.attempt == 1:
            raise dq_client.Retry(after=0)

    working(app)
    SPANS.clear()
    with trace.get_tracer("test").start_as_current_span("producer") as producer:
        work.push_sync()
    made = eventually("there are spans", lambda: len(found := SPANS.get_finished_spans()) == 3 and found)
    context = producer.get_span_context()
    first, second = (span for span in made if span.name == "process work")
    assert first.context.trace_id == context.trace_id and first.parent.span_id == context.span_id
    assert second.context.trace_id != context.trace_id and second.parent is None
    assert [link.context.span_id for link in second.links] == [context.span_id]
