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

    may_have_run = True
    """Whether the command may have been carried out. False if no connection could be opened."""


class Refused(DqError):
    """The server answered with an error."""

    later = False
    """Whether the same command may succeed later: the server is loading, or is a replica, for example."""


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

# The server has not carried out the command, but may do so later. redis-py has classes for some codes, older versions
# for fewer, and removes the codes.
_NOT_NOW_CODES = re.compile(
    "(BUSY|LOADING|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED|MOVED|ASK|NOAUTH|WRONGPASS)\\b"
)
_NOT_NOW_CLASSES = (
    redis.exceptions.BusyLoadingError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.ClusterError,
    redis.exceptions.TryAgainError,
    redis.exceptions.AskError,
)
_CREDENTIALS = (redis.exceptions.AuthenticationError, redis.exceptions.AuthorizationError)


class Unsent(Exception):
    """No connection could be opened, so the command was not sent. The cause is the error of redis-py."""


def is_transient(error: BaseException) -> bool:
    """Returns whether the same command may succeed later, on this server or on the one that takes over.

    For a worker that is so even if its password is refused, which may be about to change.
    """
    return is_not_now(error) or is_disconnect(error) or isinstance(error, _CREDENTIALS)


def is_not_now(error: BaseException) -> bool:
    """Returns whether the server has not carried out the command, and may do so later."""
    if isinstance(error, _NOT_NOW_CLASSES):
        return True
    return isinstance(error, redis.ResponseError) and _NOT_NOW_CODES.match(str(error)) is not None


def is_disconnect(error: BaseException) -> bool:
    """Returns whether the connection broke, so that nobody knows whether the command was carried out."""
    # The one of asyncio is a class of its own before Python 3.11.
    timeouts = (redis.TimeoutError, asyncio.TimeoutError)
    kinds = (redis.ConnectionError, *timeouts, redis.exceptions.RedisClusterException, OSError)
    return isinstance(error, kinds) and not isinstance(error, (*_CREDENTIALS, *_NOT_NOW_CLASSES))


def lacks_module(error: BaseException) -> bool:
    """Returns whether the server has not loaded the module."""
    return re.match("unknown command ['`]?dq[.]", str(error), re.IGNORECASE) is not None


def explained(error: BaseException) -> str:
    """Returns the text of an error, preceded by an explanation if the server has not loaded the module.

    Then the server quotes the words of the command, and so the payload. That is cut off the error, which may be logged.
    """
    text = str(error)
    if isinstance(error, redis.exceptions.MovedError):
        node = f"{error.host}:{error.port}"
        return f"the server is a node of a cluster, and {node} holds the queue: pass a redis.RedisCluster ({text})"
    if not lacks_module(error):
        return text
    text = text.partition(", with args")[0]
    error.args = (text,)
    return f"the server has not loaded the module dq: {text}"


def translated(error: BaseException, address: str) -> Optional[DqError]:
    """Returns the error of this package for an exception of redis-py, if it is one."""
    if isinstance(error, Unsent):
        found = translated(error.__cause__ or error, address)
        if isinstance(found, ConnectionLost):
            found.may_have_run = False
        return found
    if is_disconnect(error):
        late = isinstance(error, asyncio.TimeoutError) and not str(error)
        lost = ConnectionLost(f"{address}: {'no answer in time' if late else str(error) or type(error).__name__}")
        lost.may_have_run = "max number of clients" not in str(error)
        return lost
    if isinstance(error, redis.exceptions.OutOfMemoryError):
        return OutOfMemory(str(error))
    if isinstance(error, redis.RedisError):
        text = explained(error)
        refused = _CODES.get(text.partition(" ")[0], Refused)(text)
        refused.later = is_not_now(error) and not isinstance(error, redis.exceptions.AskError)
        return refused
    return None
