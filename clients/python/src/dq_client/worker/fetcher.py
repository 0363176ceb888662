"""The thread that pops: never more messages than there are free places, and with the acks of those that have ended.

While it waits in a pop that blocks, acks go through the reporter. Otherwise they go with the next pop (``DQ.ACKPOP``).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, List, Optional

import redis

from ..errors import is_disconnect, translated
from ..source import Backoff, Link
from ..wire import Word
from .lane import Delivery, Lane

if TYPE_CHECKING:
    from . import Worker

# How long a pop waits, and how much later its reply may come before the connection counts as dead.
BLOCK_MS = 5000
MARGIN_SECONDS = 5.0
# How often the settings of a queue are read again.
_LEARN_SECONDS = 5.0


class Fetcher:
    """Pops the messages of a lane until the worker stops."""

    def __init__(self, worker: Worker, lane: Lane) -> None:
        self._worker, self._lane = worker, lane
        self._link: Optional[Link] = None
        self._backoff = Backoff()
        self._interrupted = False
        self._learned = -_LEARN_SECONDS
        self.consuming = False
        """Whether it has popped."""
        self._connection_id: Optional[int] = None

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
        while True:
            thread.join(0.02)
            if not thread.is_alive() or time.monotonic() > end:
                return
            link = self._link
            answers = answers and self._worker.app.source.unblock(self._lane.key, self._connection_id)
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
            reply = link.ask("DQ.POP", lane.key, *self._options(room), "BLOCK", BLOCK_MS)
            self._received(reply, time.monotonic())

    def _ack_and_pop(self, link: Link, acks: List[Delivery], room: int) -> None:
        """Does not block, so that acks that were not answered are repeated soon."""
        lane, sent = self._lane, time.monotonic()
        receipts = [delivery.ctx.receipt for delivery in acks]
        try:
            _, messages = link.ask("DQ.ACKPOP", lane.key, len(receipts), *receipts, *self._options(room))
        except BaseException:
            with lane.lock:
                lane.acks = acks + lane.acks
            raise
        for delivery in acks:
            lane.answered(delivery)
        self._received(messages, sent)

    def _options(self, room: int) -> List[Word]:
        return ["COUNT", room, "LEASE", self._lane.lease_ms, "META", "AS", self._worker.consumer]

    def _received(self, messages: Any, begun: float) -> None:
        if messages:
            self._worker.start_handlers(self._lane, self._lane.received(messages, begun))

    def _learn(self, link: Link) -> None:
        try:
            self._lane.learn(link.ask("DQ.INFO", self._lane.key))
        except redis.ResponseError as error:
            if not isinstance(error, redis.exceptions.NoPermissionError):
                raise
        self._learned = time.monotonic()

    def _sound(self) -> None:
        self._backoff.reset()
        self._lane.last_answer = time.monotonic()
        if self._interrupted:
            self._interrupted = False
            self._worker.emit_of_queue("resumed", self._lane.name)

    def _pause(self, error: BaseException) -> None:
        if not self._interrupted:
            self._interrupted = True
            known = translated(error, self._worker.app.source.address) or error
            self._worker.emit_of_queue("interrupted", self._lane.name, f"{type(known).__name__}: {known}")
        if is_disconnect(error) or isinstance(error, redis.ResponseError):
            self._worker.app.source.rediscover()
        with self._lane.lock:
            if not self._worker.stopping:
                self._lane.fetch.wait(self._backoff.next())
