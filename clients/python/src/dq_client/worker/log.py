"""What a worker logs, and the events that it reports to its hook.

All lines are made here, and written by the thread of ``announcer``, so that nothing that keeps a lease waits for
whoever reads them. No line shows any part of a payload, except in the text of what a handler raises.
"""

from __future__ import annotations

import functools
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Iterable, Optional, Set

from .announcer import Announcer
from .outcome import Outcome

if TYPE_CHECKING:
    from .lane import Delivery, Lane

logger = logging.getLogger("dq_client")


@dataclass(frozen=True)
class Event:
    """What a worker reports to its hook.

    ``kind`` is ``ready``; ``started``, ``done``, ``failed``, ``rejected``, ``retried``, ``lost`` or ``returned`` of a
    message; ``interrupted``, ``resumed`` or ``refused`` of a queue.
    """

    kind: str
    queue: str = ""
    id: str = ""
    attempt: int = 0
    seconds: float = 0.0
    """How long the message has been here."""
    text: str = ""
    """The error, or the reason."""


class Log:
    """The log of a worker, and its hook."""

    def __init__(self, consumer: bytes, hook: Optional[Callable[[Event], None]]) -> None:
        self._name = consumer.decode(errors="replace")
        self._hook = hook
        self._announcer = Announcer()
        self._unkept: Set[str] = set()
        self._given_back = 0

    def begin(self, lanes: Iterable[Lane], known: Iterable[str]) -> None:
        """The worker starts, and has something to do for the messages of these queues only."""
        self._announcer.start()
        sizes = ", ".join(f"{lane.name} ({lane.concurrency} at a time)" for lane in lanes)
        self._line(logging.INFO, "%s works on %s", self._name, sizes)
        for name in sorted({lane.name for lane in lanes}.difference(known)):
            self._line(logging.WARNING, "%s: the app has no task and no consumer for this queue", name)

    def end(self, unanswered: int, seconds: float) -> None:
        """The worker has stopped, and the server has not accepted some outcomes. Waits until all lines are written."""
        self._line(logging.INFO, "%s has stopped; %d messages went back", self._name, self._given_back)
        if unanswered:
            text = "%s could not report %d messages, which are delivered again when their leases are over"
            self._line(logging.ERROR, text, self._name, unanswered)
        self._announcer.close(seconds)

    def ready(self) -> None:
        """All queues are popped, and notices are received."""
        self._report(Event("ready"))

    def message(self, kind: str, delivery: Delivery, text: str = "") -> None:
        """Something has happened to a message. A failure is logged when the server has said whether it is dead."""
        ctx = delivery.ctx
        if kind == "lost":
            self._failure(kind, delivery, text)
        source = ctx.task or ctx.queue
        if kind == "done" and text and source not in self._unkept:  # Once is enough.
            self._unkept.add(source)
            self._line(logging.WARNING, "%s: %s is done, but %s", source, ctx.id, text)
        if self._hook is not None:
            self._report(Event(kind, ctx.queue, ctx.id, ctx.attempt, time.monotonic() - delivery.begun, text))

    def accepted(self, delivery: Delivery, outcome: Outcome, dead: bool) -> None:
        """The server has accepted an outcome."""
        if outcome.kind == "returned":
            self._given_back += 1
        elif outcome.kind in ("failed", "rejected") or dead:
            self._failure(outcome.kind, delivery, outcome.error, "; now dead" if dead else "", outcome.trace)

    def queue(self, kind: str, name: str, text: str = "") -> None:
        """Something has happened to a queue."""
        level = logging.INFO if kind == "resumed" else logging.ERROR
        self._line(level, "%s: %s%s", name, kind, text and f": {text}")
        self._report(Event(kind, name, text=text))

    def defect(self, thread: str, trace: str) -> None:
        """A thread of the worker has met an unexpected error."""
        self._line(logging.ERROR, "%s: begins again after an unexpected error: %s", thread, trace)

    def _failure(self, kind: str, delivery: Delivery, text: str, end: str = "", trace: str = "") -> None:
        ctx = delivery.ctx
        work = f"{ctx.queue}: {ctx.task} {ctx.id}" if ctx.task else f"{ctx.queue}: {ctx.id}"
        words = work, kind, ctx.attempt, text and f": {text}", end, trace and f"\n{trace}"
        self._line(logging.WARNING, "%s %s at attempt %d%s%s%s", *words)

    def _report(self, event: Event) -> None:
        if self._hook is not None:
            self._announcer.announce(functools.partial(self._hook, event))

    def _line(self, level: int, text: str, *words: object) -> None:
        self._announcer.announce(functools.partial(logger.log, level, text, *words))
