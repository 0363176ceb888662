"""A broker for Dramatiq 2: ``dramatiq.set_broker(dq_client.dramatiq.DqBroker(url="redis://localhost"))``.

A message is in its queue until it is acknowledged, under its own id, delayed ones too: there are no delay queues, and
no worker holds a message that is not due. Retries are pushed by Dramatiq's middleware under the same id before the ack,
and take the place of the delivery that ends. It uses no private interface of Dramatiq.
"""

from __future__ import annotations

import queue
import time
from typing import Any, Iterable, List, Optional, Set, Union

import dramatiq
import redis
from dramatiq.errors import ActorNotFound, ConnectionClosed, DecodeError, QueueJoinTimeout
from dramatiq.middleware import Middleware, SkipMessage

from .app import App
from .errors import ConnectionLost, UnknownTask
from .queue import PUSH_SECONDS, Queue
from .wire import Duration, PushOptions
from .worker.inbox import Held, Inbox

_STATES = ("delayed", "ready", "inflight", "dead", "done")


class DqBroker(dramatiq.Broker):
    """Keeps the messages of actors in queues of dq, whose names begin with ``namespace``.

    ``client`` is a client of redis-py that exists, instead of ``url``. ``lease`` is how long a message stays with a
    worker that is gone, in seconds; by default that of the queue, 30 seconds. ``push_timeout`` is how many seconds a
    push is sent again if the server cannot be reached. Actors and messages may have a ``broker_priority`` from -128 to
    127, 0 by default: a higher one is delivered first.
    """

    def __init__(
        self,
        *,
        url: str = "redis://localhost",
        client: Union["redis.Redis", "redis.RedisCluster", None] = None,
        middleware: Optional[List[Middleware]] = None,
        namespace: str = "dramatiq",
        lease: Optional[Duration] = None,
        push_timeout: float = PUSH_SECONDS,
    ) -> None:
        super().__init__(middleware=middleware)
        self.add_middleware(_SkipLost())
        self.actor_options.add("broker_priority")
        self.queues: Set[str] = set()
        self.namespace = namespace
        self._app = App(client if client is not None else url, push_timeout=push_timeout)
        self._lease = lease

    def queue(self, queue_name: str) -> Queue:
        """Returns the queue of dq that holds the messages of a queue: to look at them, to redrive dead ones, to pause
        it."""
        return self._app.queue(f"{self.namespace}:{queue_name}")

    def cancel(self, message_id: str, queue_name: str = "default") -> Optional[str]:
        """Removes a message that has not been completed. Returns the state that it was in, ``None`` if it was not
        there.

        An actor that runs is not interrupted, but its message is not delivered again.
        """
        return self.queue(queue_name).cancel_sync(message_id)[0]

    def declare_queue(self, queue_name: str) -> None:
        """Declares a queue. Its first message creates it on the server."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def get_declared_queues(self) -> Set[str]:
        """Returns the names of all declared queues."""
        return self.queues.copy()

    def enqueue(self, message: dramatiq.Message[Any], *, delay: Optional[int] = None) -> dramatiq.Message[Any]:
        """Pushes a message under its own id, to be delivered after ``delay`` milliseconds, however long.

        If the queue has a message of that id, the new one replaces it, or takes its place when its delivery ends.
        """
        self.logger.debug("Enqueueing message %r on queue %r.", message.message_id, message.queue_name)
        self.emit_before("enqueue", message, delay)
        options = PushOptions(id=message.message_id, replace=True, later=True)
        try:
            if delay is not None:
                options["delay"] = delay / 1000
            priority = self._priority(message)
            if priority is not None:
                options["priority"] = priority
            # The id of a retry is that of the delivery which is about to be acked. A push that is repeated may have
            # been carried out before, so only one that replaces leaves no doubt that the message is there.
            self.queue(message.queue_name).push_sync(message.encode(), **options)
        except Exception as error:
            if isinstance(message, _Message):
                message.unsent = error
            if isinstance(error, ConnectionLost):
                raise ConnectionClosed(str(error)) from error
            raise
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> dramatiq.Consumer:
        """Returns a consumer that holds at most ``prefetch`` messages at a time."""
        return _Consumer(self, self._app, f"{self.namespace}:{queue_name}", prefetch, timeout, self._lease)

    def flush(self, queue_name: str) -> None:
        """Removes all messages of a queue, dead ones too."""
        self.queue(queue_name).purge_sync(*_STATES)

    def flush_all(self) -> None:
        """Removes all messages of all declared queues."""
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, interval: int = 100, timeout: Optional[int] = None) -> None:
        """Waits until a queue has no message that is to be completed. For tests."""
        end = None if timeout is None else time.monotonic() + timeout / 1000
        while self.queue(queue_name).len_sync():
            if end is not None and time.monotonic() >= end:
                raise QueueJoinTimeout(queue_name)
            time.sleep(interval / 1000)

    def _priority(self, message: dramatiq.Message[Any]) -> Optional[int]:
        actor = self.actors.get(message.actor_name)
        default = actor.options.get("broker_priority") if actor is not None else None
        priority: Optional[int] = message.options.get("broker_priority", default)
        return priority


class _Message(dramatiq.MessageProxy):
    """A message that this worker holds."""

    def __init__(self, message: dramatiq.Message[Any], held: Held) -> None:
        super().__init__(message)
        self.held = held
        self.error: Optional[BaseException] = None
        self.unsent: Optional[BaseException] = None
        """Why its retry could not be pushed. Dramatiq acks it nevertheless."""

    def stuff_exception(self, exception: BaseException) -> None:
        """Keeps the exception for the nack."""
        super().stuff_exception(exception)
        self.error = exception

    def clear_exception(self) -> None:
        """Drops it, with everything that its traceback refers to."""
        super().clear_exception()
        self.error = None


class _Consumer(dramatiq.Consumer):
    """Passes messages from the thread that pops to Dramatiq's thread."""

    def __init__(
        self, broker: DqBroker, app: App, key: str, prefetch: int, timeout: int, lease: Optional[Duration]
    ) -> None:
        self._actors = broker.actors
        self._timeout = timeout / 1000
        self._arrived: "queue.SimpleQueue[Held]" = queue.SimpleQueue()
        self._inbox = Inbox(app, key, prefetch, self._arrived.put, lease=lease, name="dramatiq")
        self._inbox.start()

    def __next__(self) -> Optional[dramatiq.MessageProxy]:
        try:
            held = self._arrived.get(timeout=self._timeout)
        except queue.Empty:
            return None
        if held.lost:
            held.give_back()
            return None
        try:
            message = dramatiq.Message.decode(held.ctx.payload)
        except DecodeError:  # What it says may quote the payload, which errors do not show.
            held.fail(UnknownTask("the payload is no message of Dramatiq"))
            return None
        held.ctx.task = message.actor_name
        return _Message(message, held)

    def ack(self, message: dramatiq.MessageProxy) -> None:
        """Completes the message. The worker repeats that until the server has answered."""
        assert isinstance(message, _Message)
        if message.unsent is None:
            message.held.ack()
        else:
            message.held.fail(message.unsent)

    def nack(self, message: dramatiq.MessageProxy) -> None:
        """The message is dead: ``broker.queue(…).peek_sync("dead")`` shows it. Another worker may know its actor."""
        assert isinstance(message, _Message)
        if isinstance(message.error, ActorNotFound):
            known = ", ".join(self._actors)
            message.held.fail(UnknownTask(f"this worker has no actor {message.actor_name!r}; it has {known}"))
        else:
            message.held.bury(message.error or _Rejected("the message was rejected"))

    def requeue(self, messages: Iterable[dramatiq.MessageProxy]) -> None:
        """Gives messages back that were not begun, without counting an attempt."""
        for message in messages:
            _held(message).give_back()

    def close(self) -> None:
        """Pops no more, and gives back what Dramatiq has not got yet."""
        self._inbox.request_stop()
        while not self._arrived.empty():
            self._arrived.get().give_back()
        self._inbox.close()


class _SkipLost(Middleware):
    """Does not run a message that was cancelled, or that another worker has got, after this one took it."""

    def before_process_message(self, broker: dramatiq.Broker, message: dramatiq.MessageProxy) -> None:
        if isinstance(message, _Message) and message.held.lost:
            raise SkipMessage(f"The message was taken away: {message.held.ctx.reason}")


class _Rejected(Exception):
    """The error of a dead message whose actor has raised nothing."""


def _held(message: dramatiq.MessageProxy) -> Held:
    assert isinstance(message, _Message)
    return message.held
