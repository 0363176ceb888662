"""Middleware, which sees the headers of messages. If OpenTelemetry is installed, trace context is in them: the first
attempt continues the trace of the producer, a retry begins a trace of its own with a link to it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, ContextManager, Dict, Iterator, List, Optional

from .context import Context
from .wire import Text

try:
    from opentelemetry import context as otel_context, propagate, trace
except ImportError:
    trace = None  # type: ignore[assignment]


class Middleware:
    """Sees the headers of every message on both sides. Override what you need."""

    def push(self, queue: str, headers: Dict[str, Text]) -> None:
        """May add headers to a message that is pushed."""

    def handle(self, ctx: Context) -> Optional[ContextManager[Any]]:
        """Returns a context manager in which the handler runs, if there is something to do."""
        return None


class Tracing(Middleware):
    """Adds trace context to what is pushed, and makes a span for each attempt."""

    def push(self, queue: str, headers: Dict[str, Text]) -> None:
        """Adds the current trace context."""
        carrier: Dict[str, str] = {}
        propagate.inject(carrier)
        for name, value in carrier.items():
            headers.setdefault(name, value)

    def handle(self, ctx: Context) -> ContextManager[Any]:
        """Returns the span of an attempt."""
        return _span(ctx)


@contextmanager
def _span(ctx: Context) -> Iterator[None]:
    producer = propagate.extract(ctx.headers)
    attributes: Dict[str, Any] = {
        "messaging.system": "dq",
        "messaging.operation.type": "process",
        "messaging.destination.name": ctx.queue,
        "messaging.message.id": ctx.id,
        "messaging.dq.attempt": ctx.attempt,
    }
    parent, links = producer, []
    if ctx.attempt > 1:
        parent = otel_context.Context()
        linked = trace.get_current_span(producer).get_span_context()
        links = [trace.Link(linked)] if linked.is_valid else []
    tracer = trace.get_tracer("dq_client")
    with tracer.start_as_current_span(
        f"process {ctx.task or ctx.queue}",
        context=parent,
        kind=trace.SpanKind.CONSUMER,
        links=links,
        attributes=attributes,
    ):
        yield


def installed() -> List[Middleware]:
    """Returns the middleware that traces, if OpenTelemetry is installed."""
    return [] if trace is None else [Tracing()]
