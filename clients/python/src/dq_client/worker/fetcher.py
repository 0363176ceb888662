"""The thread that pops: never more messages than there are free places, and with the acks of those that have ended.

While it waits in a pop that blocks, acks go through the reporter. Otherwise they go with the next pop (``DQ.ACKPOP``).
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any, List, Optional

import redis

from ..errors import is_disconnect, translated
from ..source import Backoff, Link
from ..wire import Word
from .lane import BLOCK_MS, Delivery, Lane

if TYPE_CHECKING:
    from . import Worker

# How much later than it waits the reply to a pop may come before the connection counts as dead.
MARGIN_SECONDS = 5.0
# How often the settings of a queue are read again.
_LEARN_SECONDS = 5.0
# How long the server may take to end a wait, and the reply of that to arrive.
_END_SECONDS = 0.5
# After a pop whose reply was lost, how long it takes until twice as many messages are asked for again. The reply may
# have been larger than the server, or what is between, lets pass, and what is lost with it waits for the end of its
# lease.
_CAREFUL_SECONDS = 60.0
# How often it is reported that a queue cannot be popped. Behind an address that stays a replica nothing else would
# tell.
_REPORT_SECONDS = 60.0


class Fetcher:
    """Pops the messages of a lane until the worker stops."""

    def __init__(self, worker: Worker, lane: Lane) -> None:
        self._worker, self._lane = worker, lane
        self._link: Optional[Link] = None
        self._backoff = Backoff()
        self._interrupted = False
        self._reported = 0.0
        self._learned = -_LEARN_SECONDS
        self.consuming = False
        """Whether it has popped."""
        self._connection_id: Optional[int] = None
        self._most = lane.concurrency
        """How many messages a pop asks for at most."""
        self._asked = 0
        """How many the pop asks for whose reply has not come."""
        self._careful_until = 0.0
        self._begun: Optional[float] = None
        """When the pop was sent whose leases count from then, as the server does not tell its time."""

    def run(self) -> None:
        """Pops until the worker stops."""
        while not self._worker.stopping:
            try:
                link = self._link or self._connect()
                self._step(link)
                self._sound()
            except Exception as error:
                self._disconnect()
                self._lane.flush_acks()
                if self._asked > 1 and is_disconnect(error):
                    self._most = self._asked // 2
                    self._careful_until = time.monotonic() + _CAREFUL_SECONDS
                self._asked = 0
                if not self._worker.stopping:
                    self._pause(error)
        self._lane.flush_acks()
        self._disconnect()

    def end_pop(self, thread: threading.Thread) -> None:
        """Has the thread end, which may wait in a pop. A message that is delivered to it meanwhile is given back.

        If the server does not answer or refuses that, the connection is closed: a message that is on its way then is
        delivered again when its lease is over. A pop that still waited later would be delivered what is given back.
        """
        answers, end = True, time.monotonic() + MARGIN_SECONDS
        asked = math.inf
        while True:
            thread.join(0.02)
            if not thread.is_alive() or time.monotonic() > end:
                return
            link = self._link
            asked = min(asked, time.monotonic())
            answers = answers and self._worker.app.source.unblock(self._lane.key, self._connection_id)
            # A connection on which nothing arrives may be dead, although another one is served.
            answers = answers and time.monotonic() - asked < _END_SECONDS
            if not answers and link is not None:
                link.close()

    def _connect(self) -> Link:
        self._link = link = self._worker.app.source.link(self._lane.key, BLOCK_MS / 1000 + MARGIN_SECONDS)
        self._learned = -_LEARN_SECONDS
        self._connection_id = link.id()
        return link

    def _disconnect(self) -> None:
        self._connection_id = None
        if self._link is not None:
            self._link.close()
            self._link = None

    def _step(self, link: Link) -> None:
        """Acks what has ended and pops what there is room for."""
        lane = self._lane
        if time.monotonic() - self._learned > _LEARN_SECONDS:
            self._learn(link)
        with lane.lock:
            lane.collecting = True
            while not lane.acks and lane.working >= lane.concurrency and not self._worker.stopping:
                lane.fetch.wait()
            acks, room = lane.acks, lane.concurrency - lane.working + len(lane.acks)
            lane.acks = []
            if not acks:
                lane.collecting = False
        if self._worker.stopping:
            with lane.lock:
                lane.acks = acks + lane.acks
        elif acks:
            self._ack_and_pop(link, acks, room)
        else:
            if not self.consuming:
                self.consuming = True
                self._worker.consuming()
            reply = self._popped(link, "DQ.POP", [], room, "BLOCK", lane.block_ms)
            self._received(reply)

    def _ack_and_pop(self, link: Link, acks: List[Delivery], room: int) -> None:
        """Does not block, so that acks that were not answered are repeated soon."""
        lane = self._lane
        receipts = [delivery.ctx.receipt for delivery in acks]
        try:
            _, messages = self._popped(link, "DQ.ACKPOP", [len(receipts), *receipts], room)
        except BaseException:
            with lane.lock:
                lane.acks = acks + lane.acks
            raise
        for delivery in acks:
            lane.answered(delivery)
        self._received(messages)

    def _popped(self, link: Link, command: str, acked: List[Word], room: int, *more: Word) -> Any:
        """Sends a pop and returns its reply."""
        lane = self._lane
        if self._most < lane.concurrency and time.monotonic() > self._careful_until:
            self._most = min(self._most * 2, lane.concurrency)
            self._careful_until = time.monotonic() + _CAREFUL_SECONDS
        self._asked = min(room, self._most)
        options: List[Word] = ["COUNT", self._asked, *lane.lease_words, "META", "AS", self._worker.consumer]
        self._begun = None if lane.server_time.is_known else time.monotonic()
        reply = link.ask(command, lane.key, *acked, *options, *more)
        self._asked = 0
        return reply

    def _received(self, messages: Any) -> None:
        if messages:
            self._worker.start_handlers(self._lane, self._lane.received(messages, self._begun))

    def _learn(self, link: Link) -> None:
        self._lane.server_time.read(link)
        try:
            self._lane.learn(link.ask("DQ.INFO", self._lane.key))
        except redis.ResponseError as error:
            if not isinstance(error, redis.exceptions.NoPermissionError):
                raise
        self._learned = time.monotonic()

    def _sound(self) -> None:
        self._backoff.reset()
        self._lane.last_answer, self._lane.refused_since = time.monotonic(), None
        if self._interrupted:
            self._interrupted = False
            self._worker.log.queue("resumed", self._lane.name)

    def _pause(self, error: BaseException) -> None:
        if self._lane.refused_since is None:
            self._lane.refused_since = time.monotonic()
        if not self._interrupted or time.monotonic() - self._reported > _REPORT_SECONDS:
            self._interrupted, self._reported = True, time.monotonic()
            known = translated(error, self._worker.app.source.address) or error
            self._worker.log.queue("interrupted", self._lane.name, f"{type(known).__name__}: {known}")
        if is_disconnect(error) or isinstance(error, redis.ResponseError):
            self._worker.app.source.rediscover()
        with self._lane.lock:
            if not self._worker.stopping:
                self._lane.fetch.wait(self._backoff.next())
