"""Learns that Sentinels have named another master. The one before may live on for seconds, and what it accepts then is
lost."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any, Callable, List, Tuple

from redis.sentinel import Sentinel

_CHANNEL = "+switch-master"
# The pause before a Sentinel that is away is asked again.
_PAUSE_SECONDS = 1.0


def watch(owner: Any, sentinels: List[Tuple[str, int]], settings: Any, name: str) -> None:
    """Has ``owner.switched`` called when there is another master of a name, as long as the owner lives."""
    reference = weakref.ref(owner)
    made: Any = Sentinel
    for sentinel in made(sentinels, sentinel_kwargs=settings).sentinels:
        arguments = (sentinel, name, reference)
        threading.Thread(target=_listen, args=arguments, name="dq-sentinel", daemon=True).start()


def _listen(sentinel: Any, name: str, reference: Callable[[], Any]) -> None:
    while reference() is not None:
        try:
            _hear(sentinel.pubsub(), name, reference)
        except Exception:  # It is away, or refuses: then the end of its connections tells of a failover.
            time.sleep(_PAUSE_SECONDS)


def _hear(channels: Any, name: str, reference: Callable[[], Any]) -> None:
    from .source import published

    with channels:
        channels.subscribe(_CHANNEL)
        for message in published(channels, lambda: channels.subscribe(_CHANNEL), lambda: reference() is None):
            if message["type"] == "message" and _name_of(message["data"]) == name:
                _tell(reference())


def _tell(owner: Any) -> None:
    """Not within the loop that waits: its variables would keep the owner alive."""
    if owner is not None:
        owner.switched()


def _name_of(data: Any) -> str:
    text: str = data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)
    return text.partition(" ")[0]
