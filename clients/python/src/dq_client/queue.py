"""A queue as producers and operators use it. Each method exists twice: for asyncio, and with ``_sync`` for callers that
wait.

It is written once. The other one carries the same coroutine out with a client that waits, so that it never awaits
anything.
"""

from __future__ import annotations

import asyncio
import functools
import time
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union

from . import wire
from .errors import ConnectionLost, DeadId, DqError, Failed, NotKept, OutOfMemory, Refused, Unsent, translated
from .fields import BatchInfo, Message, QueueInfo
from .source import Backoff, Source
from .wire import Duration, FollowOptions, PushOptions, ScheduleOptions, Settings, Text, Word

if TYPE_CHECKING:
    from typing import Coroutine, Mapping

    from typing_extensions import Concatenate, ParamSpec, Unpack

    P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")
Decorate = Callable[[str, Dict[str, Any]], None]

PushedId = Union[str, DeadId, None]
"""The id of one of several messages; ``None`` for a duplicate, the error if the queue holds a dead message of that
id."""
_PUSH, _FOLLOW, _SCHEDULE, _SETTINGS = map(wire.names, (PushOptions, FollowOptions, ScheduleOptions, Settings))

# A wait is made of shorter ones, so that it ends before the socket timeout of any usual client.
_WAIT_SECONDS = 2.0
# How long a result is kept for the caller that waits for it, beyond the time of its wait.
_KEPT_SECONDS = 60.0
# How much later than the end of a wait its reply may come.
_LATE_SECONDS = 1.0
# No attempt begins that would have less time for its answer: being cut off, it would hide why those before it failed.
_SHORTEST_SECONDS = 0.1
CALL_SECONDS = 10.0
"""How long a call waits for its result by default."""
PUSH_SECONDS = 10.0
"""How long a push is sent again by default if the server cannot be reached."""


