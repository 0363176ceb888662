"""The kombu transport ``dq://``: where the server is, and how messages come from the threads to Celery's loop.

Besides the interface of ``kombu.transport.virtual`` it uses its ``_callbacks`` and ``_deliver``. ``driver_type`` is
``redis``, because Celery sends events and gossip only to transports that it knows by that name.
"""

from __future__ import annotations

import re
import socket
from collections import deque
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Deque, Dict, Optional, Tuple

import redis
from kombu.transport import virtual
from kombu.utils.url import url_to_parts
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..errors import explained, lacks_module
from ..queue import PUSH_SECONDS
from ..source import CLUSTERS, Source
from ..wire import checked_seconds
from .channel import Channel
from .threads import Listener

# How often kombu tries by default to push a task, and to connect for that.
_TRIES = 5
# How often an event loop is woken, since it looks for signals only then.
_TICK_SECONDS = 0.5
# How many published messages are kept for a queue that has no consumer yet.
_KEPT = 1000

# Options of the Redis transport that are those of redis-py.
_SETTINGS = (
    "socket_timeout socket_connect_timeout socket_keepalive socket_keepalive_options health_check_interval"
    " retry_on_timeout max_connections client_name"
).split()
# What kombu and virtual transports read themselves, among it the retry policy of the last push.
_OF_KOMBU = (
    "max_retries interval_start interval_step interval_max connect_retries_timeout errback callback retry_errors"
    " polling_interval body_encoding deadletter_queue"
).split()
_KNOWN = {"lease", "global_keyprefix", "client", "push_timeout", *_SETTINGS, *_OF_KOMBU}
# A part in braces, by which keys are in one slot of a cluster.
_HASH_TAG = re.compile(r"\{[^}]+\}")


