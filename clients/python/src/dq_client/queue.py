"""A queue as producers and operators use it. Each method exists twice: for asyncio, and with ``_sync`` for callers that wait."""

from __future__ import annotations

import asyncio
import functools
import random
import time
import uuid
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Coroutine,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from redis.client import NEVER_DECODE

from . import wire
from .errors import ConnectionLost, Failed, NotKept, is_transient, translated
from .source import Source
from .wire import Command, Duration, FollowOptions, PushOptions, ScheduleOptions, Text

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Unpack

    P = ParamSpec("P")
T = TypeVar("T")
Fields = Dict[str, Any]
Decorate = Callable[[str, Dict[str, Any]], None]

# A wait is made of shorter ones, so that it ends before the socket timeout of any usual client.
_WAIT_SECONDS = 2.0
# How long a result is kept for the caller that waits for it, beyond the time of its wait.
_KEPT_SECONDS = 60.0


def _both(
    build: Callable[Concatenate[Queue, P], Command[T]],
) -> Tuple[Callable[Concatenate[Queue, P], Coroutine[Any, Any, T]], Callable[Concatenate[Queue, P], T]]:
    """Returns the two methods that send a command: for asyncio, and for callers that wait."""

    async def send(self: Queue, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._ask(build(self, *args, **kwargs))

    def send_and_wait(self: Queue, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._ask_sync(build(self, *args, **kwargs))

    for method, ending in ((send, ""), (send_and_wait, "_sync")):
        functools.update_wrapper(method, build)
        method.__name__ = build.__name__[1:] + ending
    return send, send_and_wait


class Queue:
    """A queue by its name. It is created by its first push."""

    def __init__(self, source: Source, name: str, *, push_timeout: float = 60.0, decorate: Optional[Decorate] = None):
        self.name = name
        self._source = source
        self._push_timeout = push_timeout
        self._decorate = decorate

    def __repr__(self) -> str:
        return f"Queue({self.name!r})"

    # --- producers ---

    async def push(self, payload: Text, **options: Unpack[PushOptions]) -> Optional[str]:
        """Adds a message. Returns its id, or ``None`` if the queue holds a message of that ``id``.

        If the connection breaks, the push is sent again with the same id until it is answered, up to the
        ``push_timeout`` of the app, so the message is made once.
        """
        command, id = self._push(payload, options)
        answer, repeated = await self._repeated(command)
        return id if answer is None and repeated else answer

    def push_sync(self, payload: Text, **options: Unpack[PushOptions]) -> Optional[str]:
        """:meth:`push` without asyncio."""
        command, id = self._push(payload, options)
        answer, repeated = self._repeated_sync(command)
        return id if answer is None and repeated else answer

    async def push_many(
        self, payloads: Sequence[Text], *, ids: Optional[Sequence[Text]] = None, **options: Unpack[PushOptions]
    ) -> List[wire.PushedId]:
        """Adds messages in one step. Returns their ids, as :meth:`push` does."""
        if not payloads:
            return []
        command, sent = self._push_many(payloads, ids, options)
        answers, repeated = await self._repeated(command)
        return _pushed(sent, answers) if repeated else answers

    def push_many_sync(
        self, payloads: Sequence[Text], *, ids: Optional[Sequence[Text]] = None, **options: Unpack[PushOptions]
    ) -> List[wire.PushedId]:
        """:meth:`push_many` without asyncio."""
        if not payloads:
            return []
        command, sent = self._push_many(payloads, ids, options)
        answers, repeated = self._repeated_sync(command)
        return _pushed(sent, answers) if repeated else answers

    async def push_and_wait(self, payload: Text, *, timeout: float, **options: Unpack[PushOptions]) -> Optional[bytes]:
        """Pushes a message and returns the result of its handler. Raises ``TimeoutError``, :class:`Failed` or :class:`NotKept`."""
        options.setdefault("retain", timeout + _KEPT_SECONDS)
        end = time.monotonic() + timeout
        id = _waited_for(await self.push(payload, **options), options)
        while True:
            block = _block(end)
            reply = await self._ask(Command(wire.message, "DQ.AWAIT", self.name, id, "BLOCK", block))
            if reply is not None:
                return _result(reply)
            still_there = await self.get(id)
            _check_wait(still_there, end)

    def push_and_wait_sync(self, payload: Text, *, timeout: float, **options: Unpack[PushOptions]) -> Optional[bytes]:
        """:meth:`push_and_wait` without asyncio."""
        options.setdefault("retain", timeout + _KEPT_SECONDS)
        end = time.monotonic() + timeout
        id = _waited_for(self.push_sync(payload, **options), options)
        while True:
            reply = self._ask_sync(Command(wire.message, "DQ.AWAIT", self.name, id, "BLOCK", _block(end)))
            if reply is not None:
                return _result(reply)
            _check_wait(self.get_sync(id), end)

    def _schedule(self, id: Text, payload: Text, **options: Unpack[ScheduleOptions]) -> Command[str]:
        """Declares a recurring message. Returns ``created``, ``changed`` or ``unchanged``."""
        return wire.schedule(self.name, id, payload, options)

    schedule, schedule_sync = _both(_schedule)

    # --- batches ---

    def _follow(self, batch: Text, payload: Text, **options: Unpack[FollowOptions]) -> Command[int]:
        """Says what follows once all messages that were pushed with this ``batch`` have ended. Returns how many are left.

        It bears the headers ``dq-batch``, ``dq-batch-total``, ``dq-batch-acked``, ``dq-batch-dead`` and
        ``dq-batch-cancelled``. This is sent once, because the batch may have ended when a second command came.
        """
        return wire.follow(self.name, batch, payload, self._decorated(options))

    follow, follow_sync = _both(_follow)

    def _batch_info(self, batch: Text) -> Command[Optional[Fields]]:
        """Returns how far a batch is, as ``DQ.BATCHINFO`` names it, or ``None`` if there is none."""
        return Command(wire.info, "DQ.BATCHINFO", self.name, batch)

    batch_info, batch_info_sync = _both(_batch_info)

    def _cancel_batch(self, batch: Text) -> Command[int]:
        """Removes the messages of a batch that are not dead, and what follows. Returns how many were removed."""
        return Command(int, "DQ.BATCH", self.name, batch, "CANCEL")

    cancel_batch, cancel_batch_sync = _both(_cancel_batch)

    # --- changing messages ---

    def _cancel(self, *ids: Text) -> Command[List[Optional[str]]]:
        """Removes messages. Returns the state that each was in, ``None`` for those that were not there."""
        return Command(_states, "DQ.CANCEL", self.name, *ids)

    cancel, cancel_sync = _both(_cancel)

    def _reschedule(
        self,
        id: Text,
        *,
        delay: Optional[Duration] = None,
        at: Optional[datetime] = None,
        priority: Optional[int] = None,
    ) -> Command[bool]:
        """Changes the due time or the priority of a message. Returns whether it was delayed or ready."""
        words = wire.push_words({"delay": delay, "at": at, "priority": priority})
        return Command(bool, "DQ.RESCHEDULE", self.name, id, *words)

    reschedule, reschedule_sync = _both(_reschedule)

    def _promote(self, count: Optional[int] = None, *, until: Optional[datetime] = None) -> Command[int]:
        """Makes delayed messages due now: all, the next ones, or those that are due by a time. Returns how many."""
        return Command(int, "DQ.PROMOTE", self.name, *_count(count), *wire.option_words({"until": until}))

    promote, promote_sync = _both(_promote)

    def _redrive(
        self,
        count: Optional[int] = None,
        *,
        ids: Sequence[Text] = (),
        delay: Optional[Duration] = None,
        older: Optional[Duration] = None,
        reason: Optional[str] = None,
    ) -> Command[int]:
        """Makes dead messages live again: all, a number of them, those that have been dead for ``older``, those that died
        for a ``reason`` (``retries``, ``rejected`` or ``expired``), or those of these ids. Returns how many."""
        words = _count(count) + (["IDS", len(ids), *ids] if ids else [])
        words += wire.option_words({"delay": delay, "older": older, "reason": reason})
        return Command(int, "DQ.REDRIVE", self.name, *words)

    redrive, redrive_sync = _both(_redrive)

    def _purge(
        self,
        *states: str,
        count: Optional[int] = None,
        group: Optional[Text] = None,
        recurring: bool = False,
        older: Optional[Duration] = None,
    ) -> Command[int]:
        """Removes the messages of these states, or of all; only those of a ``group``, or those that have been in their
        state for at least ``older``. Schedules stay unless ``recurring``. Returns how many."""
        words = [*_count(count), *(["RECURRING"] if recurring else [])]
        words += wire.option_words({"group": group, "older": older})
        return Command(int, "DQ.PURGE", self.name, *states, *words)

    purge, purge_sync = _both(_purge)

    # --- looking ---

    def _get(self, id: Text) -> Command[Optional[Fields]]:
        """Returns a message with all its fields, as ``DQ.GET`` names them."""
        return Command(wire.message, "DQ.GET", self.name, id)

    get, get_sync = _both(_get)

    def _peek(self, state: str = "ready", count: int = 1, *, group: Optional[Text] = None) -> Command[List[Fields]]:
        """Returns the first messages of a state, of all or of one group; dead and done ones newest first."""
        return Command(_messages, "DQ.PEEK", self.name, state, "COUNT", count, *wire.option_words({"group": group}))

    peek, peek_sync = _both(_peek)

    def _len(self, state: Optional[str] = None, *, group: Optional[Text] = None) -> Command[int]:
        """Returns the number of messages, of all or of one group, in a state, or of all that are neither dead nor done."""
        return Command(int, "DQ.LEN", self.name, *([state] if state else []), *wire.option_words({"group": group}))

    len, len_sync = _both(_len)

    def _info(self) -> Command[Optional[Fields]]:
        """Returns counts, settings and totals, or ``None`` if the queue does not exist."""
        return Command(wire.info, "DQ.INFO", self.name)

    info, info_sync = _both(_info)

    # --- pausing ---

    def _pause(
        self, duration: Optional[Duration] = None, *, flow: str = "out", group: Optional[Text] = None
    ) -> Command[None]:
        """Suspends delivery (``out``), new messages (``in``) or both (``all``), or the delivery of one group, for a time or
        until :meth:`resume`."""
        words: List[wire.Word] = [] if duration is None else ["FOR", wire.milliseconds(duration)]
        return Command(_nothing, "DQ.PAUSE", self.name, *_concerned(flow, group), *words)

    pause, pause_sync = _both(_pause)

    def _resume(self, *, flow: str = "all", group: Optional[Text] = None) -> Command[None]:
        """Resumes delivery (``out``), new messages (``in``) or both (``all``), or the delivery of one group."""
        return Command(_nothing, "DQ.RESUME", self.name, *_concerned(flow, group))

    resume, resume_sync = _both(_resume)

    # --- commands ---

    def _push(self, payload: Text, options: Mapping[str, Any]) -> Tuple[Command[Optional[str]], Optional[str]]:
        """Returns the command, and the id if it was made here: with it the push can be repeated."""
        given, id = self._decorated(options), None
        if self._push_timeout and given.get("id") is None:
            given["id"] = id = uuid.uuid4().hex
        return wire.push(self.name, payload, given), id or _chosen(given)

    def _push_many(
        self, payloads: Sequence[Text], ids: Optional[Sequence[Text]], options: Mapping[str, Any]
    ) -> Tuple[Command[List[wire.PushedId]], List[str]]:
        if ids is None:
            ids = [uuid.uuid4().hex for _ in payloads] if self._push_timeout else []
        elif len(ids) != len(payloads):
            raise ValueError(f"there are {len(payloads)} payloads but {len(ids)} ids")
        return wire.push_many(self.name, payloads, ids, self._decorated(options)), [wire.text(id) for id in ids]

    def _decorated(self, options: Mapping[str, Any]) -> Dict[str, Any]:
        given = dict(options)
        if self._decorate is not None:
            headers = dict(given.get("headers") or {})
            self._decorate(self.name, headers)
            given["headers"] = headers
        return given

    # --- sending ---

    async def _ask(self, command: Command[T]) -> T:
        try:
            client = self._source.async_client()
            return command.read(await client.execute_command(*command.words, **{NEVER_DECODE: True}))
        except Exception as error:
            raise translated(error) or error from error

    def _ask_sync(self, command: Command[T]) -> T:
        try:
            return command.read(self._source.client().execute_command(*command.words, **{NEVER_DECODE: True}))
        except Exception as error:
            raise translated(error) or error from error

    async def _repeated(self, command: Command[T]) -> Tuple[T, bool]:
        """Returns the reply, and whether the command was sent more than once."""
        pauses = self._pauses()
        repeated = False
        while True:
            try:
                return await self._ask(command), repeated
            except Exception as error:
                repeated = _must_repeat(error, repeated)
                await asyncio.sleep(next(pauses, None) or _give_up(error))

    def _repeated_sync(self, command: Command[T]) -> Tuple[T, bool]:
        pauses = self._pauses()
        repeated = False
        while True:
            try:
                return self._ask_sync(command), repeated
            except Exception as error:
                repeated = _must_repeat(error, repeated)
                time.sleep(next(pauses, None) or _give_up(error))

    def _pauses(self) -> Iterator[float]:
        end = time.monotonic() + self._push_timeout
        pause = 0.05
        while time.monotonic() < end:
            yield pause * random.uniform(0.5, 1)
            pause = min(pause * 2, 1.0)


def _pushed(ids: List[str], answers: List[wire.PushedId]) -> List[wire.PushedId]:
    """A null that answers a repeated push tells that the message is there."""
    return [id if answer is None else answer for id, answer in zip(ids, answers)]


def _must_repeat(error: BaseException, repeated: bool) -> bool:
    """Raises the error unless the same push may be answered later. Afterwards a server may be loading, or be a replica."""
    if isinstance(error, ConnectionLost):
        return True
    cause = error.__cause__
    if repeated and cause is not None and is_transient(cause):
        return True
    raise error


def _give_up(error: BaseException) -> float:
    raise error


def _chosen(options: Mapping[str, Any]) -> Optional[str]:
    return wire.text_or_none(options.get("id"))


def _waited_for(id: Optional[str], options: Mapping[str, Any]) -> str:
    """A duplicate is waited for as well, since it is the same message."""
    return id if id is not None else wire.text(options["id"])


def _block(end: float) -> int:
    return max(1, round(min(_WAIT_SECONDS, end - time.monotonic()) * 1000))


def _check_wait(fields: Optional[Fields], end: float) -> None:
    if fields is None:
        raise NotKept("the message is gone: it was cancelled or purged, or completed without being kept")
    if time.monotonic() >= end and fields["state"] not in ("done", "dead"):
        raise TimeoutError(f"the message {fields['id']} is still {fields['state']}")


def _result(fields: Fields) -> Optional[bytes]:
    if fields["state"] == "dead":
        raise Failed(fields.get("error") or f"the message is dead: {fields.get('reason')}")
    result: Optional[bytes] = fields.get("result")
    return result


def _states(reply: Any) -> List[Optional[str]]:
    return [wire.text_or_none(state) for state in reply]


def _messages(reply: Any) -> List[Fields]:
    return [fields for fields in map(wire.message, reply) if fields is not None]


def _concerned(flow: str, group: Optional[Text]) -> List[wire.Word]:
    return [flow] if group is None else ["GROUP", group]


def _count(count: Optional[int]) -> List[wire.Word]:
    return [] if count is None else ["COUNT", count]


def _nothing(_: Any) -> None:
    return None
