"""Commands as words, and replies as values. Nothing here does any input or output.

Names, ids and headers are ``str``. Bytes that are not UTF-8 become surrogate escapes, so they survive both ways.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from .errors import DeadId

if TYPE_CHECKING:
    from typing_extensions import TypedDict
else:  # The standard library has what is needed at run time.
    from typing import TypedDict

T = TypeVar("T")
Text = Union[str, bytes]
Duration = Union[float, timedelta]
Word = Union[str, bytes, int]
PushedId = Union[str, DeadId, None]
"""The id of a message of a batch; ``None`` for a duplicate, the error if the queue holds a dead message of that id."""


class PushOptions(TypedDict, total=False):
    """Options of a push. Durations are in seconds, or a ``timedelta``."""

    id: Text
    """An id of your own, unique in the queue. A push of an id that is there returns ``None``."""
    delay: Duration
    """The message is due this long after now."""
    at: datetime
    """The message is due at this time, which must have a time zone."""
    priority: int
    """-128 to 127, 0 by default. Among ready messages, a higher one is delivered first."""
    retries: int
    """The most redeliveries after the first delivery; -1: no limit."""
    lease: Duration
    """How long each delivery may take before the message is delivered again."""
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
    group: Text
    """Messages of a group are delivered in order, by default one at a time."""
    batch: Text
    """The batch that the message joins: see :meth:`Queue.follow`."""
    headers: Mapping[str, Text]
    """What is said about the message besides its payload."""


class FollowOptions(TypedDict, total=False):
    """Options of the message that follows a batch, as for a push."""

    id: Text
    delay: Duration
    priority: int
    retries: int
    lease: Duration
    group: Text
    headers: Mapping[str, Text]


class ScheduleOptions(TypedDict, total=False):
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
    priority: int
    retries: int
    lease: Duration
    ttl: Duration
    group: Text
    headers: Mapping[str, Text]


class Command(Generic[T]):
    """The words of a command, and how its reply is read."""

    __slots__ = ("words", "read")

    def __init__(self, read: Callable[[Any], T], name: str, *words: Word) -> None:
        self.words: List[Word] = [name, *(raw(word) if isinstance(word, str) else word for word in words)]
        self.read = read


def raw(value: Text) -> bytes:
    """Returns the bytes of a text."""
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


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
_BYTES = ("payload", "result", "checkpoint")


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
    """Returns the fields of ``DQ.INFO``."""
    if reply is None:
        return None
    return {name: text(value) if isinstance(value, bytes) else value for name, value in pairs(reply).items()}


def milliseconds(duration: Duration) -> int:
    """Returns a duration in the unit of the server."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return round(seconds * 1000)


def unix_milliseconds(at: datetime) -> int:
    """Returns a time in the unit of the server."""
    if at.tzinfo is None:
        raise ValueError("the time has no time zone: give an aware datetime, such as datetime.now(timezone.utc)")
    return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


def _header_words(values: Mapping[str, Text]) -> List[Word]:
    words: List[Word] = ["HEADERS", len(values)]
    for name, value in values.items():
        words += [name, value]
    return words if values else []


def _one(value: Any) -> List[Word]:
    return [value]


def _duration(value: Any) -> List[Word]:
    return [milliseconds(value)]


def _time(value: Any) -> List[Word]:
    return [unix_milliseconds(value)]


# For each option: its word, and how its value is written.
_OPTIONS: Dict[str, Tuple[str, Callable[[Any], List[Word]]]] = {
    "id": ("ID", _one),
    "delay": ("DELAY", _duration),
    "every": ("EVERY", _duration),
    "offset": ("OFFSET", _duration),
    "cron": ("CRON", _one),
    "tz": ("TZ", _one),
    "at": ("AT", _time),
    "until": ("UNTIL", _time),
    "older": ("OLDER", _duration),
    "reason": ("REASON", _one),
    "times": ("TIMES", _one),
    "priority": ("PRIORITY", _one),
    "retries": ("RETRIES", _one),
    "lease": ("LEASE", _duration),
    "ttl": ("TTL", _duration),
    "max_wait": ("MAXWAIT", _duration),
    "retain": ("RETAIN", _duration),
    "group": ("GROUP", _one),
    "batch": ("BATCH", _one),
}
_PUSH_FLAGS = {"replace": "REPLACE", "later": "LATER"}
_PUSH_NAMES = frozenset(PushOptions.__annotations__)
_FOLLOW_NAMES = frozenset(FollowOptions.__annotations__)
_SCHEDULE_NAMES = frozenset(ScheduleOptions.__annotations__)


def _words(options: Mapping[str, Any], known: "frozenset[str]") -> List[Word]:
    words: List[Word] = []
    for name, value in options.items():
        if name not in known:
            raise TypeError(f"there is no option {name!r}; the options are {', '.join(sorted(known))}")
        if value is None:
            continue
        if name in _PUSH_FLAGS:
            words += [_PUSH_FLAGS[name]] if value else []
        elif name == "headers":
            words += _header_words(value)
        else:
            word, write = _OPTIONS[name]
            words += [word, *write(value)]
    return words


def push_words(options: Mapping[str, Any]) -> List[Word]:
    """Returns the words of those options of a push that are given."""
    return _words(options, _PUSH_NAMES)


def option_words(options: Mapping[str, Any]) -> List[Word]:
    """Returns the words of those options that are given."""
    return _words(options, frozenset(options))


def push(queue: Text, payload: Text, options: Mapping[str, Any]) -> Command[Optional[str]]:
    """``DQ.PUSH``."""
    return Command(text_or_none, "DQ.PUSH", queue, payload, *push_words(options))


def push_many(
    queue: Text, payloads: Sequence[Text], ids: Sequence[Text], options: Mapping[str, Any]
) -> Command[List[PushedId]]:
    """``DQ.MPUSH``."""
    words = (["IDS", *ids] if ids else []) + _words(options, _PUSH_NAMES - {"id"})
    return Command(_ids, "DQ.MPUSH", queue, len(payloads), *payloads, *words)


def _ids(reply: Any) -> List[PushedId]:
    return [DeadId(str(id)) if isinstance(id, Exception) else text_or_none(id) for id in reply]


def follow(queue: Text, batch: Text, payload: Text, options: Mapping[str, Any]) -> Command[int]:
    """``DQ.BATCH`` with ``THEN``."""
    return Command(int, "DQ.BATCH", queue, batch, "THEN", payload, *_words(options, _FOLLOW_NAMES))


def schedule(queue: Text, id: Text, payload: Text, options: Mapping[str, Any]) -> Command[str]:
    """``DQ.SCHEDULE``."""
    return Command(text, "DQ.SCHEDULE", queue, id, payload, *_words(options, _SCHEDULE_NAMES))
