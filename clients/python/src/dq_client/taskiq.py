"""A broker and a result backend for Taskiq: ``broker = dq_client.taskiq.DqBroker("redis://localhost")``.

The message of a task has the id of the task. Its lease is extended from a thread that no task can stall. The labels
``delay`` (seconds) and ``priority`` (-128 to 127, higher first) are those of the message, and ``retries``, ``lease``
and ``ttl`` too; with Taskiq's SmartRetryMiddleware ``delay`` is that of retries, and ``dq_delay`` that of the message.
A task is acknowledged when it ends, also by an error, unless :class:`NackMiddleware` is installed.

:class:`DqResultBackend` keeps a result with its message: the ack becomes ``DQ.COMPLETE``, so that a task is completed
and has its result in one step. It uses no private interface of Taskiq.
"""

from __future__ import annotations

import asyncio
import queue
from typing import Any, AsyncGenerator, Callable, Dict, Mapping, MutableMapping, Optional, TypeVar
from weakref import WeakValueDictionary

import taskiq
from taskiq.exceptions import TaskRejectedError

from .app import App
from .errors import DqError, Failed, NotKept, Reject, UnknownTask
from .queue import PUSH_SECONDS, Queue
from .source import Origin
from .wire import RESULT_BYTES, Duration, PushOptions
from .worker.inbox import Held, Inbox

T = TypeVar("T")

# The labels that are options of a push, and what their values are.
_LABELS = {"lease": float, "ttl": float, "priority": int, "retries": int}
# Errors after which a task is not tried again.
_REJECTED = (Reject, TaskRejectedError)


