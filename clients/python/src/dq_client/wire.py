"""Commands as words, and replies as values. Nothing here does any input or output.

Names, ids and headers are ``str``. Bytes that are not UTF-8 become surrogate escapes, so they survive both ways.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from .fields import Message

if TYPE_CHECKING:
    from typing_extensions import TypedDict
else:  # The standard library has what is needed at run time.
    from typing import TypedDict

Text = Union[str, bytes]
Duration = Union[float, timedelta]
Word = Union[str, bytes, int]

RESULT_BYTES = 65536
"""The longest result that the server keeps with a message."""
CHECKPOINT_BYTES = 65536
"""The longest checkpoint that the server keeps. It refuses a nack with a longer one."""


class MessageOptions(TypedDict, total=False):
    """What all messages may have. Durations are in seconds, or a ``timedelta``."""

    priority: int
    """-128 to 127, 0 by default. Among ready messages, a higher one is delivered first."""
    retries: int
    """The most redeliveries after the first delivery; -1: no limit."""
    lease: Duration
    """How long each delivery may take before the message is delivered again."""
    group: Text
    """Messages of a group are delivered in order, by default one at a time."""
    headers: Mapping[str, Text]
    """Metadata besides the payload."""


class _TimedOptions(MessageOptions, total=False):
    at: datetime
    """The message, or the first run of a schedule, is due at this time, which must have a time zone."""
    ttl: Duration
    """The message becomes dead if it is not completed within this time."""


class FollowOptions(MessageOptions, total=False):
    """Options of the message that follows a batch."""

    id: Text
    """An id of your own. If it is taken when the batch has ended, the message gets another one."""
    delay: Duration
    """The message is due this long after the end of the batch."""


class PushOptions(_TimedOptions, total=False):
    """Options of a push."""

    id: Text
    """An id of your own, unique in the queue. A push of an id that is there returns ``None``."""
    delay: Duration
    """The message is due this long after now."""
    replace: bool
    """Replace the message that has the ``id``."""
    max_wait: Duration
    """With ``replace``: due no later than this long after the first push of the chain."""
    later: bool
    """With ``replace``: if that message is being worked on, take its place when the delivery ends."""
    retain: Duration
    """How long the message and its result are kept after its completion."""
    batch: Text
    """The batch that the message joins: see :meth:`Queue.follow`."""
    attempt: int
    """How often the message was delivered before its push: its next delivery is one more."""
    error: Text
    """The error of the last delivery that the message had before its push."""
    checkpoint: Text
    """The checkpoint that the message had before its push."""
    dead: bool
    """The message is dead from its push on."""
    reason: str
    """With ``dead``: why, by default ``rejected``."""


class _Recurrence(TypedDict, total=False):
    every: Duration
    """A run is due at each multiple of this interval since the Unix epoch."""
    offset: Duration
    """Moves all runs of ``every`` by this time."""
    cron: str
    """A cron expression of five fields, or ``@hourly``, ``@daily``, ``@weekly``, ``@monthly``, ``@yearly``."""
    tz: str
    """The time zone of ``cron``, such as ``Europe/Berlin``; UTC by default."""
    until: datetime
    """The last instant at which a run may be due."""
    times: int
    """The series ends after this many runs."""


class ScheduleOptions(_TimedOptions, _Recurrence, total=False):
    """Options of a schedule: ``every`` or ``cron``, and what each run has."""


class TaskOptions(PushOptions, _Recurrence, total=False):
    """Options of a task: those of a push, for ``schedule`` those of a schedule, and how long ``call`` waits."""

    timeout: Duration


class Settings(TypedDict, total=False):
    """Settings of a queue, which are described in ``docs/settings.md``. Durations are in seconds, or a
    ``timedelta``."""

    lease: Duration
    max_lease: Duration
    delay: Duration
    retries: int
    backoff: Tuple[Duration, Duration]
    """The first wait after a nack, and the longest."""
    jitter: int
    """A percentage. It is set only together with ``backoff``."""
    ttl: Duration
    max_len: int
    max_inflight: int
    rate: Tuple[int, Duration]
    """At most so many deliveries in any span of this time."""
    dead_len: int
    dead_ttl: Duration
    retain: Duration
    done_len: int
    max_payload: int
    group_inflight: int
    group_rate: Tuple[int, Duration]
    errors: int
    group_order: str
    """``due`` or ``turn``."""
    dedupe: Duration
    forward: str
    """The words of ``FORWARD``, such as ``STREAM orders TRIM 1000``."""
    dead_forward: str
    """The words of ``DEADFORWARD``, such as ``QUEUE mail-dead``."""


def raw(value: Text) -> bytes:
    """Returns the bytes of a text."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"it is a str or bytes, not {type(value).__name__}")