def waiting(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], T]:
    """Returns the method for callers that wait. Its object has a method ``_waiting``, which returns the twin that
    waits."""

    @functools.wraps(method)
    def wait(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        twin: Any = self
        try:
            method(twin._waiting(), *args, **kwargs).send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        raise RuntimeError(f"{method.__name__} awaited something")

    wait.__name__ += "_sync"
    return wait


class Queue:
    """A queue by its name. It is created by its first push."""

    def __init__(
        self, source: Source, name: str, *, push_timeout: float = PUSH_SECONDS, decorate: Optional[Decorate] = None
    ):
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
        return await self._push(payload, options, self._push_timeout)

    push_sync = waiting(push)

    async def push_many(
        self, payloads: Sequence[Text], *, ids: Optional[Sequence[Text]] = None, **options: Unpack[PushOptions]
    ) -> List[PushedId]:
        """Adds messages in one step. Returns their ids, as :meth:`push` does."""
        if not payloads:
            return []
        made = ids is None
        if ids is None:
            ids = [uuid.uuid4().hex for _ in payloads] if self._push_timeout else []
        elif len(ids) != len(payloads):
            raise ValueError(f"there are {len(payloads)} payloads but {len(ids)} ids")
        named = ["IDS", *ids] if ids else []
        words = wire.words(self._decorated(options), _PUSH - {"id"})
        sent = (len(payloads), *map(wire.raw, payloads), *named, *words)
        answers, may_be_there = await self._repeated(self._push_timeout, "DQ.MPUSH", *sent)
        if ids and (may_be_there or made):  # A null then means that the message is there.
            answers = [id if answer is None else answer for id, answer in zip(ids, answers)]
        return [DeadId(str(id)) if isinstance(id, Exception) else wire.text_or_none(id) for id in answers]

    push_many_sync = waiting(push_many)

    async def push_and_wait(
        self, payload: Text, *, timeout: Duration, **options: Unpack[PushOptions]
    ) -> Optional[bytes]:
        """Pushes a message and returns the result of its handler. Raises ``TimeoutError``, :class:`Failed` or
        :class:`NotKept`.

        If the connection breaks meanwhile, it waits on another one.
        """
        wait = min(_WAIT_SECONDS, self._source.reply_seconds / 2)
        seconds = wire.checked_seconds("timeout", timeout)
        end = time.monotonic() + seconds
        options.setdefault("retain", seconds + _KEPT_SECONDS)
        id = await self._push(payload, options, min(self._push_timeout, seconds))
        if id is None:  # A duplicate is the same message.
            id = wire.text(options["id"])
        while True:
            left = end - time.monotonic()
            block = max(1, round(min(wait, left) * 1000))
            reply, _ = await self._repeated(left + _LATE_SECONDS, "DQ.AWAIT", id, "BLOCK", block)
            done = wire.message(reply)
            if done is not None:
                return _result(done)
            still_there = wire.message((await self._repeated(left + _LATE_SECONDS, "DQ.GET", id))[0])
            if still_there is None:
                raise NotKept("the message is gone: it was cancelled or purged, or completed without being kept")
            if time.monotonic() >= end and still_there["state"] not in ("done", "dead"):
                raise TimeoutError(f"the message {id} is still {still_there['state']}")

    push_and_wait_sync = waiting(push_and_wait)

    async def schedule(self, id: Text, payload: Text, **options: Unpack[ScheduleOptions]) -> str:
        """Declares a recurring message. Returns ``created``, ``changed`` or ``unchanged``."""
        return wire.text(await self._ask("DQ.SCHEDULE", id, payload, *wire.words(options, _SCHEDULE)))

    schedule_sync = waiting(schedule)

    # --- batches ---

    async def follow(self, batch: Text, payload: Text, **options: Unpack[FollowOptions]) -> int:
        """Sets the message that follows once all messages that were pushed with this ``batch`` have ended. Returns how
        many are left.

        It has the headers ``dq-batch``, ``dq-batch-total``, ``dq-batch-acked``, ``dq-batch-dead`` and
        ``dq-batch-cancelled``. This is sent once, because the batch may have ended when a second command came.
        """
        words = wire.words(self._decorated(options), _FOLLOW)
        return int(await self._ask("DQ.BATCH", batch, "THEN", payload, *words))

    follow_sync = waiting(follow)

    async def batch_info(self, batch: Text) -> Optional[BatchInfo]:
        """Returns the progress of a batch, as ``DQ.BATCHINFO`` names it, or ``None`` if there is none."""
        fields: Optional[BatchInfo] = wire.info(await self._ask("DQ.BATCHINFO", batch))
        return fields

    batch_info_sync = waiting(batch_info)

    async def cancel_batch(self, batch: Text) -> int:
        """Removes the messages of a batch that are not dead, and what follows. Returns how many were removed."""
        return int(await self._ask("DQ.BATCH", batch, "CANCEL"))

    cancel_batch_sync = waiting(cancel_batch)

    # --- changing messages ---

    async def cancel(self, *ids: Text) -> List[Optional[str]]:
        """Removes messages. Returns the state that each was in, ``None`` for those that were not there."""
        return [wire.text_or_none(state) for state in await self._ask("DQ.CANCEL", *ids)]

    cancel_sync = waiting(cancel)

    async def reschedule(
        self,
        id: Text,
        *,
        delay: Optional[Duration] = None,
        at: Optional[datetime] = None,
        priority: Optional[int] = None,
    ) -> bool:
        """Changes the due time or the priority of a message. Returns whether it was delayed or ready."""
        words = wire.words({"delay": delay, "at": at, "priority": priority})
        return bool(await self._ask("DQ.RESCHEDULE", id, *words))

    reschedule_sync = waiting(reschedule)

    async def promote(self, count: Optional[int] = None, *, until: Optional[datetime] = None) -> int:
        """Makes delayed messages due now: all, the next ones, or those that are due by a time. Returns how many."""
        return int(await self._ask("DQ.PROMOTE", *wire.words({"count": count, "until": until})))

    promote_sync = waiting(promote)

    async def redrive(
        self,
        count: Optional[int] = None,
        *,
        ids: Sequence[Text] = (),
        delay: Optional[Duration] = None,
        older: Optional[Duration] = None,
        reason: Optional[str] = None,
    ) -> int:
        """Makes dead messages live again: all, a number of them, those that have been dead for ``older``, those that
        died for a ``reason`` (``retries``, ``rejected`` or ``expired``), or those of these ids. Returns how many."""
        words = wire.words({"count": count, "delay": delay, "older": older, "reason": reason})
        named = ["IDS", len(ids), *ids] if ids else []
        return int(await self._ask("DQ.REDRIVE", *named, *words))

    redrive_sync = waiting(redrive)

    async def purge(
        self,
        *states: str,
        count: Optional[int] = None,
        group: Optional[Text] = None,
        recurring: bool = False,
        older: Optional[Duration] = None,
    ) -> int:
        """Removes the messages of these states, or of all; only those of a ``group``, or those that have been in their
        state for at least ``older``. Schedules stay unless ``recurring``. Returns how many."""
        words = wire.words({"count": count, "group": group, "recurring": recurring, "older": older})
        return int(await self._ask("DQ.PURGE", *states, *words))

    purge_sync = waiting(purge)

    # --- looking ---

    async def get(self, id: Text) -> Optional[Message]:
        """Returns a message with all its fields, as ``DQ.GET`` names them."""
        return wire.message(await self._ask("DQ.GET", id))

    get_sync = waiting(get)

    async def peek(self, state: str = "ready", count: int = 1, *, group: Optional[Text] = None) -> List[Message]:
        """Returns the first messages of a state, of all or of one group; dead and done ones newest first."""
        found = await self._ask("DQ.PEEK", state, *wire.words({"count": count, "group": group}))
        return [fields for fields in map(wire.message, found) if fields is not None]

    peek_sync = waiting(peek)

    async def len(self, state: Optional[str] = None, *, group: Optional[Text] = None) -> int:
        """Returns the number of messages, of all or of one group, in a state, or of all that are neither dead nor
        done."""
        return int(await self._ask("DQ.LEN", *([state] if state else []), *wire.words({"group": group})))

    len_sync = waiting(len)

    async def info(self) -> Optional[QueueInfo]:
        """Returns counts, settings and totals, or ``None`` if the queue does not exist."""
        fields: Optional[QueueInfo] = wire.info(await self._ask("DQ.INFO"))
        return fields

    info_sync = waiting(info)

    # --- pausing ---

    async def pause(
        self, duration: Optional[Duration] = None, *, flow: str = "out", group: Optional[Text] = None
    ) -> None:
        """Suspends delivery (``out``), new messages (``in``) or both (``all``), or the delivery of one group, for a
        time or until :meth:`resume`."""
        await self._ask("DQ.PAUSE", *_concerned(flow, group), *wire.words({"for": duration}))

    pause_sync = waiting(pause)

    async def resume(self, *, flow: str = "all", group: Optional[Text] = None) -> None:
        """Resumes delivery (``out``), new messages (``in``) or both (``all``), or the delivery of one group."""
        await self._ask("DQ.RESUME", *_concerned(flow, group))

    resume_sync = waiting(resume)

    # --- settings ---

    async def declare(self, **settings: Unpack[Settings]) -> None:
        """Creates the queue with these settings, or changes them if it exists. Programs call it when they start."""
        await self._ask("DQ.ALTER", "MKQUEUE", *wire.words(settings, _SETTINGS))

    declare_sync = waiting(declare)

    async def create(self, **settings: Unpack[Settings]) -> None:
        """Creates the queue. Raises :class:`Refused` if it exists with other settings."""
        await self._ask("DQ.CREATE", *wire.words(settings, _SETTINGS))

    create_sync = waiting(create)

    async def alter(self, **settings: Unpack[Settings]) -> None:
        """Changes settings. Raises :class:`Refused` if the queue does not exist."""
        await self._ask("DQ.ALTER", *wire.words(settings, _SETTINGS))

    alter_sync = waiting(alter)

    # --- sending ---

    def _decorated(self, options: Mapping[str, Any]) -> Dict[str, Any]:
        given = dict(options)
        if self._decorate is not None:
            headers = dict(given.get("headers") or {})
            self._decorate(self.name, headers)
            given["headers"] = headers
        return given

    async def _push(self, payload: Text, options: Mapping[str, Any], seconds: float) -> Optional[str]:
        given = self._decorated(options)
        made = bool(self._push_timeout) and given.get("id") is None
        if made:
            given["id"] = uuid.uuid4().hex
        words = wire.words(given, _PUSH)
        answer, may_be_there = await self._repeated(seconds, "DQ.PUSH", wire.raw(payload), *words)
        # A null that answers a repeated push, or an id that nobody else has, means that the message is there.
        return wire.text_or_none(given["id"] if answer is None and (may_be_there or made) else answer)

    async def _ask(self, name: str, *words: Word, seconds: Optional[float] = None) -> Any:
        """Sends a command and returns its reply, whose texts are bytes."""
        try:
            encoded = (wire.raw(w) if isinstance(w, str) else w for w in (self.name, *words))
            return await self._send(seconds, name, *encoded)
        except Exception as error:
            cause = error.__cause__ if isinstance(error, Unsent) else error
            raise translated(error, self._source.address) or error from cause

    async def _repeated(self, seconds: float, name: str, *words: Word) -> Tuple[Any, bool]:
        """Sends a command until it is answered, so long; 0: once.

        Returns the reply, and whether an earlier attempt may have been carried out.
        """
        end, backoff = time.monotonic() + seconds, Backoff()
        first: Optional[DqError] = None
        may_have_run = False
        while True:
            try:
                left = max(end - time.monotonic(), 0.001) if seconds > 0 else None
                return await self._ask(name, *words, seconds=left), may_have_run
            except DqError as error:
                if not _may_succeed_later(error):
                    raise
                # A later attempt may have been cut off before it knew why it fails.
                if first is None or (_may_have_run(error) and not may_have_run):
                    first = error
                may_have_run = may_have_run or _may_have_run(error)
                pause = backoff.next()
                if time.monotonic() + pause + _SHORTEST_SECONDS >= end:
                    raise first from first.__cause__
                await self._sleep(pause)

    async def _send(self, seconds: Optional[float], *words: Word) -> Any:
        return await self._source.ask(words, seconds)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def _waiting(self) -> Queue:
        return _Waiting(self)


class _Waiting(Queue):
    """A queue whose coroutines wait for the server instead of awaiting it."""

    def __init__(self, queue: Queue) -> None:
        self.__dict__ = queue.__dict__

    async def _send(self, seconds: Optional[float], *words: Word) -> Any:
        return self._source.ask_waiting(*words)

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def _may_succeed_later(error: DqError) -> bool:
    """Returns whether a push is sent again after this error: a server may come back, finish to load or get memory."""
    return isinstance(error, (ConnectionLost, OutOfMemory)) or (isinstance(error, Refused) and error.later)


def _may_have_run(error: DqError) -> bool:
    return isinstance(error, ConnectionLost) and error.may_have_run


def _result(fields: Message) -> Optional[bytes]:
    if fields["state"] == "dead":
        raise Failed(fields.get("error") or f"the message is dead: {fields.get('reason')}")
    return fields.get("result")


def _concerned(flow: str, group: Optional[Text]) -> List[Word]:
    return [flow] if group is None else ["GROUP", group]
