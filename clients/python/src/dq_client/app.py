"""An application: where its server is, its tasks and consumers, and its middleware."""

from __future__ import annotations

import copy
import inspect
import json
from contextlib import ExitStack
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ContextManager,
    Dict,
    Generic,
    List,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
)

from . import wire
from .context import RESULT_HEADER, Context
from .errors import DqError, NotKept
from .queue import PUSH_SECONDS, Queue, waiting
from .source import Origin, Source
from .wire import RESULT_BYTES, Duration, Text

if TYPE_CHECKING:
    from typing_extensions import Unpack

Handler = Callable[..., Any]
F = TypeVar("F", bound=Handler)
_PUSH = wire.names(wire.PushOptions)
_SCHEDULE = wire.names(wire.ScheduleOptions)


class UnknownTask(DqError):
    """The payload of a message names no task of this app."""


class Middleware:
    """Sees the headers of every message on both sides. Override what you need."""

    def push(self, queue: str, headers: Dict[str, Text]) -> None:
        """May add headers to a message that is pushed."""

    def handle(self, ctx: Context) -> Optional[ContextManager[Any]]:
        """Returns a context manager in which the handler runs, if there is something to do."""
        return None


class Job(NamedTuple):
    """A handler with its arguments, ready to be called."""

    call: Handler
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    is_async: bool
    time_limit: Optional[float]


class Consumer:
    """A handler of a queue whose payloads are bytes."""

    def __init__(self, handler: Handler, time_limit: Optional[float]) -> None:
        self._handler, self._time_limit = handler, _checked_limit(time_limit)
        self._is_async = inspect.iscoroutinefunction(handler)
        # The payload takes the first parameter, and the second one, if any, is the context.
        self._wants_context = len(inspect.signature(handler).parameters) > 1

    def job(self, ctx: Context) -> Job:
        """Returns what is to be called for a message."""
        args = (ctx.payload, ctx) if self._wants_context else (ctx.payload,)
        return Job(self._handler, args, {}, self._is_async, self._time_limit)


