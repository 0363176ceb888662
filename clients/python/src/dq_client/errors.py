"""Errors: what a server refuses, what a handler may raise, and how replies become exceptions."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Optional, Union

import redis


class DqError(Exception):
    """The base of all errors that this package raises."""


class ConnectionLost(DqError):
    """The server could not be reached. A command that was sent may have been carried out."""


class Refused(DqError):
    """The server answered with an error."""


class QueueFull(Refused):
    """The queue has no room under its ``MAXLEN``."""


class DeadId(Refused):
    """The queue holds a dead message of this id: replace, redrive or cancel it first."""


class TooLarge(Refused):
    """The payload is larger than the ``MAXPAYLOAD`` of the queue."""


class QueueClosed(Refused):
    """The queue is paused for producers and accepts no messages."""


class OutOfMemory(Refused):
    """The server has reached its ``maxmemory``."""


class Failed(DqError):
    """The message that a caller waited for is dead. The text is its last error."""


class NotKept(DqError):
    """What a caller waited for is not there: the message was cancelled or purged, or its result could not be kept."""


class UnknownTask(DqError):
    """The payload of a message is not that of a task, or names none that the worker knows."""


class Reject(Exception):
    """A handler raises this if a message can never succeed. The message becomes dead at once."""


class Retry(Exception):
    """A handler raises this to have its message delivered again.

    ``after`` is in seconds, or a ``timedelta``; without it the queue's backoff applies. The attempt counts.
    """

    def __init__(self, *args: object, after: Union[float, timedelta, None] = None) -> None:
        super().__init__(*args)
        self.after = after


_CODES = {
    "QUEUEFULL": QueueFull,
    "DEADID": DeadId,
    "TOOLARGE": TooLarge,
    "QUEUECLOSED": QueueClosed,
    "OOM": OutOfMemory,
}

# The server cannot carry out the command now. redis-py has classes for codes, older versions for fewer, and removes the codes.
_TRANSIENT_CODES = tuple("MISCONF NOREPLICAS MASTERDOWN CLUSTERDOWN TRYAGAIN UNBLOCKED MOVED ASK".split())
_TRANSIENT_CLASSES = (
    redis.exceptions.ReadOnlyError,
    redis.exceptions.ClusterError,
    redis.exceptions.TryAgainError,
    redis.exceptions.AskError,
)


def is_transient(error: BaseException) -> bool:
    """Returns whether the same command may succeed later, on this server or on the one that takes over."""
    if isinstance(error, _TRANSIENT_CLASSES) or is_disconnect(error):
        return True
    return isinstance(error, redis.ResponseError) and str(error).startswith(_TRANSIENT_CODES)


def is_disconnect(error: BaseException) -> bool:
    """Returns whether the connection broke, so that nobody knows whether the command was carried out."""
    authentication = (redis.exceptions.AuthenticationError, redis.exceptions.AuthorizationError)
    # The one of asyncio is a class of its own before Python 3.11.
    timeouts = (redis.TimeoutError, asyncio.TimeoutError)
    kinds = (redis.ConnectionError, *timeouts, redis.exceptions.RedisClusterException, OSError)
    return isinstance(error, kinds) and not isinstance(error, authentication)


def explained(error: BaseException) -> str:
    """Returns the text of an error, preceded by an explanation if the server has not loaded the module."""
    text = str(error)
    missing = re.match("unknown command ['`]?dq[.]", text, re.IGNORECASE)
    return f"the server has not loaded the module dq: {text}" if missing else text


def translated(error: BaseException, address: str) -> Optional[DqError]:
    """Returns the error of this package for an exception of redis-py, if it is one."""
    if is_disconnect(error):
        late = isinstance(error, asyncio.TimeoutError) and not str(error)
        return ConnectionLost(f"{address}: {'no answer in time' if late else str(error) or type(error).__name__}")
    if isinstance(error, redis.exceptions.OutOfMemoryError):
        return OutOfMemory(str(error))
    if isinstance(error, redis.RedisError):
        text = explained(error)
        return _CODES.get(text.partition(" ")[0], Refused)(text)
    return None