def text(value: Text) -> str:
    """Returns a reply as text."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def text_or_none(value: Optional[Text]) -> Optional[str]:
    """Returns a reply as text, and a null as ``None``."""
    return None if value is None else text(value)


def pairs(reply: Any) -> Dict[str, Any]:
    """Returns a map, which is a flat array in RESP2."""
    if reply is None:
        return {}
    items = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {text(name): value for name, value in items}


def headers(reply: Any) -> Dict[str, str]:
    """Returns the headers of a reply, in which they may be missing."""
    return {name: text(value) for name, value in pairs(reply).items()}


# Fields whose bytes are not text.
_BYTES = ("payload", "result", "checkpoint", "then")


def info(reply: Any) -> Any:
    """Returns the fields of a queue, a batch or a message, or ``None`` if there is none."""
    if reply is None:
        return None
    fields = pairs(reply)
    for name, value in fields.items():
        if isinstance(value, bytes) and name not in _BYTES:
            fields[name] = text(value)
    return fields


def message(reply: Any) -> Optional[Message]:
    """Returns the fields of a message, or ``None`` if there is none."""
    fields: Optional[Message] = info(reply)
    if fields is not None and "headers" in fields:
        fields["headers"] = headers(fields["headers"])
    if fields is not None and "errors" in fields:
        fields["errors"] = [(attempt, at, text(error)) for attempt, at, error in fields["errors"]]
    return fields


def milliseconds(duration: Duration) -> int:
    """Returns a duration in the unit of the server, rounded to a microsecond and then up, so that nothing is due too
    early."""
    if isinstance(duration, timedelta):
        return -(-(duration // timedelta(microseconds=1)) // 1000)
    try:
        if isinstance(duration, Number) and not isinstance(duration, bool):
            return -(-round(duration * 1_000_000) // 1000)
    except (ValueError, ArithmeticError):
        raise ValueError(f"a duration is a number of seconds or a timedelta, not {duration!r}") from None
    raise TypeError(f"a duration is a number of seconds or a timedelta, not {duration!r}")


def checked_seconds(name: str, duration: Any) -> float:
    """Returns a duration in seconds. One that is none is refused under its name."""
    try:
        seconds = milliseconds(duration) / 1000
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    if seconds < 0:
        raise ValueError(f"{name}: a duration is 0 or more seconds, not {duration!r}")
    return seconds


_EARLIEST_MS = 100_000_000_000


def unix_milliseconds(at: datetime) -> int:
    """Returns a time in the unit of the server, rounded up. One before March 1973, which to the server looks like
    seconds, is as good as that month: it has passed."""
    if at.tzinfo is None:
        raise ValueError("the time has no time zone")
    return max(_EARLIEST_MS, milliseconds(at - datetime(1970, 1, 1, tzinfo=timezone.utc)))


# The documentation of each of these is part of the error for a wrong value.
def _text(value: Any) -> List[Word]:
    """a str or bytes"""
    return [raw(value)]


def _number(value: Any) -> List[Word]:
    """a whole number"""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError
    return [int(value)]


def _duration(value: Any) -> List[Word]:
    """a number of seconds or a timedelta"""
    return [milliseconds(value)]


def _time(value: Any) -> List[Word]:
    """a datetime that has a time zone, such as datetime.now(timezone.utc)"""
    return [unix_milliseconds(value)]


def _waits(value: Any) -> List[Word]:
    """a pair of durations, the first wait and the longest"""
    first, longest = value
    return [milliseconds(first), milliseconds(longest)]


def _rate(value: Any) -> List[Word]:
    """a pair of a whole number and a duration"""
    number, period = value
    return [*_number(number), milliseconds(period)]


def _words(value: Any) -> List[Word]:
    """a str of words"""
    return list(value.split())


def _flag(value: Any) -> List[Word]:
    """True or False"""
    if value is not True:
        raise TypeError
    return []


def _names_and_values(value: Any) -> List[Word]:
    """a mapping of names to values, each of them a str or bytes"""
    return [len(value), *(raw(word) for pair in value.items() for word in pair)]


# How the value of each option is written. Words are sent in this order: some belong to the one before.
_WRITERS: Dict[str, Callable[[Any], List[Word]]] = {
    **dict(id=_text, delay=_duration, every=_duration, offset=_duration, cron=_text, tz=_text, at=_time, until=_time),
    **{"for": _duration},
    **dict(older=_duration, reason=_text, times=_number, count=_number, priority=_number),
    **dict(retries=_number, lease=_duration, ttl=_duration, replace=_flag, max_wait=_duration, later=_flag),
    **dict(retain=_duration, group=_text, batch=_text, recurring=_flag, headers=_names_and_values),
    **dict(attempt=_number, error=_text, checkpoint=_text, dead=_flag),
    **dict(max_lease=_duration, backoff=_waits, jitter=_number, max_len=_number, max_inflight=_number, rate=_rate),
    **dict(dead_len=_number, dead_ttl=_duration, done_len=_number, max_payload=_number, group_inflight=_number),
    **dict(group_rate=_rate, errors=_number, group_order=_text, dedupe=_duration, forward=_words, dead_forward=_words),
}


def names(options: Any) -> "frozenset[str]":
    """Returns the names of the options of a class such as :class:`PushOptions`."""
    return frozenset(options.__annotations__)


def words(options: Mapping[str, Any], known: "Optional[frozenset[str]]" = None) -> List[Word]:
    """Returns the words of those options that are given. One that is not known, or has a value of another kind, is
    refused."""
    for name in options:
        if known is not None and name not in known:
            raise TypeError(f"there is no option {name!r}; the options are {', '.join(sorted(known))}")
    found: List[Word] = []
    for name, write in _WRITERS.items():
        value = options.get(name)
        if value is None or value == {} or (value is False and write is _flag):
            continue
        try:
            found += [name.replace("_", "").upper(), *write(value)]
        except (TypeError, ValueError, AttributeError) as error:
            kind = ValueError if isinstance(error, ValueError) else TypeError
            why = f": {error}" if isinstance(error, ValueError) else ""
            raise kind(f"the option {name!r} is {write.__doc__}, not {value!r}{why}") from error
    return found
