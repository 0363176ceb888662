"""A worker: it takes messages of the queues of an app, calls handlers, keeps leases, and reports outcomes.

Each queue has two threads, each with a connection: one that pops and one that reports and extends leases. One more
thread learns of messages that are taken away, one watches the time. Handlers run in an event loop or in threads of
their own, so no handler can stall what keeps its lease.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import threading
import time
import traceback
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from ..app import App
from ..wire import Duration, checked_seconds, milliseconds
from .clock import Clock
from .fetcher import MARGIN_SECONDS, Fetcher
from .handlers import Handlers
from .lane import BLOCK_MS, Delivery, Lane
from .listener import Listener
from .log import Event, Log
from .outcome import GIVEN_BACK
from .reporter import Reporter

# How long the end of a worker waits for handlers that were asked to stop, and for answers to the last outcomes.
_LAST_SECONDS = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Worker:
    """Works on the queues of an app.

    ``queues`` are names, or a mapping of names to concurrencies; by default all that have a handler. ``concurrency`` is
    how many messages of each queue are worked on at a time. ``lease`` is how long a message stays with a worker that is
    gone; by default the lease that it was pushed with, as those of a task are, or that of the queue. ``grace`` is how
    many seconds handlers get to end when the worker stops. ``name`` is the end of the name under which ``DQ.CONSUMERS``
    lists it. ``hook`` is called with each :class:`Event`, from a thread of its own.
    """

    def __init__(
        self,
        app: App,
        *,
        queues: "Mapping[str, int] | List[str] | None" = None,
        concurrency: int = 8,
        lease: Optional[Duration] = None,
        grace: float = 30.0,
        time_limit: Optional[float] = None,
        name: str = "worker",
        hook: Optional[Callable[[Event], None]] = None,
    ) -> None:
        names = queues if queues is not None else app.queues
        sizes: Dict[str, int] = dict(names) if isinstance(names, Mapping) else {queue: concurrency for queue in names}
        if not sizes:
            raise ValueError("there is no queue to work on: define a task or a consumer, or name queues")
        for size in sizes.values():
            if type(size) is not int or size < 1:
                raise ValueError(f"the concurrency of a queue is a whole number of at least 1, not {size!r}")
        self.app, self.grace = app, checked_seconds("grace", grace)
        self.time_limit = None if time_limit is None else checked_seconds("time_limit", time_limit)
        self.consumer = _consumer_name(name)
        self.stopping = False
        """Whether it no longer takes messages."""
        self.ready = False
        """Whether it consumes, and learns of messages that are taken away."""
        self.closed = False
        """Whether its threads are to end."""
        self.patience = math.inf
        """Until when outcomes are sent again."""
        self.clock = Clock(self)
        asked = None if lease is None else milliseconds(lease)
        self.lanes = [Lane(self, queue, size, asked) for queue, size in sizes.items()]
        self.log = Log(self.consumer, hook)
        self._listener = Listener(self)
        self._fetchers = [Fetcher(self, lane) for lane in self.lanes]
        self._threads: Dict[Any, threading.Thread] = {}
        self._handlers: Optional[Handlers] = None
        self._wake = threading.Condition()
        self._unanswered = 0

    # --- running ---

    def run(self) -> int:
        """Works until SIGTERM or SIGINT, then stops. A second signal ends the process at once.

        Returns the exit code: 0, or 1 if the server did not accept outcomes, so that messages wait for their leases.

        Coroutines run in an event loop in a thread. Call it in the main thread.
        """
        loop = asyncio.new_event_loop()
        threading.Thread(target=_run_loop, args=(loop,), name="dq-loop", daemon=True).start()
        received: List[int] = []
        process = os.getpid()

        def on_signal(number: int, _: Any) -> None:
            if os.getpid() != process:  # A handler has forked: this process is not the worker.
                signal.signal(number, previous[number])
                os.kill(os.getpid(), number)
                return
            if received:
                os._exit(128 + number)
            received.append(number)

        previous: Dict[int, Any] = {number: signal.signal(number, on_signal) for number in _SIGNALS}
        try:
            self.start(loop)
            while not received and not self.stopping:
                time.sleep(0.05)
            self.stop()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            loop.call_soon_threadsafe(loop.stop)
        return 1 if self._unanswered else 0

    async def serve(self) -> None:
        """Works in the running event loop until it is cancelled, or :meth:`request_stop` is called; then stops."""
        self.start(asyncio.get_running_loop())
        try:
            while not self.stopping:
                await asyncio.sleep(0.05)
        finally:
            stopped = asyncio.get_running_loop().run_in_executor(None, self.stop)
            await asyncio.shield(stopped)

    def start(self, loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
        """Starts the threads and returns. Coroutines run in this loop."""
        self._handlers = Handlers(self, loop)
        self.log.begin(self.lanes, self._known())
        for fetcher, lane in zip(self._fetchers, self.lanes):
            self._spawn(fetcher, fetcher.run, f"dq-fetch-{lane.name}")
            self._spawn(lane, Reporter(self, lane).run, f"dq-report-{lane.name}")
        self._spawn("listener", self._listener.run, "dq-listen")
        self._spawn("clock", self.clock.run, "dq-clock")

    def request_stop(self) -> None:
        """Has the worker take no further messages. :meth:`run` or :meth:`serve` then stops it."""
        self.stopping = True
        for lane in self.lanes:
            lane.wake()
        with self._wake:
            self._wake.notify_all()

    def stop(self) -> None:
        """Takes no further messages, waits for handlers as long as ``grace`` says, gives back the others, and ends."""
        self.request_stop()
        until = time.monotonic() + self.grace
        self._end_pops()
        _wait_until(lambda: not any(lane.working for lane in self.lanes), until)
        for lane in self.lanes:
            for delivery in lane.running():
                lane.take(delivery, "stopping", GIVEN_BACK)
        _wait_until(lambda: not any(lane.working for lane in self.lanes), time.monotonic() + _LAST_SECONDS)
        self.closed, self.patience = True, time.monotonic() + _LAST_SECONDS
        self.request_stop()
        self.clock.wake()
        end = self.patience + MARGIN_SECONDS  # A server that is slow still gets what is on its way.
        for lane in self.lanes:
            self._threads[lane].join(max(0.0, end - time.monotonic()))
        self._unanswered = sum(len(lane.reported()) for lane in self.lanes)
        self.log.end(self._unanswered, _LAST_SECONDS)

    def is_healthy(self) -> bool:
        """Returns whether each queue got an answer of the server within its last lease, or within the time of a pop,
        and neither were its pops refused for so long, nor have all its places been kept so long by handlers that
        hang."""
        return not self.closed and all(self._is_healthy(lane, time.monotonic()) for lane in self.lanes)

    def _is_healthy(self, lane: Lane, now: float) -> bool:
        patience = max(lane.lease, BLOCK_MS / 1000 + MARGIN_SECONDS)
        refused = lane.refused_since
        hanging = [since for since in list(lane.told.values()) if now - since > patience]
        if len(hanging) >= lane.concurrency:
            return False
        return now - lane.last_answer <= patience and (refused is None or now - refused <= patience)

    # --- what the threads use ---

    def start_handlers(self, lane: Lane, deliveries: List[Delivery]) -> None:
        """Calls the handlers of messages that were popped."""
        assert self._handlers is not None
        self._handlers.start(lane, deliveries)

    def wait(self, seconds: float) -> None:
        """Waits, but not when the worker stops."""
        with self._wake:
            if not self.stopping:
                self._wake.wait(seconds)

    def consuming(self) -> None:
        """Reports once to the hook that every queue is popped and notices are received."""
        with self._wake:
            first = not self.ready and self._listener.listening and all(fetcher.consuming for fetcher in self._fetchers)
            self.ready = self.ready or first
        if first:
            self.log.ready()

    def _known(self) -> Iterable[str]:
        """The queues for whose messages there is something to do."""
        return self.app.queues

    def _spawn(self, key: Any, run: Callable[[], None], name: str) -> None:
        def keep_running() -> None:
            """Runs again after an unexpected error, so that no worker is alive without working."""
            while True:
                try:
                    return run()
                except Exception:
                    self.log.defect(name, traceback.format_exc())
                    time.sleep(1)

        self._threads[key] = thread = threading.Thread(target=keep_running, name=name, daemon=True)
        thread.start()

    def _end_pops(self) -> None:
        endings = [
            threading.Thread(target=fetcher.end_pop, args=(self._threads[fetcher],), name="dq-end", daemon=True)
            for fetcher in self._fetchers
        ]
        for ending in endings:
            ending.start()
        for ending in endings:
            ending.join()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


def _wait_until(done: Callable[[], bool], end: float) -> None:
    while not done() and time.monotonic() < end:
        time.sleep(0.01)


def _consumer_name(name: str) -> bytes:
    """Returns ``host:pid:name``, shortened at the host to what the server takes."""
    end = f":{os.getpid()}:{name}".encode("utf-8", "surrogateescape")
    host = socket.gethostname().encode()
    return (host[: max(0, 128 - len(end))] + end)[:128]
