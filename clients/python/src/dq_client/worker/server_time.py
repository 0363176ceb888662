"""The clock of a server, against which a worker counts leases: the server says when each one ends, by its own clock.

Nothing that the worker measures by itself is as exact. The reply to a pop may be late, and the message may have a lease
of its own, which the reply does not name.
"""

from __future__ import annotations

import time
from typing import Optional

import redis

from ..errors import is_transient
from ..source import Link

# By how much the clocks of two machines may differ after a time, as a part of it, and besides, in seconds, since
# deadlines are whole milliseconds.
DRIFT = 0.001
ROUNDING_SECONDS = 0.002
# For how long what is known counts.
FRESH_SECONDS, _JUST_SECONDS = 5.0, 0.2
# A deadline that moves by more or less than the time that has passed, and this much of it, shows that a clock was set.
_JUMP_SECONDS, _JUMP = 0.5, 0.1


def has_jumped(grown: float, passed: float) -> bool:
    """Returns whether a deadline shows that the clock of the server, or the lease of the queue, was set."""
    return grown == 0 or abs(grown - passed) > _JUMP_SECONDS + _JUMP * passed


class ServerTime:
    """By how much the clock of the server is ahead of ours, never less than it is: a lease then ends too early for
    us."""

    def __init__(self) -> None:
        self._ahead: Optional[float] = None
        self._read_at = -FRESH_SECONDS

    def refresh(self, link: Link) -> None:
        """Asks the server for its time if it was not asked lately. Somebody may have set its clock."""
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            self.read(link)

    def read(self, link: Link) -> None:
        """Asks the server for its time. Without the right to that, leases are counted from the commands that begin
        them."""
        self._read_at = sent = time.monotonic()
        try:
            seconds, microseconds = link.ask("TIME")
        except redis.ResponseError as error:
            if is_transient(error):
                raise
            self._ahead = None
            return
        ahead = int(seconds) + int(microseconds) / 1_000_000 - sent
        known, took = self._ahead, time.monotonic() - sent
        if known is None or not known <= ahead <= known + took:
            self._ahead = ahead  # Otherwise the answer was late, and what is known is as good.

    @property
    def is_known(self) -> bool:
        """Whether the server has told its time."""
        return self._ahead is not None

    def expire(self) -> bool:
        """Somebody may have set the clock of the server: the next refresh asks for its time, if that was not just
        done."""
        is_old = time.monotonic() - self._read_at > _JUST_SECONDS
        if is_old:
            self._read_at = -FRESH_SECONDS
        return is_old

    def left(self, deadline_ms: Optional[int], now: float) -> Optional[float]:
        """Returns how many seconds are left until a deadline of the server, ``None`` if that is not known."""
        if self._ahead is None or deadline_ms is None:
            return None
        left = deadline_ms / 1000 - (now + self._ahead)
        return left - abs(left) * DRIFT - ROUNDING_SECONDS
