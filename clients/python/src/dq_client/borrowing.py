"""Connections that are borrowed from the pool of a client of redis-py, one for each command.

So it is known whether a command was sent at all, and no command is sent twice behind our back.
"""

from __future__ import annotations

import asyncio
import inspect
import select
from typing import Any, Dict, List, Optional, Sequence, Tuple

import redis

from .errors import Unsent
from .wire import Word


def has_pool(client: Any) -> bool:
    """Returns whether connections can be borrowed from a client. Commands then are not repeated behind our back.

    A client that keeps one connection for itself has a pool, too, which may have room for no other.
    """
    if not hasattr(client, "connection_pool"):
        return False
    return getattr(client, "connection", None) is None or client.connection_pool.max_connections > 1


_NAMES: Dict[type, Tuple[str, ...]] = {}


def command_name(pool: Any) -> Tuple[str, ...]:
    """Returns what older versions of redis-py want to know of a command before they open a connection for it."""
    found = _NAMES.get(type(pool))
    if found is None:
        name = inspect.signature(pool.get_connection).parameters.get("command_name")
        found = ("DQ",) if name is not None and name.default is name.empty else ()
        _NAMES[type(pool)] = found
    return found


def asked_waiting(pool: Any, words: Sequence[Word], before: Sequence[Sequence[Word]] = ()) -> Any:
    """Sends a command, and others before it, and returns its reply.

    Raises :class:`Unsent` if no connection can be opened.
    """
    try:
        connection = pool.get_connection(*command_name(pool))
    except Exception as error:
        raise Unsent from error
    try:
        for command in before:
            connection.send_command(*command)
            connection.read_response()
        connection.send_command(*words)
        return connection.read_response(disable_decoding=True)
    except redis.ResponseError:
        raise
    except BaseException:
        connection.disconnect()  # Else the next command would get the reply to this one.
        raise
    finally:
        pool.release(connection)


async def asked(pool: Any, words: Sequence[Word], opened: List[Any], before: Sequence[Sequence[Word]] = ()) -> Any:
    """As ``asked_waiting``. The connection is in ``opened`` from the moment at which the command may have been sent."""
    connection = await pool.get_connection(*command_name(pool))
    try:
        if _is_stale(connection):
            await connection.disconnect()
            await connection.connect()
        for command in before:
            await connection.send_command(*command)
            await connection.read_response()
        opened.append(connection)
        await connection.send_command(*words)
        return await connection.read_response(disable_decoding=True)
    except redis.ResponseError:
        raise
    except BaseException:
        await connection.disconnect(nowait=True)  # Else the next command would get the reply to this one.
        raise
    finally:
        await pool.release(connection)


def _is_stale(connection: Any) -> bool:
    """Returns whether something has arrived on a connection that expects nothing, such as its end. The event loop may
    not have seen it yet."""
    writer = getattr(connection, "_writer", None)
    socket = writer.get_extra_info("socket") if writer is not None else None
    if socket is None or not hasattr(select, "poll"):
        return False
    descriptor = socket.fileno()
    if descriptor < 0:  # It was closed, because another server is the master now.
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def left(loop: asyncio.AbstractEventLoop, end: Optional[float]) -> Optional[float]:
    """Returns how many seconds are left until an instant of a loop."""
    return None if end is None else max(0.0, end - loop.time())