class Transport(virtual.Transport):
    """A connection of kombu. Its channels share a client of redis-py."""

    Channel = Channel
    default_port = 6379
    driver_type = "redis"
    driver_name = "dq"
    connection_errors = virtual.Transport.connection_errors + (
        redis.ConnectionError,
        redis.TimeoutError,
        redis.exceptions.ReadOnlyError,
        OSError,
    )
    channel_errors = virtual.Transport.channel_errors + (redis.ResponseError,)
    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"])
    )
    tls = False

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        for name in client.transport_options:
            if name not in _KNOWN:
                known = f"there are {', '.join(sorted(_KNOWN.difference(_OF_KOMBU)))}"
                hint = " ('lease' is how long the message of a dead worker waits)" if "visibility" in name else ""
                raise ValueError(f"the transport option {name!r} does not exist for dq://: {known}{hint}")
        self._given = client.transport_options.get("client")
        if isinstance(self._given, CLUSTERS):
            _check_slot(client.transport_options.get("global_keyprefix", ""))
        self.source = Source(self._given or self._made())
        self.listeners: Dict[str, Listener] = {}
        self._arrived: "SimpleQueue[Any]" = SimpleQueue()
        self._claiming = Lock()
        self._unclaimed: Dict[str, Deque[Any]] = {}
        self.waiting = False
        """Whether somebody waits for messages: a loop, or a call of ``drain_events``."""
        self._bell: Optional[Tuple[socket.socket, socket.socket]] = None
        self._loop: Any = None
        self._tick: Any = None

    def _made(self) -> Any:
        given, path = self.client, str(self.client.virtual_host or "").strip("/")
        query: Dict[str, str] = {}
        place: Dict[str, Any] = {"host": given.hostname or "localhost", "port": given.port or self.default_port}
        user, password = given.userid, given.password
        if "://" in (given.hostname or ""):  # dq+socket:///path/of/the/socket?virtual_host=1
            scheme, _, _, user, password, socket_path, query = url_to_parts(given.hostname)
            if scheme != "socket":
                raise ValueError(f"the address is dq://, dqs:// or dq+socket://, not dq+{scheme}://")
            place, path = {"unix_socket_path": f"/{socket_path}"}, query.get("virtual_host", path)
        if path and not path.isdigit():
            raise ValueError(f"the database is a number, such as dq://host:6379/0, not {path!r}")
        settings: Dict[str, Any] = {} if not isinstance(given.ssl, dict) else given.ssl
        settings = {name if name.startswith("ssl_") else f"ssl_{name}": value for name, value in settings.items()}
        options = given.transport_options
        seconds = (
            checked_seconds("the transport option 'push_timeout'", options.get("push_timeout", PUSH_SECONDS)) / _TRIES
        )
        settings.update(
            socket_timeout=seconds,
            socket_connect_timeout=min(given.connect_timeout or seconds, seconds),
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            ssl=self.tls or bool(given.ssl),
        )
        settings.update((name, options[name]) for name in _SETTINGS if options.get(name) is not None)
        return redis.Redis(db=int(path or 0), username=user or None, password=password or None, **place, **settings)

    def establish_connection(self) -> Any:
        """Checks that the server answers, and has loaded the module. Celery tries again until then."""
        try:
            client = self.source.client()
            client.ping()
            if not isinstance(client, CLUSTERS):
                _check_module(client)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise type(error)(f"{self.source.address}: {error}") from error
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        """Closes the channels, which give back what they hold."""
        if self._loop is not None and self._bell is not None:
            self._loop.remove_reader(self._bell[0])
            self._tick.cancel()
        self._loop = None
        super().close_connection(connection)
        for listener in self.listeners.values():
            listener.close()
        self.listeners.clear()
        if self._given is None:
            self.source.client().close()

    def driver_version(self) -> str:
        """Returns the version of redis-py."""
        return str(redis.__version__)

    # --- messages, from the threads to the loop ---

    def arrived(self, queue: str, message: Dict[str, Any], channel: Any) -> None:
        """Takes a message from a thread. ``channel`` is the one that holds it."""
        self._arrived.put((queue, message, channel))
        self._ring()

    def _ring(self) -> None:
        try:
            if self._bell is not None:
                self._bell[1].send(b"!")
        except BlockingIOError:
            pass  # It rings already.

    def heard(self, queue: str, message: Dict[str, Any]) -> None:
        """Takes what was published from a thread. The latest messages are kept until the queue has a consumer."""
        with self._claiming:
            if queue in self._callbacks:
                self.arrived(queue, message, None)
            else:
                self._unclaimed.setdefault(queue, deque(maxlen=_KEPT)).append(message)

    def consuming(self, queue: str) -> None:
        """Delivers what was published to a queue before it had a consumer."""
        with self._claiming:
            for message in self._unclaimed.pop(queue, ()):
                self.arrived(queue, message, None)

    def _hand_over(self, queue: str, message: Dict[str, Any], channel: Any) -> bool:
        if channel is not None:
            channel.receive(queue, message)
        elif queue in self._callbacks:
            self._deliver(message, queue)
        else:
            self.heard(queue, message)
            return False
        return True

    def drain_events(self, connection: Any, timeout: Optional[float] = None) -> None:
        """Delivers the next message. Raises ``socket.timeout`` if there is none in time."""
        self._wait(True)
        try:
            while not self._hand_over(*self._arrived.get(timeout=timeout)):
                pass
        except Empty:
            raise socket.timeout() from None
        finally:
            self._wait(self._loop is not None)

    def _wait(self, waiting: bool) -> None:
        self.waiting = waiting
        for channel in self.channels if waiting else ():
            channel.holder.wake()

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Has an event loop deliver messages as they come."""
        self._bell = self._bell or socket.socketpair()
        for end in self._bell:
            end.setblocking(False)
        self._loop = loop
        loop.add_reader(self._bell[0], self._rung, self._bell[0])
        self._tick = loop.call_repeatedly(_TICK_SECONDS, self._ring)
        self._wait(True)
        self._ring()  # for what has arrived already

    def _rung(self, bell: socket.socket) -> None:
        try:
            bell.recv(4096)
        except BlockingIOError:
            pass
        while True:
            try:
                self._hand_over(*self._arrived.get_nowait())
            except Empty:
                return


def _check_module(client: Any) -> None:
    """Without a key, a server with the module refuses the command, whatever the rights of the user are."""
    try:
        client.execute_command("DQ.LEN")
    except redis.ResponseError as error:
        if lacks_module(error):
            raise redis.ConnectionError(explained(error)) from error


def _check_slot(prefix: str) -> None:
    """A worker waits for all its queues with one command, so all keys are in one slot."""
    if not _HASH_TAG.search(prefix):
        raise ValueError(
            "in a cluster all queues of an app are in one slot: set the transport option 'global_keyprefix' "
            f"to a name in braces, such as '{{celery}}', not {prefix!r}"
        )


class SecureTransport(Transport):
    """The same with TLS: ``dqs://host:port/db?ssl_ca_certs=/path/ca.pem``."""

    tls = True
