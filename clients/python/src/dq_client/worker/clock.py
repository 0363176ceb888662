"""The thread that watches the time: it stops handlers whose lease is over, or that have reached their time limit.

It does no input or output, so it is in time even if the server cannot be reached.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Optional

from .lane import Delivery, Lane
from .outcome import TimeLimit, of_error

if TYPE_CHECKING:
    from . import Worker


class Clock:
    """Wakes at the next instant at which a lease or a time limit may end."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._next: Optional[float] = None
        self._changed = threading.Condition()

    def note(self, instant: float) -> None:
        """Something ends at this instant."""
        if self._next is None or instant < self._next:
            with self._changed:
                if self._next is None or instant < self._next:
                    self._next = instant
                    self._changed.notify()

    def run(self) -> None:
        """Watches until the worker is closed."""
        while not self._worker.closed:
            with self._changed:
                if self._next is None or self._next > time.monotonic():
                    self._changed.wait(None if self._next is None else self._next - time.monotonic())
                    continue
                self._next = None
            now = time.monotonic()
            for lane in self._worker.lanes:
                for delivery in lane.running():
                    self._look_at(lane, delivery, now)
                for delivery in lane.reported():
                    if delivery.late:
                        continue
                    if delivery.end <= now:
                        lane.is_late(delivery)
                    else:
                        self.note(delivery.end)

    def wake(self) -> None:
        """Has the thread see that the worker is closed."""
        self.note(time.monotonic())

    def _look_at(self, lane: Lane, delivery: Delivery, now: float) -> None:
        if delivery.end <= now:
            lane.take(delivery, "lease")
        elif delivery.limit is not None and delivery.limit <= now:
            error = TimeLimit(f"the handler took longer than its time limit of {delivery.limit - delivery.begun:g} s")
            lane.take(delivery, "time limit", of_error(error))
        else:
            self.note(delivery.end if delivery.limit is None else min(delivery.end, delivery.limit))
