"""Commands as words, and replies as values. Nothing here does any input or output.

Names, ids and headers are ``str``. Bytes that are not UTF-8 become surrogate escapes, so they survive both ways.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

if TYPE_CHECKING:
    from typing_extensions import TypedDict
else:  # The standard library has what is needed at run time.
    from typing import TypedDict

Text = Union[str, bytes]
Duration = Union[float, timedelta]
Word = Union[str, bytes, int]

RESULT_BYTES = 65536
"""The longest result that the server keeps with a message."""


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
    """What is said about the message besides its payload."""


class FollowOptions(MessageOptions, total=False):
    """Options of the message that follows a batch."""

    id: Text
    """An id of your own. If it is taken when the batch has ended, the message gets another one."""
    delay: Duration
    """The message is due this long after the end of the batch."""


class PushOptions(MessageOptions, total=False):
    """Options of a push."""

    id: Text
    """An id of your own, unique in the queue. A push of an id that is there returns ``None``."""
    delay: Duration
    """The message is due this long after now."""
    at: datetime
    """The message is due at this time, which must have a time zone."""
    ttl: Duration
    """The message becomes dead if it is not completed within this time."""
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


class ScheduleOptions(MessageOptions, total=False):
    """Options of a schedule: ``every`` or ``cron``, and what each run has."""

    every: Duration
    """A run is due at each multiple of this interval since the Unix epoch."""
    offset: Duration
    """Moves all runs of ``every`` by this time."""
    cron: str
    """A cron expression of five fields, or ``@hourly``, ``@daily``, ``@weekly``, ``@monthly``, ``@yearly``."""
    tz: str
    """The time zone of ``cron``, such as ``Europe/Berlin``; UTC by default."""
    at: datetime
    """When the first run is due."""
    until: datetime
    """The last instant at which a run may be due."""
    times: int
    """The series ends after this many runs."""
    ttl: Duration
    """A run becomes dead if it is not completed within this time."""


class Settings(TypedDict, total=False):
    """Settings of a queue, which are described in ``docs/settings.md``. Durations are in seconds, or a ``timedelta``."""

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
    raise TypeError(f"it is a str or bytes, not {value!r}")


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


def message(reply: Any) -> Optional[Dict[str, Any]]:
    """Returns the fields of a message as ``DQ.GET`` names them, or ``None`` if there is none."""
    if reply is None:
        return None
    fields = pairs(reply)
    for name, value in fields.items():
        if name == "headers":
            fields[name] = headers(value)
        elif name == "errors":
            fields[name] = [(attempt, at, text(error)) for attempt, at, error in value]
        elif isinstance(value, bytes) and name not in _BYTES:
            fields[name] = text(value)
    return fields


def info(reply: Any) -> Optional[Dict[str, Any]]:
    """Returns the fields of ``DQ.INFO`` or ``DQ.BATCHINFO``."""
    if reply is None:
        return None
    return {
        name: text(value) if isinstance(value, bytes) and name not in _BYTES else value
        for name, value in pairs(reply).items()
    }


def milliseconds(duration: Duration) -> int:
    """Returns a duration in the unit of the server, rounded to a microsecond and then up, so that nothing is due too early."""
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


def unix_milliseconds(at: datetime) -> int:
    """Returns a time in the unit of the server, rounded up."""
    if at.tzinfo is None:
        raise ValueError("the time has no time zone")
    return milliseconds(at - datetime(1970, 1, 1, tzinfo=timezone.utc))


# Each of these has as its documentation what its value is: errors say so.
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


# For each option: its word, and how its value is written. Words are sent in this order: some belong to the one before.
_OPTIONS: Dict[str, Tuple[str, Callable[[Any], List[Word]]]] = {
    "id": ("ID", _text),
    "delay": ("DELAY", _duration),
    "every": ("EVERY", _duration),
    "offset": ("OFFSET", _duration),
    "cron": ("CRON", _text),
    "tz": ("TZ", _text),
    "at": ("AT", _time),
    "until": ("UNTIL", _time),
    "older": ("OLDER", _duration),
    "duration": ("FOR", _duration),
    "reason": ("REASON", _text),
    "times": ("TIMES", _number),
    "count": ("COUNT", _number),
    "priority": ("PRIORITY", _number),
    "retries": ("RETRIES", _number),
    "lease": ("LEASE", _duration),
    "ttl": ("TTL", _duration),
    "replace": ("REPLACE", _flag),
    "max_wait": ("MAXWAIT", _duration),
    "later": ("LATER", _flag),
    "retain": ("RETAIN", _duration),
    "group": ("GROUP", _text),
    "batch": ("BATCH", _text),
    "recurring": ("RECURRING", _flag),
    "headers": ("HEADERS", _names_and_values),
    "max_lease": ("MAXLEASE", _duration),
    "backoff": ("BACKOFF", _waits),
    "jitter": ("JITTER", _number),
    "max_len": ("MAXLEN", _number),
    "max_inflight": ("MAXINFLIGHT", _number),
    "rate": ("RATE", _rate),
    "dead_len": ("DEADLEN", _number),
    "dead_ttl": ("DEADTTL", _duration),
    "done_len": ("DONELEN", _number),
    "max_payload": ("MAXPAYLOAD", _number),
    "group_inflight": ("GROUPINFLIGHT", _number),
    "group_rate": ("GROUPRATE", _rate),
    "errors": ("ERRORS", _number),
    "group_order": ("GROUPORDER", _text),
    "dedupe": ("DEDUPE", _duration),
    "forward": ("FORWARD", _words),
    "dead_forward": ("DEADFORWARD", _words),
}


def names(options: Any) -> "frozenset[str]":
    """Returns the names of the options of a class such as :class:`PushOptions`."""
    return frozenset(options.__annotations__)


def words(options: Mapping[str, Any], known: "Optional[frozenset[str]]" = None) -> List[Word]:
    """Returns the words of those options that are given. One that is not known, or has a value of another kind, is refused."""
    for name in options:
        if known is not None and name not in known:
            raise TypeError(f"there is no option {name!r}; the options are {', '.join(sorted(known))}")
    found: List[Word] = []
    for name, (word, write) in _OPTIONS.items():
        value = options.get(name)
        if value is None or value == {} or (value is False and write is _flag):
            continue
        try:
            found += [word, *write(value)]
        except (TypeError, ValueError, AttributeError) as error:
            kind = ValueError if isinstance(error, ValueError) else TypeError
            why = f": {error}" if isinstance(error, ValueError) else ""
            raise kind(f"the option {name!r} is {write.__doc__}, not {value!r}{why}") from error
    return found
