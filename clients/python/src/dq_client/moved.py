"""Commands to a cluster: each is sent to the node that holds its key, and follows MOVED and ASK.

A client of redis-py for a cluster would send a command again whose reply was lost, so that null might be the answer to
one's own push. It is only asked which node holds which key.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.exceptions import AskError, MovedError
from redis.retry import Retry

from .borrowing import asked, asked_waiting
from .errors import Unsent, is_disconnect
from .wire import Word

# A command is sent to another node this often. Nodes can disagree for a moment.
_MOST_HOPS = 5

Address = Tuple[str, int]


class Waiting:
    """Commands that wait for their reply, through a client of a cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pools: Dict[Address, Any] = {}
        """Of nodes that the client does not know yet."""

    def ask(self, words: Sequence[Word]) -> Any:
        """Sends a command and returns its reply. Raises :class:`Unsent` if no connection can be opened."""
        try:
            pool = self._client.get_redis_connection(self._client.get_node_from_key(words[1])).connection_pool
        except Exception as error:
            self._look_again()
            raise Unsent from error
        before: List[Sequence[Word]] = []
        for hops in range(_MOST_HOPS + 1):
            try:
                return asked_waiting(pool, words, before)
            except AskError as error:
                before = [] if isinstance(error, MovedError) else [("ASKING",)]
                if not before:
                    self._look_again()
                if hops == _MOST_HOPS:
                    raise
                pool = self._pool_at(error, pool)
            except Exception as error:
                if isinstance(error, Unsent) or is_disconnect(error):
                    self._look_again()
                raise

    def _pool_at(self, error: AskError, asked_before: Any) -> Any:
        settings = dict(asked_before.connection_kwargs, **_place(error, asked_before.connection_kwargs))
        known = self._client.get_node(host=settings["host"], port=settings["port"])
        if known is not None:
            return self._client.get_redis_connection(known).connection_pool
        address = settings["host"], settings["port"]
        if address not in self._pools:
            made: Any = redis.ConnectionPool
            self._pools[address] = made(connection_class=asked_before.connection_class, **settings)
        return self._pools[address]

    def _look_again(self) -> None:
        try:
            self._client.nodes_manager.initialize()
        except Exception:
            pass  # The next command finds out. redis-py raises errors of several kinds here.


class Awaited:
    """Commands that are awaited in one event loop, through a client of a cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pools: Dict[Address, Any] = {}

    async def ask(self, words: Sequence[Word], opened: List[Any]) -> Any:
        """Sends a command and returns its reply.

        The connection is in ``opened`` once the command may have been sent.
        """
        await self._client.initialize()
        node = self._client.get_node_from_key(words[1])
        pool = self._pool(node, dict(node.connection_kwargs))
        before: List[Sequence[Word]] = []
        for hops in range(_MOST_HOPS + 1):
            try:
                return await asked(pool, words, opened, before)
            except AskError as error:
                before = [] if isinstance(error, MovedError) else [("ASKING",)]
                if not before:
                    await self._look_again()
                if hops == _MOST_HOPS:
                    raise
                del opened[:]  # It has certainly not been carried out.
                pool = self._pool(node, dict(pool.connection_kwargs, **_place(error, pool.connection_kwargs)))
            except Exception as error:
                if is_disconnect(error):
                    await self._look_again()
                raise

    async def close(self) -> None:
        """Closes the connections."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.disconnect()

    def _pool(self, node: Any, settings: Dict[str, Any]) -> Any:
        address = settings["host"], settings["port"]
        if address not in self._pools:
            settings["retry"] = Retry(NoBackoff(), 0)
            made: Any = redis.asyncio.ConnectionPool
            self._pools[address] = made(connection_class=node.connection_class, **settings)
        return self._pools[address]

    async def _look_again(self) -> None:
        try:
            await self._client.nodes_manager.initialize()
        except Exception:
            pass  # As above.


def _place(error: AskError, asked_before: Dict[str, Any]) -> Dict[str, Any]:
    """Returns where a redirection leads to. A node that does not know its own host leaves it out."""
    return {"host": error.host or asked_before["host"], "port": error.port}
