"""The threads of a channel: one pops and keeps leases, and one listens for each fanout queue. They reconnect by
themselves.

Celery's own loop therefore never sees a lost connection: what runs goes on running, keeps its lease, and is acked
when the server is back.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import redis
from kombu.log import get_logger

from ..errors import Unsent, explained, is_transient
from ..source import Backoff, Link, Source, published
from ..wire import Word
from ..worker.fetcher import MARGIN_SECONDS

logger = get_logger(__name__)

# The longest time that a pop waits, and so the longest time until a channel is closed.
_BLOCK_SECONDS = 1.0
# How often a thread that may not pop looks again, since a limit of Celery's own changes without a notice.
_LOOK_SECONDS = 0.1

Delivered = Tuple[str, bytes, int]
"""A tag, a payload and the number of the attempt."""


class Holder:
    """What a channel holds: it pops one message at a time while there is room, and extends the leases of all.

    All keys are in the slot of ``prefix`` if the server is a cluster.
    """

    def __init__(
        self, source: Source, prefix: bytes, lease: float, may_pop: Callable[[], bool], deliver: Callable[..., None]
    ) -> None:
        self._source, self._prefix, self._may_pop, self._deliver = source, prefix, may_pop, deliver
        self._lease_ms = max(round(lease * 1000), 1)
        self._block_ms = max(min(round(_BLOCK_SECONDS * 1000), self._lease_ms // 4), 1)
        self._changed = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        self._link: Optional[Link] = None
        self._closed = False
        self._blocked: Optional[Tuple[Optional[int], str]] = None
        self._keys: List[str] = []
        self._held: Dict[str, bool] = {}
        self._waiting: Optional[str] = None
        self._unsettled: List[List[Word]] = []
        self._extend_at = 0.0

    # --- what the channel calls ---

    @property
    def held(self) -> int:
        """How many messages it holds."""
        return len(self._held)

    def consume(self, key: str) -> None:
        """Pops from a queue from now on."""
        with self._changed:
            self._keys.append(key)
            self._start()
        self._unblock()

    def cancel(self, key: str) -> None:
        """Stops popping from a queue. A message that nobody has seen goes back."""
        with self._changed:
            if key in self._keys:
                self._keys.remove(key)
            waiting = self._waiting
        if waiting is not None and _parts(waiting)[0] == key and key not in self._keys:
            self.settle(waiting, "DQ.NACK", "NOCOUNT")

    def get(self, key: str) -> Optional[Delivered]:
        """Pops a message that is ready now."""
        reply = ask(self._source, "DQ.POP", key, "LEASE", self._lease_ms)
        if not reply:
            return None
        with self._changed:
            delivered = self._hold(key, reply[0])
            self._start()
        return delivered

    def holds(self, tag: str) -> bool:
        """Returns whether it holds a message still."""
        return tag in self._held

    def wake(self) -> None:
        """Has the thread look again whether it may pop."""
        with self._changed:
            self._changed.notify_all()

    def taken(self, tag: str) -> None:
        """Has the next message popped, as the one that was delivered has reached its consumer."""
        with self._changed:
            if self._waiting == tag:
                self._waiting = None
            self._changed.notify_all()

    def settle(self, tag: str, command: str, *words: Word) -> None:
        """Ends a delivery. If the server cannot be reached, its thread repeats the command until it is answered."""
        with self._changed:
            if self._held.pop(tag, None) is None:
                return
            if self._waiting == tag:
                self._waiting = None
            self._changed.notify_all()
        key, receipt = _parts(tag)
        outcome: List[Word] = [command, key, receipt, *words]
        if self._unsettled or not self._settled(outcome):
            with self._changed:
                self._unsettled.append(outcome)

    def give_back(self) -> None:
        """Gives back all messages, as if they had never been delivered."""
        for tag in list(self._held):
            self.settle(tag, "DQ.NACK", "NOCOUNT")

    def close(self) -> None:
        """Stops popping, waits for the thread, and gives back what is held."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._unblock()
        link = self._link
        if self._blocked is not None and link is not None:  # What is on its way comes back when its lease is over.
            link.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_BLOCK_SECONDS + MARGIN_SECONDS)
        self.give_back()
        for outcome in self._unsettled:
            if not self._settled(outcome):
                break  # If one is not answered, the others would not be either.

    # --- the thread ---

    def _start(self) -> None:
        self._changed.notify_all()
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="dq-celery", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        backoff, broken = Backoff(), False
        while not self._closed:
            try:
                if self._link is None:
                    self._link = self._source.link(self._prefix, _BLOCK_SECONDS + MARGIN_SECONDS)
                    connection = self._link.id()
                self._step(self._link, connection)
            except Exception as error:
                if not broken:
                    logger.warning("dq: interrupted: %s", explained(error))
                broken = True
                self._disconnect()
                self._source.rediscover()
                with self._changed:
                    if not self._closed:
                        self._changed.wait(backoff.next())
            else:
                if broken:
                    logger.warning("dq: resumed")
                backoff, broken = Backoff(), False
        self._disconnect()

    def _disconnect(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _unblock(self) -> None:
        """Ends a pop that waits. Without the right to that, it ends by itself within a second."""
        end = time.monotonic() + _BLOCK_SECONDS
        while (blocked := self._blocked) is not None and time.monotonic() < end:
            connection, key = blocked
            if not self._source.unblock(key.encode("utf-8", "surrogateescape"), connection):
                break
            time.sleep(0.01)  # It may not have reached the server yet.

    def _step(self, link: Link, connection: Optional[int]) -> None:
        while self._unsettled:
            _answered(link, self._unsettled[0])
            self._unsettled.pop(0)
        if self._held and time.monotonic() >= self._extend_at:
            self._extend(link)
        with self._changed:
            if self._closed:
                return
            if not self._keys or self._waiting is not None or not self._may_pop():
                self._changed.wait(min(_LOOK_SECONDS if self._keys else _BLOCK_SECONDS, self._block_ms / 1000))
                return
            self._keys.append(self._keys.pop(0))  # The queues take turns.
            keys = list(self._keys)
            self._blocked = connection, keys[0]
        try:
            reply = link.ask("DQ.MPOP", len(keys), *keys, "LEASE", self._lease_ms, "BLOCK", self._block_ms)
        finally:
            self._blocked = None
        if reply:
            self._received(reply[0].decode(), reply[1][0])

    def _received(self, key: str, message: List[Any]) -> None:
        with self._changed:
            tag, payload, attempt = self._hold(key, message)
            wanted = key in self._keys and not self._closed
            self._waiting = tag if wanted else None
        if wanted:
            self._deliver(key, tag, payload, attempt)
        else:
            self.settle(tag, "DQ.NACK", "NOCOUNT")

    def _hold(self, key: str, message: List[Any]) -> Delivered:
        _, payload, attempt, receipt = message
        tag = f"{receipt.decode('utf-8', 'surrogateescape')}#{key}"
        if not self._held:
            self._extend_at = time.monotonic() + self._lease_ms / 3000
        self._held[tag] = True
        return tag, payload, attempt

    def _extend(self, link: Link) -> None:
        queues: Dict[str, List[str]] = {}
        for tag in list(self._held):
            queues.setdefault(_parts(tag)[0], []).append(tag)
        for key, tags in queues.items():
            receipts = [_parts(tag)[1] for tag in tags]
            deadlines = link.ask("DQ.MEXTEND", key, len(tags), *receipts, "LEASE", self._lease_ms)
            for tag, deadline in zip(tags, deadlines):
                if deadline is None and self._held.get(tag):
                    self._held[tag] = False
                    logger.warning("dq: the lease of %s is over: it may run a second time", _parts(tag)[1])
        self._extend_at = time.monotonic() + self._lease_ms / 3000

    def _settled(self, outcome: List[Word]) -> bool:
        try:
            ask(self._source, *outcome)
        except Exception as error:
            if is_transient(error):
                return False
            logger.error("dq: %s refused: %s", outcome[0], error)
        return True


def ask(source: Source, *words: Word) -> Any:
    """Sends a command once. Returns a reply whose texts are bytes.

    A client that was given might repeat a push whose message has been done meanwhile.
    """
    try:
        return source.ask_waiting(*words)
    except Unsent as error:
        raise (error.__cause__ or error) from None
    except redis.ResponseError as error:
        error.args = (explained(error),)
        raise


def _answered(link: Link, words: List[Word]) -> None:
    try:
        link.ask(*words)
    except redis.ResponseError as error:
        if is_transient(error):
            raise
        logger.error("dq: %s refused: %s", words[0], error)


def _parts(tag: str) -> Tuple[str, str]:
    """Returns the key and the receipt of a tag. No id contains a ``#``."""
    id, number, key = tag.split("#", 2)
    return key, f"{id}#{number}"


class Listener:
    """Receives what is published to a channel (``subscribe``) or to those of a pattern (``psubscribe``) once it is
    made."""

    def __init__(
        self, source: Source, prefix: bytes, command: str, name: str, deliver: Callable[[bytes], None]
    ) -> None:
        self._source, self._prefix, self._deliver = source, prefix, deliver
        self._command, self._name = command, name
        self._closed = threading.Event()
        self._link: Optional[Link] = None
        self._channels: Any = self._subscribed()
        threading.Thread(target=self._run, name="dq-celery-fanout", daemon=True).start()

    def close(self) -> None:
        """Ends its thread soon."""
        self._closed.set()

    def _subscribed(self) -> Any:
        self._link = self._source.link(self._prefix, MARGIN_SECONDS)
        channels = self._link.pubsub()
        getattr(channels, self._command)(self._name)
        end = time.monotonic() + MARGIN_SECONDS
        while not self._is_answer(channels.get_message(timeout=_BLOCK_SECONDS)):
            if time.monotonic() > end:
                raise redis.TimeoutError(f"no answer to a subscription within {MARGIN_SECONDS} s")
        return channels

    def _is_answer(self, message: Any) -> bool:
        return message is not None and message["type"] == self._command

    def _run(self) -> None:
        backoff = Backoff()
        while not self._closed.is_set():
            try:
                self._channels = self._channels or self._subscribed()
                backoff.reset()
                self._listen()
            except Exception as error:  # Also what redis-py raises if its pool is closed meanwhile.
                logger.debug("dq: not listening: %s", error)
                self._disconnect()
                self._source.rediscover()
                self._closed.wait(backoff.next())
        self._disconnect()

    def _listen(self) -> None:
        subscribe = getattr(self._channels, self._command)
        for message in published(self._channels, lambda: subscribe(self._name), self._closed.is_set):
            # After its end the queue may have another listener, which receives the same.
            if message["type"].endswith("message") and not self._closed.is_set():
                self._deliver(message["data"])

    def _disconnect(self) -> None:
        self._channels = None
        if self._link is not None:
            self._link.close()
            self._link = None
