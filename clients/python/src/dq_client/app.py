"""An application: where its server is, its tasks and consumers, and its middleware."""

from __future__ import annotations

import inspect
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List, NamedTuple, Optional, Tuple, TypeVar

from . import wire
from .callables import is_coroutine_function, module_of, signature
from .context import RESULT_HEADER, Context
from .errors import NotKept, UnknownTask
from .middleware import Middleware, installed
from .queue import CALL_SECONDS, PUSH_SECONDS, Queue, waiting
from .source import Origin, Source
from .wire import RESULT_BYTES, Duration, Text

if TYPE_CHECKING:
    from typing import Coroutine, Protocol, overload

    from typing_extensions import Concatenate, ParamSpec, Unpack

    P = ParamSpec("P")
else:  # Python 3.9 has no ParamSpec.
    P = TypeVar("P")
R = TypeVar("R")
Handler = Callable[..., Any]
F = TypeVar("F", bound=Handler)
_PUSH, _SCHEDULE, _TASK = map(wire.names, (wire.PushOptions, wire.ScheduleOptions, wire.TaskOptions))


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
        self._is_async = is_coroutine_function(handler)
        # The payload takes the first parameter, and the second one, if any, is the context.
        self._wants_context = len(signature(handler).parameters) > 1

    def job(self, ctx: Context) -> Job:
        """Returns what is to be called for a message."""
        args = (ctx.payload, ctx) if self._wants_context else (ctx.payload,)
        return Job(self._handler, args, {}, self._is_async, self._time_limit)


class Task(Generic[P, R]):
    """A function whose calls are pushed as messages. Calling it runs the function here and now.

    Its methods take the arguments of the function, without its context. Options are given with :meth:`options`.
    """

    def __init__(
        self, app: App, handler: Handler, name: str, queue: str, time_limit: Optional[float], options: Dict[str, Any]
    ):
        wire.words(options, _PUSH)  # It refuses options that are not understood, now and not at the first push.
        self.handler, self.name, self.queue = handler, name, app.queue(queue)
        self._time_limit, self._defaults = _checked_limit(time_limit), options
        self._options: Dict[str, Any] = {}
        self._context, self._signature = _signature(handler)
        self._is_async = is_coroutine_function(handler)
        self.__doc__ = handler.__doc__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.handler(*args, **kwargs)

    @property
    def lease(self) -> Optional[Duration]:
        """How long a delivery may take, if the task sets that."""
        return self._defaults.get("lease")

    def options(self, **options: Unpack[wire.TaskOptions]) -> Task[P, R]:
        """Returns the task with options for what is called on it: ``send.options(delay=900).push("ann")``."""
        wire.words(options, _TASK)
        return self._twin(_options={**self._options, **options})

    def payload(self, /, *args: P.args, **kwargs: P.kwargs) -> bytes:
        """Returns the payload of a call: JSON with the name of the task and its arguments."""
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            takes = f"{self.name} takes {self._signature}, and its options(…) take delay, id and so on"
            raise TypeError(f"{error}: {takes}") from None
        call = {"task": self.name, "args": args, "kwargs": kwargs}
        try:
            text = json.dumps(call, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        except ValueError as error:  # Other languages cannot read NaN and Infinity.
            raise ValueError(f"the arguments of {self.name} are no JSON: {error}") from None
        return text.encode("utf-8", "surrogateescape")

    async def push(self, /, *args: P.args, **kwargs: P.kwargs) -> Optional[str]:
        """Pushes a call. Returns the id of its message, or ``None`` for a duplicate."""
        return await self.queue.push(self.payload(*args, **kwargs), **self._chosen(_PUSH))

    push_sync = waiting(push)

    async def call(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Pushes a call and returns its result, which is passed on as JSON. Raises ``TimeoutError``, :class:`Failed` or
        :class:`NotKept`. The option ``timeout`` is how long it waits, 10 seconds by default."""
        given = {"timeout": CALL_SECONDS, **self._chosen(_PUSH)}
        given["headers"] = {**(given.get("headers") or {}), RESULT_HEADER: "json"}
        result = await self.queue.push_and_wait(self.payload(*args, **kwargs), **given)
        if result is None:
            raise NotKept(
                f"the handler is done, but no result was kept: it must be JSON of at most {RESULT_BYTES} bytes"
            )
        value: R = _from_json(result)
        return value

    call_sync = waiting(call)

    async def schedule(self, id: Text, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Declares recurring calls, with the option ``every`` or ``cron``."""
        return await self.queue.schedule(id, self.payload(*args, **kwargs), **self._chosen(_SCHEDULE))

    schedule_sync = waiting(schedule)

    def job(self, args: List[Any], kwargs: Dict[str, Any], ctx: Context) -> Job:
        """Returns what is to be called for a message."""
        if self._context is not None:
            parameter, place = self._context
            if len(args) < place or parameter.kind is parameter.KEYWORD_ONLY:
                kwargs = {**kwargs, parameter.name: ctx}
            else:
                args = [*args[:place], ctx, *args[place:]]
        return Job(self.handler, tuple(args), kwargs, self._is_async, self._time_limit)

    def _waiting(self) -> Task[P, R]:
        return self._twin(queue=self.queue._waiting())

    def _twin(self, **changed: Any) -> Task[P, R]:
        twin: Task[P, R] = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, **changed)
        return twin

    def _chosen(self, names: "frozenset[str]") -> Dict[str, Any]:
        """Returns the options, with those defaults that have a meaning here."""
        return {**{name: value for name, value in self._defaults.items() if name in names}, **self._options}


if TYPE_CHECKING:

    class Decorator(Protocol):
        """Makes a task of a function. The arguments of its calls are those of the function, without its context."""

        @overload
        def __call__(self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]) -> Task[P, R]: ...
        @overload
        def __call__(self, handler: Callable[Concatenate[Context, P], R]) -> Task[P, R]: ...
        @overload
        def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R]: ...
        @overload
        def __call__(self, handler: Callable[P, R]) -> Task[P, R]: ...


