"""Calls handlers: coroutines in the event loop, functions in threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import inspect
import queue
import threading
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Tuple

from ..app import Job
from ..callables import awaited, checked_result
from ..context import RESULT_HEADER
from .lane import Delivery, Lane
from .outcome import GIVEN_BACK, Outcome, of_error, of_result

if TYPE_CHECKING:
    from . import Worker

Begun = Tuple[Delivery, Job]


class Threads:
    """Daemon threads that are started when all others are busy. They do not hold up the end of the process."""

    def __init__(self) -> None:
        self._calls: "queue.SimpleQueue[Callable[[], None]]" = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)

    def submit(self, call: Callable[[], None]) -> None:
        """Has a thread make a call."""
        self._calls.put(call)
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._run, name="dq-handler", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._calls.get()()
            self._idle.release()


class Handlers:
    """Starts the handlers of deliveries and reports how they end."""

    def __init__(self, worker: Worker, loop: Optional[asyncio.AbstractEventLoop]) -> None:
        self._worker, self._loop = worker, loop
        self._threads = Threads()
        self._tasks: "set[asyncio.Task[None]]" = set()
        self._context = contextvars.copy_context()

    def start(self, lane: Lane, deliveries: List[Delivery]) -> None:
        """Calls the handlers of deliveries, or gives them back if the worker stops."""
        in_loop: List[Begun] = []
        for delivery in deliveries:
            if self._worker.stopping:
                lane.give_back(delivery)
                continue
            try:
                job = self._worker.app.job(delivery.ctx)
            except Exception as error:
                self._end(lane, delivery, of_error(error))
                continue
            limit = job.time_limit or self._worker.time_limit
            if limit:
                delivery.limit = delivery.begun + limit
                self._worker.clock.note(delivery.limit)
            if job.is_async:
                in_loop.append((delivery, job))
            else:  # What one handler sets in its context is not seen by the next one in the same thread.
                call = functools.partial(self._in_thread, lane, delivery, job)
                self._threads.submit(functools.partial(self._context.copy().run, call))
        if in_loop:
            self._in_loop(lane, in_loop)

    def _in_loop(self, lane: Lane, begun: List[Begun]) -> None:
        assert self._loop is not None, "a worker with a coroutine has a loop"
        try:
            self._loop.call_soon_threadsafe(self._begin, lane, begun)
        except RuntimeError:  # The loop is closed, without the worker having been stopped.
            for delivery, _ in begun:
                lane.give_back(delivery)

    def _begin(self, lane: Lane, begun: List[Begun]) -> None:
        for delivery, job in begun:
            task = asyncio.ensure_future(self._call_async(lane, delivery, job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            delivery.interrupt = functools.partial(self._cancel, task)

    def _cancel(self, task: "asyncio.Task[None]") -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(task.cancel)
        except RuntimeError:
            pass  # The loop is closed.

    def _in_thread(self, lane: Lane, delivery: Delivery, job: Job) -> None:
        """Calls a handler that is no coroutine function. What it returns may be awaitable nevertheless."""
        if not self._may_begin(lane, delivery):
            return
        result = None
        try:
            with self._worker.app.around(delivery.ctx):
                result = checked_result(job.call(*job.args, **job.kwargs))
                if inspect.isawaitable(result):
                    result = self._awaited(delivery, result)
        except BaseException as error:
            self._end(lane, delivery, self._of_error(error))
        else:  # A middleware that has swallowed the exception of the handler has decided that the work is done.
            self._end(lane, delivery, _of_result(delivery, result))

    def _awaited(self, delivery: Delivery, awaitable: Any) -> Any:
        """Awaits something in the event loop and waits for it."""
        if self._loop is None:
            raise TypeError("the handler returned something to await, but the worker was started without an event loop")
        future = asyncio.run_coroutine_threadsafe(awaited(awaitable), self._loop)
        delivery.interrupt = future.cancel
        if delivery.decided:
            future.cancel()
        return future.result()

    async def _call_async(self, lane: Lane, delivery: Delivery, job: Job) -> None:
        """Calls a coroutine function and awaits it."""
        if not self._may_begin(lane, delivery):
            return
        result = None
        try:
            with self._worker.app.around(delivery.ctx):
                result = await awaited(job.call(*job.args, **job.kwargs))
        except BaseException as error:
            self._end(lane, delivery, self._of_error(error))
        else:
            self._end(lane, delivery, _of_result(delivery, result))

    def _of_error(self, error: BaseException) -> Outcome:
        """Handlers are cancelled by the worker, whose reason then counts, or by the end of the loop."""
        cancelled = isinstance(error, (asyncio.CancelledError, concurrent.futures.CancelledError))
        return GIVEN_BACK if cancelled and self._worker.stopping else of_error(error)

    def _may_begin(self, lane: Lane, delivery: Delivery) -> bool:
        """A message that was not begun is given back when the worker stops, and one that was lost is let go."""
        if self._worker.stopping or delivery.decided:
            lane.give_back(delivery)
            return False
        self._worker.log.message("started", delivery)
        return True

    def _end(self, lane: Lane, delivery: Delivery, outcome: Outcome) -> None:
        if lane.ended(delivery, outcome):
            self._worker.log.message(outcome.kind, delivery, outcome.error)


def _of_result(delivery: Delivery, result: Any) -> Outcome:
    return of_result(result, delivery.ctx.headers.get(RESULT_HEADER) == "json")
