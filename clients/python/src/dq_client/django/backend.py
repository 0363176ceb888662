"""The backend: enqueues tasks, runs them for the worker, and returns their results.

A task is a message of ``{"task": path, "args": […], "kwargs": {…}}``. While it is worked on, its checkpoint is a record
of its attempts and errors. The result of a task that succeeded is the message's result: the record, the call and the
value.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import traceback
import uuid
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Optional

from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, transaction
from django.utils import timezone as django_timezone
from django.utils.module_loading import import_string

try:
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
except ImportError:
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

from ..app import App, read_call
from ..callables import awaited, checked_result
from ..context import Context
from ..errors import NotKept, Reject, Retry, UnknownTask
from ..queue import PUSH_SECONDS, Queue
from ..wire import RESULT_BYTES, PushOptions, checked_seconds
from ..worker import Worker
from ..worker.outcome import decisive

log = logging.getLogger("dq_client")

# What is kept of errors, so that they fit into a result too.
_ERRORS, _TRACEBACK_CHARACTERS = 10, 2000

_STATUS = {
    "inflight": TaskResultStatus.RUNNING,
    "done": TaskResultStatus.SUCCESSFUL,
    "dead": TaskResultStatus.FAILED,
}


class DqBackend(BaseTaskBackend):
    """Keeps tasks in queues of dq, whose names begin with a namespace.

    ``OPTIONS``: ``url``, or ``client``, a client of redis-py that exists; ``namespace`` (``django``); ``retries``, how
    often a task that raised is tried again, with the backoff of the queue (0); ``keep``, how many seconds the result of
    a task that succeeded is kept (a day); ``enqueue_on_commit``, whether tasks are pushed when the transaction of the
    caller is committed, that of the default database (``False``: at once); ``push_timeout``, how many seconds a push is
    sent again if the server cannot be reached (10).
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Dict[str, Any]) -> None:
        super().__init__(alias, params)
        options = dict(self.options)
        if "url" in options and "client" in options:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: give DqBackend a url or a client, not both")
        url = options.pop("url", "redis://localhost")
        self._origin = options.pop("client", url)
        self._namespace = options.pop("namespace", "django")
        self._retries = options.pop("retries", 0)
        self._keep = options.pop("keep", 86400)
        self._on_commit = options.pop("enqueue_on_commit", False)
        push_timeout = options.pop("push_timeout", PUSH_SECONDS)
        if options:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: DqBackend has no option {', '.join(sorted(options))}")
        if type(self._retries) is not int or type(self._on_commit) is not bool:
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]: retries is a whole number and enqueue_on_commit is True or False, "
                f"not {self._retries!r} and {self._on_commit!r}"
            )
        try:
            checked_seconds("keep", self._keep)
            self._app = App(self._origin, push_timeout=push_timeout)
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: {error}") from error

    def queue(self, queue_name: str = "default") -> Queue:
        """Returns the queue of dq that holds the tasks of a queue: to redrive failed ones, to pause it."""
        return self._app.queue(f"{self._namespace}:{queue_name}")

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Pushes a task, at once or when all transactions that are open are committed."""
        self.validate_task(task)
        result = self._made(task, f"{task.queue_name}:{uuid.uuid4().hex}", args=list(args), kwargs=dict(kwargs))
        call = {"task": task.module_path, "args": result.args, "kwargs": result.kwargs}
        options = PushOptions(id=result.id, priority=task.priority, retain=self._keep)
        if task.run_after is not None:
            at = (
                task.run_after
                if django_timezone.is_aware(task.run_after)
                else django_timezone.make_aware(task.run_after)
            )
            options["at"], call["run_after"] = at, at.timestamp()

        def push() -> None:
            now = _now()
            object.__setattr__(result, "enqueued_at", now)
            call["enqueued_at"] = now.timestamp()
            self.queue(task.queue_name).push_sync(json.dumps(call, allow_nan=False), **options)
            task_enqueued.send(type(self), task_result=result)

        if self._on_commit:
            transaction.on_commit(push)
        else:
            push()
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Returns what is known of a task. Raises ``TaskResultDoesNotExist`` if it was cancelled, or is no longer
        kept."""
        queue_name = result_id.rpartition(":")[0]
        fields = self.queue(queue_name).get_sync(result_id)
        if fields is None:
            raise TaskResultDoesNotExist(result_id)
        status = _STATUS.get(fields["state"], TaskResultStatus.READY)
        record = _Record(fields["result"] if status == TaskResultStatus.SUCCESSFUL else fields.get("checkpoint"))
        call = record.call if status == TaskResultStatus.SUCCESSFUL else json.loads(fields["payload"])
        if "task" not in call:  # Somebody else has acknowledged it.
            raise TaskResultDoesNotExist(result_id)
        call = {"args": [], "kwargs": {}, **call}
        ended_ms, ended = fields.get("done") or fields.get("died"), None
        if ended_ms is not None:  # The server knows milliseconds, by its own clock: no task ends before it has begun.
            ended = max([ended_ms / 1000, *record.times])
        task = _task(call["task"]).using(
            queue_name=queue_name,
            priority=fields.get("priority", call.get("priority", 0)),
            run_after=_time(call.get("run_after")),
        )
        result = self._made(
            task,
            result_id,
            args=call["args"],
            kwargs=call["kwargs"],
            status=status,
            enqueued_at=_time(call.get("enqueued_at", fields["created"] / 1000)),
            finished_at=_time(ended),
        )
        record.write_to(result)
        object.__setattr__(result, "_return_value", call.get("value"))
        return result

    def cancel(self, result_id: str) -> Optional[str]:
        """Removes a task. Returns the state that it was in, such as ``delayed``; ``None`` if it was not there."""
        queue_name = result_id.rpartition(":")[0]
        return self.queue(queue_name).cancel_sync(result_id)[0]

    def worker(self, queues: Mapping[str, int], **options: Any) -> Worker:
        """Returns a worker for queues, with so many tasks of each at a time. The options are those of ``Worker``."""
        app = App(self._origin)
        for queue_name in queues:
            app.consumer(f"{self._namespace}:{queue_name}")(self._work)
        sizes = {f"{self._namespace}:{queue_name}": size for queue_name, size in queues.items()}
        return Worker(app, queues=sizes, **options)

    def _made(self, task: Task, id: str, **fields: Any) -> TaskResult:
        known = {"status": TaskResultStatus.READY, "errors": [], "worker_ids": []}
        for name in ("enqueued_at", "started_at", "finished_at", "last_attempted_at"):
            known[name] = None
        return TaskResult(task=task, id=id, backend=self.alias, **{**known, **fields})

    def _work(self, payload: bytes, ctx: Context) -> str:
        close_old_connections()
        try:
            return self._run(read_call(payload), ctx)
        finally:
            close_old_connections()

    def _run(self, call: Dict[str, Any], ctx: Context) -> str:
        """Runs a task in a thread of the worker. Returns what is kept as its result."""
        task = _task(call["task"])
        ctx.task = call["task"]
        record = _Record(ctx.checkpoint)
        record.begin(ctx)
        result = self._made(task, ctx.id, args=call["args"], kwargs=call["kwargs"], status=TaskResultStatus.RUNNING)
        object.__setattr__(result, "enqueued_at", _time(call.get("enqueued_at", ctx.meta["created"] / 1000)))
        record.write_to(result)
        task_started.send(type(self), task_result=result)
        try:
            context = [TaskContext(task_result=result)] if task.takes_context else []
            value = checked_result(task.call(*context, *result.args, **result.kwargs))
            if inspect.isawaitable(value):  # A decorator has hidden from Django that it is a coroutine.
                value = async_to_sync(awaited)(value)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            decided = decisive(error)
            if isinstance(decided, Retry):
                raise
            record.failed(error, ctx)
            record.write_to(result)
            if isinstance(decided, Reject) or record.failures > self._retries:
                self._finished(result, TaskResultStatus.FAILED)
                raise Reject(f"{type(error).__name__}: {error}") from error
            raise
        call["priority"] = ctx.meta.get("priority", 0)
        try:
            value = normalize_json(value)
            kept = record.completed(call, value)
        except Exception as error:  # The work is done, and done again it would lead to the same.
            log.warning("%s: %s is done, but its result is not kept: %s", task.module_path, ctx.id, error)
            value = None
            record.note(NotKept(f"the result is not kept: {error}"))
            record.write_to(result)
            kept = record.completed(call, value)
        object.__setattr__(result, "_return_value", value)
        self._finished(result, TaskResultStatus.SUCCESSFUL)
        return kept

    def _finished(self, result: TaskResult, status: TaskResultStatus) -> None:
        object.__setattr__(result, "status", status)
        object.__setattr__(result, "finished_at", _now())
        task_finished.send(type(self), task_result=result)


