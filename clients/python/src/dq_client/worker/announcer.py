"""The thread that calls what users hand in to watch a worker: its hook, and the handlers of their log.

These may raise, or block for ever. Nothing that keeps a lease or reports an outcome waits for them.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import Callable, Optional

log = logging.getLogger("dq_client")

# The most calls that may wait. Further ones are dropped: a hook that blocks this long no longer reads them.
_MOST_WAITING = 100_000


class Announcer:
    """Makes calls one after the other, in the order in which they were handed in."""

    def __init__(self) -> None:
        self._calls: "queue.SimpleQueue[Optional[Callable[[], object]]]" = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="dq-announce", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def announce(self, call: Callable[[], object]) -> None:
        """Has the thread make a call."""
        if self._calls.qsize() < _MOST_WAITING:
            self._calls.put(call)

    def close(self, seconds: float) -> None:
        """Waits for so long until what was handed in has been called."""
        self._calls.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except BaseException:
                _log_failure()


def _log_failure() -> None:
    try:
        log.exception("the hook or a handler of the log failed")
    except BaseException:
        pass  # It is the log that fails.