class DqBroker(taskiq.AsyncBroker):
    """Keeps tasks in one queue of dq.

    ``server`` is a URL, or a client of redis-py that exists. A worker process holds at most ``prefetch`` tasks, running
    and waiting: give it the number that ``--max-async-tasks`` has. ``lease`` is how long a task stays with a worker
    that is gone, in seconds; by default that of its message or of the queue. ``push_timeout`` is how many seconds a
    push is sent again if the server cannot be reached.
    """

    def __init__(
        self,
        server: Origin = "redis://localhost",
        queue_name: str = "taskiq",
        *,
        prefetch: int = 100,
        lease: Optional[Duration] = None,
        push_timeout: float = PUSH_SECONDS,
    ) -> None:
        super().__init__()
        self._app = App(server, push_timeout=push_timeout)
        self._prefetch, self._lease = prefetch, lease
        self._inbox: Optional[Inbox] = None
        self._arrived: "queue.SimpleQueue[Held]" = queue.SimpleQueue()
        self.queue: Queue = self._app.queue(queue_name)
        """The queue of dq: to look at tasks, to cancel or redrive them, to pause it."""
        self.running: MutableMapping[str, _Running] = WeakValueDictionary()
        """The tasks that this process works on, by id."""

    def with_result_backend(self, result_backend: taskiq.AsyncResultBackend[Any]) -> DqBroker:
        """Sets the result backend."""
        if isinstance(result_backend, DqResultBackend):
            result_backend.running = self.running
        super().with_result_backend(result_backend)
        return self

    async def cancel(self, task_id: str) -> Optional[str]:
        """Removes a task that has not ended. Returns the state that it was in, ``None`` if it was not there.

        A task that runs is not interrupted, but it is not delivered again.
        """
        return (await self.queue.cancel(task_id))[0]

    async def kick(self, message: taskiq.BrokerMessage) -> None:
        """Pushes a task. One that is kicked again under its id, as by a retry, takes the place of the one that runs."""
        options = PushOptions(id=message.task_id, replace=True, later=True)
        given: Dict[str, Any] = {"delay": _label(message.labels, self._delay_label(message.labels), float)}
        given.update((name, _label(message.labels, name, kind)) for name, kind in _LABELS.items())
        chosen = {name: value for name, value in given.items() if value is not None}
        options.update(chosen)  # type: ignore[typeddict-item]
        if isinstance(self.result_backend, DqResultBackend):
            options["retain"] = self.result_backend.keep
        await self.queue.push(message.message, **options)

    def _delay_label(self, labels: Mapping[str, Any]) -> str:
        """To SmartRetryMiddleware the label ``delay`` is that of retries, which it sends itself or has a source
        schedule."""
        for middleware in self.middlewares:
            if isinstance(middleware, taskiq.SmartRetryMiddleware):
                is_retry = "_retries" in labels and middleware.schedule_source is None
                return "delay" if is_retry else "dq_delay"
        return "delay"

    async def listen(self) -> AsyncGenerator[taskiq.AckableMessage, None]:
        """Yields tasks to the worker of Taskiq."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def deliver(held: Held) -> None:
            self._arrived.put(held)
            loop.call_soon_threadsafe(news.set)

        inbox = Inbox(self._app, self.queue.name, self._prefetch, deliver, lease=self._lease, name="taskiq")
        self._inbox = inbox
        inbox.start()
        ticks = asyncio.ensure_future(_tick())
        try:
            while True:
                if self._arrived.empty():
                    news.clear()
                    await news.wait()
                    continue
                held = self._arrived.get()
                if held.lost:
                    held.give_back()
                elif self._is_known(held):
                    yield self._message(held)
        finally:
            ticks.cancel()
            inbox.request_stop()
            self._give_back()

    async def shutdown(self) -> None:
        """Gives back what was not begun, waits for the answers to the last acks, and closes connections."""
        await super().shutdown()
        if self._inbox is not None:
            self._inbox.request_stop()
            self._give_back()
            await asyncio.get_running_loop().run_in_executor(None, self._inbox.close)
        await self._app.aclose()

    def _is_known(self, held: Held) -> bool:
        """Ends the delivery of a task that Taskiq would ack without running it. Another worker may know it."""
        try:
            name = self.formatter.loads(held.ctx.payload).task_name
        except Exception as error:
            # What the formatter says may quote the payload, which errors do not show.
            held.fail(UnknownTask(f"the payload is no message of Taskiq ({type(error).__name__})"))
            return False
        held.ctx.task = name
        if self.find_task(name) is None:
            held.fail(UnknownTask(f"this worker has no task {name!r}"))
            return False
        return True

    def _message(self, held: Held) -> taskiq.AckableMessage:
        running = self.running[held.ctx.id] = _Running(self, held)
        return taskiq.AckableMessage(data=held.ctx.payload, ack=running.end)

    def _give_back(self) -> None:
        while not self._arrived.empty():
            self._arrived.get().give_back()


def _label(labels: Mapping[str, Any], name: str, kind: Callable[[Any], Any]) -> Any:
    try:
        return None if name not in labels else kind(labels[name])
    except (TypeError, ValueError):
        raise ValueError(f"the label {name!r} is a number, not {labels[name]!r}") from None


async def _tick() -> None:
    """Wakes the event loop now and then: Taskiq's signal handlers set an event, which does not wake it."""
    while True:
        await asyncio.sleep(0.2)


class _Dropped(Exception):
    """The error of a task that Taskiq has dropped without an ack."""


class _Running:
    """A task that this process works on, and what is known of its end before it is acked.

    Only Taskiq's message refers to it. Taskiq drops a message without an ack if a middleware raises, and those that
    wait if its receiver is cancelled. Such a task fails when Taskiq no longer refers to its message, else it would be
    held for as long as the process lives.
    """

    def __init__(self, broker: DqBroker, held: Held) -> None:
        self._broker, self.held, self._ended = broker, held, False
        self._loop = asyncio.get_running_loop()
        self.error: Optional[BaseException] = None
        self.result: Optional[bytes] = None

    def end(self) -> None:
        """Taskiq acks the message, also after an error."""
        self._ended = True
        if self._broker.running.get(self.held.ctx.id) is self:
            del self._broker.running[self.held.ctx.id]
        if isinstance(self.error, _REJECTED):
            self.held.bury(self.error, self.result)
        elif self.error is not None:
            self.held.fail(self.error, self.result)
        elif self.result is not None:
            self.held.complete(self.result)
        else:
            self.held.ack()

    def __del__(self) -> None:
        if not self._ended:
            try:  # Not here, since this may run while any lock is held.
                self._loop.call_soon_threadsafe(self.held.fail, self.error or _Dropped("it was dropped without an ack"))
            except RuntimeError:
                pass  # The loop is closed: the process ends, or the lease does.