class Task(Generic[F]):
    """A function whose calls are pushed as messages. Calling it runs the function here and now."""

    def __init__(
        self, app: App, handler: F, name: str, queue: str, time_limit: Optional[float], options: Dict[str, Any]
    ):
        wire.words(options, _PUSH)  # It refuses options that are not understood, now and not at the first push.
        self.handler, self.name, self.queue = handler, name, app.queue(queue)
        self._time_limit, self._options = _checked_limit(time_limit), options
        self._signature = inspect.signature(handler)
        self._is_async = inspect.iscoroutinefunction(handler)
        self._context = _context_parameter(handler)
        self.__doc__ = handler.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.handler(*args, **kwargs)

    @property
    def lease(self) -> Optional[Duration]:
        """How long a delivery may take, if the task says so."""
        return self._options.get("lease")

    def payload(self, *args: Any, **kwargs: Any) -> bytes:
        """Returns the payload of a call: JSON with the name of the task and its arguments."""
        call = {"task": self.name, "args": args, "kwargs": kwargs}
        return json.dumps(call, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")

    async def push(self, *args: Any, **options: Any) -> Optional[str]:
        """Pushes a call. Returns the id of its message, or ``None`` for a duplicate.

        The names of :class:`~dq_client.PushOptions` are options; all other arguments are passed to the handler. A
        parameter that is named like an option is passed by position, or with :meth:`payload` and ``task.queue.push``.
        """
        payload, given = self._split(args, options)
        return await self.queue.push(payload, **given)

    push_sync = waiting(push)

    async def call(self, /, *args: Any, timeout: float, **options: Any) -> Any:
        """Pushes a call and returns its result, which is passed on as JSON. Raises ``TimeoutError``, :class:`Failed` or
        :class:`NotKept`."""
        payload, given = self._split(args, options)
        given["headers"] = {**(given.get("headers") or {}), RESULT_HEADER: "json"}
        result = await self.queue.push_and_wait(payload, timeout=timeout, **given)
        if result is None:
            raise NotKept(
                f"the handler is done, but no result was kept: it must be JSON of at most {RESULT_BYTES} bytes"
            )
        return _from_json(result)

    call_sync = waiting(call)

    async def schedule(self, id: Text, *args: Any, **options: Any) -> str:
        """Declares recurring calls. The names of :class:`~dq_client.ScheduleOptions` are options."""
        payload, given = self._split(args, options, _SCHEDULE)
        return await self.queue.schedule(id, payload, **given)

    schedule_sync = waiting(schedule)

    def job(self, args: Any, kwargs: Any, ctx: Context) -> Job:
        """Returns what is to be called for a message."""
        if self._context is not None:
            kwargs = dict(kwargs, **{self._context: ctx})
        return Job(self.handler, tuple(args), kwargs, self._is_async, self._time_limit)

    def _waiting(self) -> Task[F]:
        twin = copy.copy(self)
        twin.queue = self.queue._waiting()
        return twin

    def _split(self, args: Any, options: Dict[str, Any], names: "frozenset[str]" = _PUSH) -> Tuple[bytes, Any]:
        defaults = {name: value for name, value in self._options.items() if name in names}
        given = dict(defaults, **{name: value for name, value in options.items() if name in names})
        kwargs = {name: value for name, value in options.items() if name not in names}
        context = {} if self._context is None else {self._context: None}
        try:
            self._signature.bind(*args, **context, **kwargs)
        except TypeError as error:
            raise TypeError(f"{error}: {self.name} takes {self._signature}, and options are {sorted(names)}") from None
        return self.payload(*args, **kwargs), given


class App:
    """The tasks and consumers of a program, and the server that has their queues.

    ``server`` is a URL, or a client of redis-py. ``push_timeout`` is how many seconds a push whose connection broke is
    sent again; 0 switches that off.
    """

    def __init__(self, server: Origin = "redis://localhost", *, push_timeout: float = PUSH_SECONDS) -> None:
        self.source = Source(server)
        self.middleware: List[Middleware] = []
        self.tasks: Dict[str, Task[Any]] = {}
        self.consumers: Dict[str, Consumer] = {}
        self._push_timeout = wire.checked_seconds("push_timeout", push_timeout)
        from .tracing import installed  # It imports this module.

        self.middleware.extend(installed())

    def queue(self, name: str) -> Queue:
        """Returns a queue by its name."""
        return Queue(self.source, name, push_timeout=self._push_timeout, decorate=self._decorate)

    def task(
        self,
        *,
        queue: str = "default",
        name: Optional[str] = None,
        time_limit: Optional[float] = None,
        **options: Unpack[wire.PushOptions],
    ) -> Callable[[F], Task[F]]:
        """Makes a task of a function, ``async def`` or ``def``, which then runs in a thread.

        ``time_limit`` is in seconds: a call that takes longer fails. The options are the defaults of each push, such as
        ``retries=5`` or ``lease=30``. The name is the one of the function, with its module.
        """

        def decorate(handler: F) -> Task[F]:
            task = Task(
                self, handler, name or f"{handler.__module__}.{handler.__qualname__}", queue, time_limit, dict(options)
            )
            if self.tasks.setdefault(task.name, task) is not task:
                raise ValueError(f"there are two tasks of the name {task.name!r}")
            return task

        return decorate

    def consumer(self, queue: str, *, time_limit: Optional[float] = None) -> Callable[[F], F]:
        """Makes a function the handler of all messages of a queue. It is called with the payload, and with the context
        if it has a second parameter."""

        def decorate(handler: F) -> F:
            if queue in self.consumers:
                raise ValueError(f"the queue {queue!r} has a consumer already")
            self.consumers[queue] = Consumer(handler, time_limit)
            return handler

        return decorate

    @property
    def queues(self) -> List[str]:
        """The names of the queues that have a handler."""
        names = [task.queue.name for task in self.tasks.values()] + list(self.consumers)
        return list(dict.fromkeys(names))

    def lease(self, queue: str) -> Optional[Duration]:
        """Returns the longest lease that a task of a queue asks for."""
        leases = [task.lease for task in self.tasks.values() if task.queue.name == queue]
        return max((lease for lease in leases if lease is not None), key=wire.milliseconds, default=None)

    def job(self, ctx: Context) -> Job:
        """Returns what is to be called for a message. Raises if nothing can be."""
        consumer = self.consumers.get(ctx.queue)
        if consumer is not None:
            return consumer.job(ctx)
        try:
            call = json.loads(ctx.payload.decode("utf-8", "surrogateescape"))
            name, args, kwargs = call["task"], call.get("args", []), call.get("kwargs", {})
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UnknownTask('the payload is not JSON of the form {"task": …, "args": […], "kwargs": {…}}') from None
        task = self.tasks.get(name) if isinstance(name, str) else None
        if task is None:
            raise UnknownTask(f"there is no task {name!r} in this worker")
        ctx.task = name
        return task.job(args, kwargs, ctx)

    def around(self, ctx: Context) -> ExitStack:
        """Returns the context in which a handler runs: that of all middleware."""
        stack = ExitStack()
        for middleware in self.middleware:
            context = middleware.handle(ctx)
            if context is not None:
                stack.enter_context(context)
        return stack

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections that pushes of the running event loop have opened."""
        await self.source.aclose()

    def _decorate(self, queue: str, headers: Dict[str, Text]) -> None:
        for middleware in self.middleware:
            middleware.push(queue, headers)


def _checked_limit(seconds: Optional[float]) -> Optional[float]:
    return None if seconds is None else wire.checked_seconds("time_limit", seconds)


def _context_parameter(handler: Handler) -> Optional[str]:
    for name, parameter in inspect.signature(handler).parameters.items():
        kind = parameter.annotation
        if kind is Context or name == "ctx" or (isinstance(kind, str) and kind.split(".")[-1] == "Context"):
            return name
    return None


def _from_json(result: bytes) -> Any:
    """Reads a result. What is no JSON, such as bytes that a handler returned, is a text."""
    try:
        return json.loads(result)
    except ValueError:
        return wire.text(result)
