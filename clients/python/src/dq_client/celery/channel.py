"""The channels of the kombu transport ``dq://``: each queue of Celery is a queue of dq.

It uses what kombu's own transports use: the hooks of ``kombu.transport.virtual`` whose names begin with ``_``
(``_put``, ``_get``, ``_size``, ``_purge``, ``_delete``, ``_has_queue``, ``_new_queue``, ``_queue_bind``,
``_put_fanout``), ``_deliver``, ``_get_message_priority``, and the attributes ``_tag_to_queue``, ``_active_queues`` and
``QoS._on_collect``.
"""

from __future__ import annotations

import re
import uuid
from datetime import datetime, timezone
from queue import Empty
from typing import Any, Dict, List, Optional, Set, Tuple

import celery
import redis
from kombu.transport import virtual
from kombu.transport.base import to_rabbitmq_queue_arguments
from kombu.transport.virtual.exchange import STANDARD_EXCHANGE_TYPES, DirectExchange
from kombu.utils.json import dumps, loads

from .. import wire
from ..source import Source
from .threads import Holder, Listener, ask, logger

DEFAULT_LEASE_SECONDS = 30.0
# The property of a delivered message that has the ETA of its task.
ETA = "dq_eta"
# The latest due time that the server knows.
_LATEST_MS = 8796093022207
_NOT_AN_ID = re.compile(r"#|^\d{12,}-\d+$")


def message_id(task_id: str) -> str:
    """Returns the id of the message of a task in its queue: that of the task, or a digest if no message can have it."""
    if _NOT_AN_ID.search(task_id) or not 0 < len(task_id.encode()) < 256:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, task_id))
    return task_id


def _due_ms(eta: str) -> int:
    at = datetime.fromisoformat(eta.replace("Z", "+00:00"))
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return min(wire.unix_milliseconds(at), _LATEST_MS)