class NackMiddleware(taskiq.TaskiqMiddleware):
    """A task that raised is delivered again with the backoff of the queue, and is dead after its ``retries``.

    The label ``retries`` counts for a task, else the setting of the queue. ``dq_client.Reject`` and Taskiq's
    ``context.reject()`` make it dead at once, ``dq_client.Retry(after=seconds)`` names the time. An error is a result
    when the task is dead, not before. Taskiq's own middleware for retries is not needed with this one.
    """

    async def on_error(
        self, message: taskiq.TaskiqMessage, result: taskiq.TaskiqResult[Any], exception: BaseException
    ) -> None:
        """Remembers the error for the ack."""
        broker = self.broker
        running = broker.running.get(message.task_id) if isinstance(broker, DqBroker) else None
        if running is None or isinstance(exception, taskiq.NoResultError):
            return
        running.error = exception
        if not isinstance(exception, _REJECTED) and not await self._is_last(message.task_id):
            result.error = taskiq.NoResultError()

    async def _is_last(self, task_id: str) -> bool:
        assert isinstance(self.broker, DqBroker)
        try:
            fields = await self.broker.queue.get(task_id)
        except DqError:
            return False
        return fields is not None and 0 <= fields.get("retries", -1) < fields["attempt"]


class DqResultBackend(taskiq.AsyncResultBackend[T]):
    """Keeps results of up to 65536 bytes of JSON for ``keep`` seconds, each with its message.

    It works together with a :class:`DqBroker` of the same queue, and with tasks that are acked when their result is
    saved, which is Taskiq's default. Progress is not kept.
    """

    def __init__(
        self, server: Origin = "redis://localhost", queue_name: str = "taskiq", *, keep: Duration = 86400.0
    ) -> None:
        self._app = App(server)
        self._queue = self._app.queue(queue_name)
        self.keep = keep
        self.running: MutableMapping[str, _Running] = {}
        """The tasks that the broker of this process works on."""

    async def set_result(self, task_id: str, result: taskiq.TaskiqResult[T]) -> None:
        """Has the ack that follows store the result."""
        running = self.running.get(task_id)
        if running is None:
            raise DqError("a result is kept with its message: use DqBroker, and the ack type when_saved")
        stored = result.model_dump_json().encode()
        if len(stored) > RESULT_BYTES:
            raise NotKept(f"the result has {len(stored)} bytes, more than the {RESULT_BYTES} that are kept")
        running.result = stored

    async def is_result_ready(self, task_id: str) -> bool:
        """Returns whether the task is done or dead."""
        fields = await self._queue.get(task_id)
        return fields is not None and fields["state"] in ("done", "dead")

    async def get_result(self, task_id: str, with_logs: bool = False) -> taskiq.TaskiqResult[T]:
        """Returns the result of a task that is done, or the error of one that is dead."""
        fields = await self._queue.get(task_id) or {"state": "gone"}
        stored = fields.get("result" if fields["state"] == "done" else "checkpoint")
        if stored is not None and fields["state"] in ("done", "dead"):
            return taskiq.TaskiqResult.model_validate_json(stored)
        if fields["state"] == "dead":
            error = Failed(fields.get("error") or f"the task is dead: {fields['reason']}")
            return taskiq.TaskiqResult[Any](is_err=True, return_value=None, execution_time=0, error=error)
        why = ": what it returned is no JSON or too long, or was not to be kept" if fields["state"] == "done" else ""
        raise NotKept(f"the task {task_id} has no result: it is {fields['state']}{why}")

    async def shutdown(self) -> None:
        """Closes connections."""
        await self._app.aclose()