class _Record:
    """What is known of the attempts of a task, as it is stored with the message."""

    def __init__(self, stored: Optional[bytes]) -> None:
        fields = json.loads(stored) if stored else {}
        self.call: Dict[str, Any] = fields.get("call", {})
        self.workers: List[str] = fields.get("workers", [])
        self.times: List[float] = fields.get("times", [])
        self.errors: List[List[str]] = fields.get("errors", [])
        self.failures: int = fields.get("failures", 0)

    def begin(self, ctx: Context) -> None:
        """An attempt begins."""
        self.workers = [*self.workers, ctx.consumer][-100:]
        now = _now().timestamp()
        self.times = [self.times[0] if self.times else now, now]
        ctx.save(self._json())

    def failed(self, error: BaseException, ctx: Context) -> None:
        """An attempt has failed."""
        self.failures += 1
        self.note(error)
        ctx.save(self._json())

    def note(self, error: BaseException) -> None:
        """Adds an error to those that are kept."""
        kind = type(error)
        trace = "".join(traceback.format_exception(kind, error, error.__traceback__))[-_TRACEBACK_CHARACTERS:]
        self.errors = [*self.errors, [f"{kind.__module__}.{kind.__qualname__}", trace]][-_ERRORS:]

    def completed(self, call: Dict[str, Any], value: Any) -> str:
        """Returns what is kept of a task that succeeded: without its arguments, if they are too long."""
        kept = self._json(dict(call, value=value))
        if len(kept) > RESULT_BYTES:
            kept = self._json(dict(call, value=value, args=[], kwargs={}))
        if len(kept) > RESULT_BYTES:
            raise NotKept(f"it has more than the {RESULT_BYTES} bytes that are kept")
        return kept

    def write_to(self, result: TaskResult) -> None:
        """Writes what is known into a result."""
        errors = [TaskError(exception_class_path=path, traceback=trace) for path, trace in self.errors]
        object.__setattr__(result, "errors", errors)
        object.__setattr__(result, "worker_ids", list(self.workers))
        if self.times:
            object.__setattr__(result, "started_at", _time(self.times[0]))
            object.__setattr__(result, "last_attempted_at", _time(self.times[1]))

    def _json(self, call: Optional[Dict[str, Any]] = None) -> str:
        kept = {"workers": self.workers, "times": self.times, "errors": self.errors, "failures": self.failures}
        return json.dumps(dict(kept, call=call) if call else kept)


def _task(path: str) -> Task:
    """Returns a task, and nothing else that has a path: who may push messages may not run any function."""
    try:
        task = import_string(path)
    except ImportError as error:
        raise UnknownTask(f"there is no task {path!r} in this program: {error}") from error
    if not isinstance(task, Task):
        raise UnknownTask(f"{path!r} is not a task")
    return task


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _time(seconds: Optional[float]) -> Optional[datetime]:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