class QoS(virtual.QoS):
    """Ends deliveries at the server."""

    def ack(self, delivery_tag: str) -> None:
        """Completes a message."""
        self.channel.holder.settle(delivery_tag, "DQ.ACK")
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Makes a message ready again, which counts as an attempt, or dead.

        Celery also rejects tasks that its worker does not know. These fail, since another worker may know them.
        """
        task = self.get(delivery_tag).headers.get("task")
        if requeue:
            words: Tuple[wire.Word, ...] = ("DELAY", 0)
        elif task and task not in celery.current_app.tasks:
            words = ("ERROR", f"this worker has no task {task!r}")
        else:
            words = ("DEAD", "ERROR", "rejected by a worker")
        self.channel.holder.settle(delivery_tag, "DQ.NACK", *words)
        super().ack(delivery_tag)

    def restore_unacked(self) -> List[Any]:
        """Gives back all messages. The attempts do not count."""
        self.channel.holder.give_back()
        return []

    def restore_unacked_once(self, stderr: Any = None) -> None:
        """Gives back all messages when the channel is closed or the process ends."""
        self._on_collect.cancel()
        self.restore_unacked()


class _Direct(DirectExchange):
    """A direct exchange. One that is not durable also publishes, since the queues of replies to `inspect` subscribe."""

    def deliver(self, message: Any, exchange: str, routing_key: str, **kwargs: Any) -> None:
        super().deliver(message, exchange, routing_key, **kwargs)
        if not self.channel.is_durable(exchange):
            self.channel._put_fanout(exchange, message, routing_key)


class Channel(virtual.Channel):
    """A channel. It opens no connection of its own and starts no thread before it consumes."""

    QoS = QoS
    exchange_types = dict(STANDARD_EXCHANGE_TYPES, direct=_Direct)
    supports_fanout = True

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        options = connection.client.transport_options
        self._source: Source = connection.source
        self._redis = self._source.client()
        self._prefix: str = options.get("global_keyprefix", "")
        self._temporary: Set[str] = set()
        self._replies: Set[str] = set()
        self._listeners: Dict[str, Listener] = connection.listeners
        self._no_ack: Set[str] = set()
        lease = float(options.get("lease", DEFAULT_LEASE_SECONDS))
        if lease <= 0:
            raise ValueError(f"the transport option 'lease' is in seconds and more than 0, not {lease}")
        self.holder = Holder(connection.source, self._prefix.encode(), lease, self._may_pop, self._popped)

    def _key(self, queue: str) -> str:
        return self._prefix + queue

    # --- producers ---

    def basic_publish(self, message: Any, exchange: str, routing_key: str, **kwargs: Any) -> Any:
        """Publishes a message. Events, such as heartbeats, are dropped while the server is away: Celery would repeat
        each without end, and its worker could not stop meanwhile."""
        try:
            return super().basic_publish(message, exchange, routing_key, **kwargs)
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            if exchange != celery.current_app.conf.event_exchange:
                raise
            logger.debug("dq: an event is dropped: %s", error)

    def _put(self, queue: str, message: Dict[str, Any], **kwargs: Any) -> None:
        """Pushes a message. One with the id of a message in flight, as a retry has, takes its place when that ends."""
        key, headers, properties = self._key(queue), message["headers"], message["properties"]
        eta, sent = headers.get("eta"), properties.pop("dq_sent", None)
        properties["delivery_tag"] = sent or properties["delivery_tag"]
        id = message_id(str(headers.get("id") or properties["delivery_tag"]))
        payload = dumps(message).encode()
        due: List[Any] = ["AT", _due_ms(eta)] if eta else []
        try:
            if sent and wire.pairs(ask(self._source, "DQ.GET", key, id)).get("payload") == payload:
                return
            priority = self._get_message_priority(message)
            ask(self._source, "DQ.PUSH", key, payload, "ID", id, "REPLACE", "LATER", "PRIORITY", priority, *due)
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            # It may have arrived. kombu repeats it with the same properties, and then it must not be made twice.
            properties["dq_sent"] = properties["delivery_tag"]
            raise

    def _put_fanout(self, exchange: str, message: Dict[str, Any], routing_key: str, **kwargs: Any) -> None:
        self._redis.publish(f"{self._topic(exchange)}/{routing_key or ''}", dumps(message))

    def is_durable(self, exchange: str) -> bool:
        """Returns whether an exchange was declared as durable, as is usual."""
        return bool(self.state.exchanges.get(exchange, {}).get("durable", True))

    def _topic(self, exchange: str) -> str:
        return f"{self._prefix}dq/{self._source.db}/{exchange}"

    # --- queues and their bindings ---

    def prepare_queue_arguments(self, arguments: Any, **kwargs: Any) -> Any:
        """Adds ``x-expires``, by which the queues of replies are known."""
        return to_rabbitmq_queue_arguments(arguments, **kwargs)

    def _new_queue(self, queue: str, auto_delete: bool = False, arguments: Any = None, **kwargs: Any) -> None:
        if auto_delete:
            self._temporary.add(queue)
            if "x-expires" in (arguments or {}):
                self._replies.add(queue)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: Optional[str], queue: str) -> None:
        fanout = self.typeof(exchange).type == "fanout"
        if not fanout and (queue not in self._replies or self.is_durable(exchange)):
            self._redis.sadd(self._bindings(exchange), dumps([routing_key, pattern, queue]))
        elif queue not in self._listeners:
            command, name = "subscribe", f"{self._topic(exchange)}/{routing_key}"
            if fanout:  # All that is published, or what a pattern of AMQP selects, as for Celery's gossip.
                selected = _glob(routing_key).replace("\\*", "*").replace("#", "*")
                selected = selected if "*" in selected else "*"
                command, name = "psubscribe", f"{_glob(self._topic(exchange))}/{selected}"

            def deliver(data: bytes, heard: Any = self.connection.heard) -> None:
                heard(queue, loads(data))

            self._listeners[queue] = Listener(self._source, self._prefix.encode(), command, name, deliver)

    def _bindings(self, exchange: str) -> str:
        return f"{self._prefix}dq.bindings.{exchange}"

    def get_table(self, exchange: str) -> List[Tuple[str, Optional[str], str]]:
        """Returns the bindings of an exchange, which all processes share."""
        return [tuple(loads(member)) for member in self._redis.smembers(self._bindings(exchange))]

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        return queue in self._listeners or bool(self._redis.exists(self._key(queue)))

    def _size(self, queue: str) -> int:
        """Returns how many messages are to be done: delayed, ready and in flight."""
        if queue in self._listeners:
            return 0
        try:
            return int(ask(self._source, "DQ.LEN", self._key(queue)))
        except redis.ResponseError as error:
            if queue in self._temporary and isinstance(error, redis.exceptions.NoPermissionError):
                return 0  # A queue for broadcasts, which is not bound yet. It has no key.
            if str(error).startswith("WRONGTYPE"):
                raise ValueError(
                    f"the key {self._key(queue)!r} is not a queue of dq; if it is a list of the Redis transport, "
                    "name another database in the URL or set the transport option 'global_keyprefix'"
                ) from error
            raise

    def _purge(self, queue: str) -> int:
        return int(ask(self._source, "DQ.PURGE", self._key(queue), "delayed", "ready"))

    def _delete(
        self, queue: str, exchange: str, routing_key: str, pattern: Optional[str], *args: Any, **kw: Any
    ) -> None:
        listener = self._listeners.pop(queue, None)
        if listener is not None:
            listener.close()
            return
        self._redis.srem(self._bindings(exchange), dumps([routing_key, pattern, queue]))
        self._redis.delete(self._key(queue))

    def cancel(self, queue: str, task_id: str) -> Tuple[Optional[str], Any]:
        """Removes a task from a queue. Returns the state that it was in, and its message; ``None`` if it is not
        there."""
        key, id = self._key(queue), message_id(task_id)
        fields = wire.message(ask(self._source, "DQ.GET", key, id))
        state = wire.text_or_none(ask(self._source, "DQ.CANCEL", key, id)[0])
        if state is None or fields is None or "payload" not in fields:
            return None, None
        return state, self.Message(loads(fields["payload"]), channel=self)

    # --- consumers ---

    def basic_consume(self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any) -> None:
        """Consumes a queue."""
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)
        (self._no_ack.add if no_ack else self._no_ack.discard)(queue)
        if queue in self._listeners:
            self.connection.consuming(queue)
        elif self.qos:  # It is made here, and not in the thread.
            self.holder.consume(self._key(queue))

    def basic_cancel(self, consumer_tag: str) -> None:
        """Stops consuming. A temporary queue is deleted with its last message."""
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue is None:
            return
        self.holder.cancel(self._key(queue))
        if queue in self._temporary and queue not in self._active_queues:
            try:
                self.queue_delete(queue, if_empty=True)
            except (redis.RedisError, OSError) as error:
                logger.warning("dq: the temporary queue %s is not deleted: %s", queue, error)

    def _may_pop(self) -> bool:
        """Returns whether somebody waits, and the prefetch count leaves room.

        Celery replaces ``can_consume`` if a worker is not to prefetch.
        """
        limit = self.qos.prefetch_count
        return self.connection.waiting and (not limit or self.holder.held < limit) and bool(self.qos.can_consume())

    def _popped(self, key: str, tag: str, payload: bytes, attempt: int) -> None:
        """Passes on what the thread of the holder has popped."""
        message = self._message(tag, payload, attempt)
        if message is not None:
            self.connection.arrived(key[len(self._prefix) :], message, self)

    def _message(self, tag: str, payload: bytes, attempt: int) -> Optional[Dict[str, Any]]:
        try:
            message: Dict[str, Any] = loads(payload)
            eta = message["headers"].pop("eta", None)
            if eta:  # It is due. A worker that saw its ETA would look at its own clock.
                message["properties"][ETA] = eta
            message["properties"]["delivery_tag"] = tag
            message["properties"].setdefault("delivery_info", {})["redelivered"] = attempt > 1
            return message
        except (ValueError, TypeError, KeyError, AttributeError):
            self.holder.settle(tag, "DQ.NACK", "ERROR", "the payload is no message of kombu, which is JSON")
            return None

    def receive(self, queue: str, message: Dict[str, Any]) -> None:
        """Passes a popped message to its consumer, unless it was given back meanwhile."""
        tag = message["properties"]["delivery_tag"]
        try:
            if self.holder.holds(tag):
                self.connection._deliver(message, queue)
                if queue in self._no_ack:
                    self.holder.settle(tag, "DQ.ACK")
        finally:
            self.holder.taken(tag)

    def _get(self, queue: str, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Returns a message that is ready now."""
        while True:
            delivered = self.holder.get(self._key(queue))
            if delivered is None:
                raise Empty()
            message = self._message(*delivered)
            if message is not None:
                return message

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        """Returns a message that is ready now, or ``None``."""
        message = super().basic_get(queue, no_ack=no_ack, **kwargs)
        if message is not None and no_ack:
            self.holder.settle(message.delivery_tag, "DQ.ACK")
        return message

    def close(self) -> None:
        """Gives back what is held, and stops the threads."""
        if not self.closed:
            self.holder.close()
        super().close()


def _glob(text: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)