class App:
    """The tasks and consumers of a program, and the server that has their queues.

    ``server`` is a URL, or a client of redis-py. ``push_timeout`` is how many seconds a push whose connection broke is
    sent again; 0 switches that off.
    """

    def __init__(self, server: Origin = "redis://localhost", *, push_timeout: float = PUSH_SECONDS) -> None:
        self.source = Source(server)
        self.middleware: List[Middleware] = installed()
        self.tasks: Dict[str, Task[..., Any]] = {}
        self.consumers: Dict[str, Consumer] = {}
        self._push_timeout = wire.checked_seconds("push_timeout", push_timeout)

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
    ) -> Decorator:
        """Makes a task of a function, ``async def`` or ``def``, which then runs in a thread.

        ``time_limit`` is in seconds: a call that takes longer fails. The options are the defaults of each push, such as
        ``retries=5`` or ``lease=30``. The name is the one of the function, with its module; that of a program that is
        run as ``python shop.py`` is ``shop``, under which other programs import it.
        """

        def decorate(handler: Handler) -> Any:
            called = name or f"{module_of(handler)}.{handler.__qualname__}"
            task: Task[Any, Any] = Task(self, handler, called, queue, time_limit, dict(options))
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

    def job(self, ctx: Context) -> Job:
        """Returns what is to be called for a message. Raises if nothing can be."""
        consumer = self.consumers.get(ctx.queue)
        if consumer is not None:
            return consumer.job(ctx)
        call = read_call(ctx.payload)
        ctx.task = call["task"]
        task = self.tasks.get(ctx.task)
        if task is None:
            raise UnknownTask(f"this worker has no task {ctx.task!r}; it has {', '.join(self.tasks) or 'none'}")
        return task.job(call["args"], call["kwargs"], ctx)

    def around(self, ctx: Context) -> ExitStack:
        """Returns the context in which a handler runs: that of all middleware."""
        with ExitStack() as stack:  # If one cannot be entered, those before it are left.
            for middleware in self.middleware:
                context = middleware.handle(ctx)
                if context is not None:
                    stack.enter_context(context)
            return stack.pop_all()

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


def _signature(handler: Handler) -> Tuple[Optional[Tuple[inspect.Parameter, int]], inspect.Signature]:
    """Returns the parameter that is the context, with its place, and the signature without it."""
    found = signature(handler)
    others = list(found.parameters.values())
    context = next(((it, place) for place, it in enumerate(others) if _is_context(it)), None)
    if context is not None:
        others.remove(context[0])
    return context, found.replace(parameters=others)


def _is_context(parameter: inspect.Parameter) -> bool:
    kind = getattr(parameter.annotation, "__forward_arg__", parameter.annotation)
    if isinstance(kind, str):
        return kind.split(".")[-1] == "Context"
    return kind is Context or (kind is parameter.empty and parameter.name == "ctx")


def read_call(payload: bytes) -> Dict[str, Any]:
    """Reads the payload of a call of a task."""
    try:
        call = {"args": [], "kwargs": {}, **json.loads(payload.decode("utf-8", "surrogateescape"))}
        if (type(call["task"]), type(call["args"]), type(call["kwargs"])) == (str, list, dict):
            return call
    except (ValueError, TypeError, KeyError):
        pass
    raise UnknownTask('the payload is not JSON of the form {"task": …, "args": […], "kwargs": {…}}')


def _from_json(result: bytes) -> Any:
    """Reads a result. What is no JSON, such as bytes that a handler returned, is a text."""
    try:
        return json.loads(result)
    except ValueError:
        return wire.text(result)
