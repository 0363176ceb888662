"""What a handler is: a function, a coroutine function, or an object of another kind that can be called."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any, Callable, List

_NO_GENERATOR = "a generator only runs as far as somebody iterates over it: let the handler do its work and return"


def signature(handler: Callable[..., Any]) -> inspect.Signature:
    """Returns the signature of a handler. An annotation may name what is imported for type checkers only."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(handler, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(handler)


def is_coroutine_function(handler: Callable[..., Any]) -> bool:
    """Returns whether calling a handler does nothing but make a coroutine. Raises if it is a generator function.

    A decorator may hide a coroutine function, but may also run it by itself: such a handler is called in a thread, and
    what it returns is awaited if it can be.
    """
    while isinstance(handler, functools.partial):
        handler = handler.func
    kinds: List[Any] = [handler] if inspect.isroutine(handler) else [handler, type(handler).__call__]
    for kind in kinds:
        if inspect.isasyncgenfunction(kind) or (inspect.isgeneratorfunction(kind) and not _is_old_coroutine(kind)):
            raise TypeError(f"the handler {handler!r} is a generator function; {_NO_GENERATOR}")
    return any(inspect.iscoroutinefunction(kind) for kind in kinds)


def _is_old_coroutine(function: Any) -> bool:
    """Returns whether ``types.coroutine`` has made a function."""
    code = getattr(function, "__code__", None)
    return bool(code is not None and code.co_flags & inspect.CO_ITERABLE_COROUTINE)


def checked_result(result: Any) -> Any:
    """Returns what a handler returned. A generator has not done anything yet, so it is refused."""
    if (inspect.isgenerator(result) and not inspect.isawaitable(result)) or inspect.isasyncgen(result):
        raise TypeError(f"the handler returned a generator; {_NO_GENERATOR}")
    return result


async def awaited(result: Any) -> Any:
    """Awaits what a handler returned, and what that returned: a decorator may make a coroutine and not await it."""
    while inspect.isawaitable(checked_result(result)):
        following = await result
        if following is result:  # Such as a client that connects when it is awaited.
            break
        result = following
    return result


def module_of(handler: Callable[..., Any]) -> str:
    """Returns the name of the module of a handler, under which other programs import it."""
    if handler.__module__ != "__main__":
        return handler.__module__
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m shop
        name: str = spec.name
        return name[: -len(".__main__")] if name.endswith(".__main__") else name
    file = getattr(main, "__file__", None)
    return os.path.splitext(os.path.basename(file))[0] if file else "__main__"
