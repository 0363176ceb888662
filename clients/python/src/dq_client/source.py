"""Where connections come from: a URL, or a client of redis-py that exists, synchronous or not.

Producers use the client as it is. A worker opens connections of its own with the same settings, because a pop that
waits occupies its connection, needs a longer timeout, and must not be sent again without the worker's knowledge.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import re
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union
from urllib.parse import parse_qsl, urlsplit

import redis
import redis.asyncio
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.client import NEVER_DECODE
from redis.retry import Retry
from redis.sentinel import Sentinel

from .borrowing import asked, asked_waiting, has_pool, left
from .errors import Unsent
from .moved import Awaited, Waiting
from .switches import watch
from .wire import Word, pairs

# The parameters of a URL, besides those that begin with ``ssl_``.
_OF_URLS = "db username password client_name protocol socket_keepalive socket_connect_timeout socket_timeout"
# What a connection of one kind takes over from one of another kind, besides all that begins with ``ssl_``.
_KEPT = frozenset(f"{_OF_URLS} host port path credential_provider socket_keepalive_options".split())
_CONNECT_SECONDS = 2.0
_REPLY_SECONDS = 5.0
# How many commands of an event loop or a process are on their way at a time; the others wait.
_MOST_CONNECTIONS = 100
# How long a subscription may be silent before the server is asked for an answer, and how long that may take.
_QUIET_SECONDS = 10.0
# How long the server may take to end a wait.
_UNBLOCK_SECONDS = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
CLUSTERS = (redis.RedisCluster, redis.asyncio.RedisCluster)
"""The clients of a cluster."""

Origin = Union[str, "redis.Redis", "redis.asyncio.Redis", "redis.RedisCluster", "redis.asyncio.RedisCluster"]


class Backoff:
    """Growing, jittered pauses between attempts to reach the server."""

    def __init__(self) -> None:
        self._pause = _FIRST_PAUSE

    def next(self) -> float:
        """Returns the next pause, in seconds."""
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1)

    def reset(self) -> None:
        """Starts again with the shortest pause, after an answer."""
        self._pause = _FIRST_PAUSE


class Link:
    """One connection, opened by the first command. After an error of the connection it is to be closed."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._connection: Any = None

    def ask(self, *words: Word) -> Any:
        """Sends a command and returns its reply."""
        connection = self._connected()
        connection.send_command(*words)
        return connection.read_response()

    def ask_many(self, commands: Sequence[Sequence[Word]]) -> List[Any]:
        """Sends commands at once. Returns a reply or an error for each."""
        connection = self._connected()
        connection.send_packed_command(connection.pack_commands(commands))
        replies: List[Any] = []
        for _ in commands:
            try:
                replies.append(connection.read_response())
            except redis.ResponseError as error:
                replies.append(error)
        return replies

    def id(self) -> Optional[int]:
        """Returns the id of the connection, if the server does. ``HELLO`` needs no right, but some proxies lack it."""
        try:
            return int(pairs(self.ask("HELLO"))["id"])
        except redis.ResponseError:
            pass
        try:
            return int(self.ask("CLIENT", "ID"))
        except redis.ResponseError:
            return None

    def pubsub(self) -> Any:
        """Returns the object of redis-py that subscribes to channels, on another connection."""
        client: Any = redis.Redis(connection_pool=self._pool)
        return client.pubsub()

    def close(self) -> None:
        """Closes the connection."""
        try:
            if self._connection is not None:
                self._connection.disconnect()
            self._pool.disconnect()
        except (redis.RedisError, OSError):
            pass

    def _connected(self) -> Any:
        if self._connection is None:
            connection = self._pool.make_connection()
            connection.connect()
            self._connection = connection
        return self._connection


def published(channels: Any, subscribe_again: Callable[[], object], closed: Callable[[], bool]) -> Iterator[Any]:
    """Yields what a subscription receives until it is closed. Raises if its server has gone silently.

    After a silence it subscribes once more, which needs no further right and is confirmed.
    """
    quiet, asked = time.monotonic(), False
    while not closed():
        message = channels.get_message(timeout=1.0)
        if message is not None:
            quiet, asked = time.monotonic(), False
            yield message
        elif time.monotonic() - quiet > _QUIET_SECONDS:
            if asked:
                raise redis.ConnectionError("the server does not answer")
            subscribe_again()
            quiet, asked = time.monotonic(), True


class Source:
    """Makes clients and connections that lead to one server, or to the servers of a Sentinel or a cluster."""

    def __init__(self, origin: Origin) -> None:
        self._origin: Any = _client(origin) if isinstance(origin, str) else origin
        self._sync: Any = None
        self._async: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()
        self._cluster: Optional[Waiting] = None
        self._clusters: "weakref.WeakKeyDictionary[Any, Awaited]" = weakref.WeakKeyDictionary()
        self._slots: "weakref.WeakKeyDictionary[Any, asyncio.Semaphore]" = weakref.WeakKeyDictionary()
        self._links: "weakref.WeakSet[Link]" = weakref.WeakSet()
        self._loops: "weakref.WeakSet[Any]" = weakref.WeakSet()
        """The event loops that use a client of asyncio that was given."""
        self._watching = threading.Lock()
        self._watched_in: Optional[int] = None
        """The process that watches the Sentinels. A fork of it has no threads."""

    @property
    def db(self) -> int:
        """The number of the database."""
        return int(self._settings().get("db") or 0)

    @property
    def address(self) -> str:
        """Where the server is, for errors."""
        if isinstance(self._origin, CLUSTERS):
            return ", ".join(self._origin.nodes_manager.startup_nodes)
        pool = self._origin.connection_pool
        if hasattr(pool, "sentinel_manager"):
            return f"the master {pool.service_name}"
        given = pool.connection_kwargs
        return str(given.get("path") or f"{given.get('host', 'localhost')}:{given.get('port', 6379)}")

    @property
    def reply_seconds(self) -> float:
        """How long a reply may take before a client counts its connection as broken."""
        return self._settings().get("socket_timeout") or _REPLY_SECONDS

    def client(self) -> Any:
        """Returns the client for calls that wait."""
        self._watch()
        if self._sync is None:
            given = isinstance(self._origin, (redis.Redis, redis.RedisCluster))
            self._sync = self._origin if given else self._made(redis)
        return self._sync

    def async_client(self) -> Any:
        """Returns the client for calls in the running event loop, since connections belong to a loop."""
        self._watch()
        if isinstance(self._origin, (redis.asyncio.Redis, redis.asyncio.RedisCluster)):
            self._loops.add(asyncio.get_running_loop())
            return self._origin
        loop = asyncio.get_running_loop()
        if loop not in self._async:
            self._async[loop] = self._made(redis.asyncio)
        return self._async[loop]

    async def ask(self, words: Sequence[Word], seconds: Optional[float]) -> Any:
        """Sends a command in the running event loop. More at a time than there may be connections wait.

        Raises :class:`Unsent` if no connection can be opened, and ``asyncio.TimeoutError`` if it takes longer than so
        long.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._slots:
            self._slots[loop] = asyncio.Semaphore(self._most())
        end = None if seconds is None else loop.time() + seconds
        async with self._slots[loop]:
            opened: List[Any] = []
            try:
                return await asyncio.wait_for(self._asked(words, opened), left(loop, end))
            except Exception as error:
                if opened:
                    raise
                raise Unsent from error

    async def _asked(self, words: Sequence[Word], opened: List[Any]) -> Any:
        client = self.async_client()
        if isinstance(client, redis.asyncio.RedisCluster):
            loop = asyncio.get_running_loop()
            if loop not in self._clusters:
                self._clusters[loop] = Awaited(client)
            return await self._clusters[loop].ask(words, opened)
        if has_pool(client):
            return await asked(client.connection_pool, words, opened)
        opened.append(client)
        return await client.execute_command(*words, **{NEVER_DECODE: True})

    def ask_waiting(self, *words: Word) -> Any:
        """Sends a command and waits for its reply. Raises :class:`Unsent` if no connection can be opened."""
        client = self.client()
        if isinstance(client, redis.RedisCluster):
            if self._cluster is None:
                self._cluster = Waiting(client)
            return self._cluster.ask(words)
        if has_pool(client):
            return asked_waiting(client.connection_pool, words)
        return client.execute_command(*words, **{NEVER_DECODE: True})

    async def aclose(self) -> None:
        """Closes the connections that were opened for the running event loop."""
        cluster = self._clusters.pop(asyncio.get_running_loop(), None)
        if cluster is not None:
            await cluster.close()
        client = self._async.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await (client.aclose() if hasattr(client, "aclose") else client.close())
            if hasattr(client, "connection_pool"):  # A pool that was given to a client is not closed with it.
                await client.connection_pool.disconnect()

    def link(self, key: bytes, timeout: float) -> Link:
        """Opens a connection to the server that holds a queue. Each answer may take up to ``timeout`` seconds."""
        pool, cluster = self._origin, isinstance(self._origin, CLUSTERS)
        if cluster:
            node = self.client().get_node_from_key(key)
            pool = self.client().get_redis_connection(node)
        pool = pool.connection_pool
        overrides = {
            "socket_timeout": timeout,
            "decode_responses": False,
            "retry": Retry(NoBackoff(), 0),
        }
        sentinel = hasattr(pool, "sentinel_manager")
        kind = redis.connection.SSLConnection if sentinel else _kind(pool, redis)
        settings = dict(_settings_of(pool, kind), **overrides)
        settings["socket_connect_timeout"] = min(settings["socket_connect_timeout"], timeout)
        if not sentinel:
            return Link(redis.ConnectionPool(connection_class=kind, **settings))
        self._watch()
        link = Link(self._master(redis, pool, settings).connection_pool)
        self._links.add(link)
        return link

    def unblock(self, key: bytes, id: Optional[int]) -> bool:
        """Ends the wait of a connection for messages of a queue. Returns whether the server has answered in time.

        Some servers crash if ``CLIENT UNBLOCK`` meets a client whose command is put off, since writes are paused. Then
        this transaction is put off itself: its first command is a write, although it acknowledges nothing.
        """
        if id is None:
            return False
        link = None
        try:
            link = self.link(key, _UNBLOCK_SECONDS)
            commands = (("MULTI",), ("DQ.ACK", key, "#"), ("CLIENT", "UNBLOCK", id), ("EXEC",))
            return isinstance(link.ask_many(commands)[-1], list)
        except Exception:  # In a cluster redis-py raises errors of several kinds here.
            return False
        finally:
            if link is not None:
                link.close()

    def switched(self) -> None:
        """Leaves a master that Sentinels have replaced. What is on its way there is repeated at the new one."""
        for link in list(self._links):
            link.close()
        if self._sync is not None:
            self._sync.connection_pool.disconnect()
        for loop in list(self._loops):
            _disconnect_in(loop, self._origin.connection_pool)
        for loop in list(self._async):
            _disconnect_in(loop, self._async.pop(loop).connection_pool)  # Its next command opens another one.

    def _watch(self) -> None:
        pool: Any = getattr(self._origin, "connection_pool", None)
        if self._watched_in == os.getpid() or not hasattr(pool, "sentinel_manager"):
            return
        with self._watching:
            if self._watched_in != os.getpid():
                self._watched_in = os.getpid()
                sentinels, settings = _sentinels_of(pool)
                watch(self, sentinels, settings, pool.service_name)

    def rediscover(self) -> None:
        """Asks a cluster again which server holds which queue. Call it after an error."""
        if isinstance(self._origin, CLUSTERS):
            try:
                self.client().nodes_manager.initialize()
            except Exception:
                pass  # It is asked again after the next error. redis-py raises errors of several kinds here.

    def _settings(self) -> Dict[str, Any]:
        if isinstance(self._origin, CLUSTERS):
            cluster: Any = self._origin
            asynchronous = isinstance(cluster, redis.asyncio.RedisCluster)
            settings = (cluster if asynchronous else cluster.nodes_manager).connection_kwargs
            return {name: settings[name] for name in settings if name in _KEPT or name.startswith("ssl")}
        return _settings_of(self._origin.connection_pool, redis.connection.SSLConnection)

    def _made(self, library: Any) -> Any:
        """Makes a client of the other kind, asynchronous or not, with the same settings."""
        if isinstance(self._origin, CLUSTERS):
            node: Any = next(iter(self._origin.nodes_manager.startup_nodes.values()))
            return library.RedisCluster(**dict(self._settings(), host=node.host, port=node.port))
        pool = self._origin.connection_pool
        kind = _kind(pool, library)
        settings = _settings_of(pool, kind)
        if hasattr(pool, "sentinel_manager"):
            return self._master(library, pool, settings)
        # The pool of asyncio that lets callers wait hangs in redis-py 5.0 if a connection cannot be opened.
        pools = redis.BlockingConnectionPool if library is redis else library.ConnectionPool
        made = pools(connection_class=kind, max_connections=self._most(), **settings)
        return library.Redis(connection_pool=made)

    def _most(self) -> int:
        most = getattr(getattr(self._origin, "connection_pool", None), "max_connections", 0)
        return int(most) if 0 < most < 2**31 else _MOST_CONNECTIONS

    def _master(self, library: Any, pool: Any, settings: Dict[str, Any]) -> Any:
        """Makes a client of the master that a Sentinel names."""
        manager = pool.sentinel_manager
        if manager.connection_kwargs.get("ssl") or "SSL" in pool.connection_class.__name__:
            settings["ssl"] = True
        for name in ("host", "port"):
            settings.pop(name, None)
        sentinels, own = _sentinels_of(pool)
        kind = Sentinel if library is redis else AsyncSentinel
        found = kind(sentinels, sentinel_kwargs=own, **settings)
        return found.master_for(pool.service_name)


def _disconnect_in(loop: Any, pool: Any) -> None:
    """Closes the connections of a pool of asyncio, which belong to an event loop of another thread."""
    try:
        loop.call_soon_threadsafe(lambda: asyncio.ensure_future(pool.disconnect()))
    except RuntimeError:
        pass  # The loop is closed.


def _sentinels_of(pool: Any) -> Tuple[List[Tuple[str, int]], Dict[str, Any]]:
    """Returns the addresses of the Sentinels of a pool, and the settings of connections to them."""
    sentinels: List[Tuple[str, int]] = []
    for sentinel in pool.sentinel_manager.sentinels:
        address = sentinel.connection_pool.connection_kwargs
        sentinels.append((address["host"], address["port"]))
    return sentinels, dict(pool.sentinel_manager.sentinel_kwargs, socket_timeout=_CONNECT_SECONDS)


def _client(url: str) -> Any:
    """Makes a client of a URL. What redis-py would drop or misunderstand is refused by its name."""
    parts, given = urlsplit(url), {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if not value or name in given:
            raise ValueError(f"the URL needs one value for its parameter {name!r}")
        given[name] = value
    if parts.fragment or url.endswith("#"):
        raise ValueError("the URL has a '#': write it as %23 in a password or a path")
    path = "" if parts.scheme == "unix" else parts.path
    if not re.fullmatch("/?|/[0-9]+", path) or (len(path) > 1 and "db" in given):
        raise ValueError(f"the database in the URL is one number, such as redis://host:6379/0, not {path[1:]!r}")
    pool = redis.BlockingConnectionPool.from_url(
        url, max_connections=_MOST_CONNECTIONS, socket_timeout=_REPLY_SECONDS, socket_connect_timeout=_CONNECT_SECONDS
    )
    known = set(_OF_URLS.split())
    if parts.scheme == "rediss":
        known |= _ssl(inspect.signature(pool.connection_class.__init__).parameters)
    for name in given:
        if name not in known:
            raise ValueError(
                f"the URL has a parameter {name!r}, which is not known; known are {', '.join(sorted(known))}"
            )
    return redis.Redis(connection_pool=pool)


def _kind(pool: Any, library: Any) -> Any:
    """Returns the class of connections of a library that is like the one of a pool."""
    name = pool.connection_class.__name__
    if "Unix" in name:
        return library.UnixDomainSocketConnection
    return library.SSLConnection if "SSL" in name else library.Connection


def _settings_of(pool: Any, kind: Any) -> Dict[str, Any]:
    """Returns the settings of a pool that a class of connections knows."""
    known = set(inspect.signature(kind.__init__).parameters) | _KEPT
    given = pool.connection_kwargs
    kept = {name: value for name, value in given.items() if name in known & (_KEPT | _ssl(given)) and value is not None}
    kept.setdefault("socket_connect_timeout", _CONNECT_SECONDS)
    kept.setdefault("socket_timeout", _REPLY_SECONDS)
    if "Unix" in kind.__name__:
        kept = {name: value for name, value in kept.items() if name not in _TCP_ONLY}
    return kept


_TCP_ONLY = ("host", "port", "socket_keepalive", "socket_keepalive_options")


def _ssl(settings: Iterable[str]) -> "frozenset[str]":
    return frozenset(name for name in settings if name.startswith("ssl_"))
