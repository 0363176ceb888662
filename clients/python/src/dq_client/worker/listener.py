"""The thread that receives a notice when a command takes a message away: the server publishes it on a channel of each
queue.

Notices are hints. If the connection breaks, or the user has no right to a channel, losses are noticed when leases are
extended.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Dict

import redis

from ..errors import is_disconnect
from ..source import Backoff, published
from ..wire import text
from .lane import Lane

if TYPE_CHECKING:
    from . import Worker

log = logging.getLogger("dq_client")

# How long an answer may take.
_ANSWER_SECONDS = 10.0


class Listener:
    """Subscribes to the channels of all queues of a worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.listening = False
        """Whether it has tried to subscribe."""
        db = worker.app.source.db
        self._lanes: Dict[bytes, Lane] = {b"__dq@%d__:%s" % (db, lane.key): lane for lane in worker.lanes}

    def run(self) -> None:
        """Listens until the worker is closed, or no channel is left."""
        backoff = Backoff()
        while self._lanes and not self._worker.closed:
            try:
                key = next(iter(self._lanes.values())).key
                link = self._worker.app.source.link(key, _ANSWER_SECONDS)
                try:
                    self._listen(link.pubsub(), backoff)
                finally:
                    link.close()
            except Exception as error:
                log.debug("no notices: %s", error)
                if not is_disconnect(error):
                    self._heard_or_not()
                self._worker.wait(backoff.next())

    def _listen(self, channels: Any, backoff: Backoff) -> None:
        for channel in list(self._lanes):
            self._subscribe(channels, channel)
        for lane in self._lanes.values():
            lane.ask_for_losses()  # Something may have been missed.
        backoff.reset()
        self._heard_or_not()
        for message in published(
            channels,
            lambda: channels.subscribe(next(iter(self._lanes))),
            lambda: not self._lanes or self._worker.closed,
        ):
            if message["type"] == "message":
                self._heard(self._lanes[message["channel"]], message["data"])

    def _heard_or_not(self) -> None:
        """A worker is ready without notices, too, but not before it has tried to subscribe."""
        self.listening = True
        self._worker.consuming()

    def _subscribe(self, channels: Any, channel: bytes) -> None:
        try:
            channels.subscribe(channel)
            while (message := channels.get_message(timeout=_ANSWER_SECONDS)) and message["type"] != "subscribe":
                self._heard(self._lanes[message["channel"]], message["data"])
        except redis.exceptions.NoPermissionError as error:
            lane = self._lanes.pop(channel)
            channels.channels.pop(channel, None)
            self._worker.log.queue(
                "refused", lane.name, f"losses are noticed late, without the channel {text(channel)}: {error}"
            )

    def _heard(self, lane: Lane, notice: bytes) -> None:
        reason, _, receipt = notice.partition(b" ")
        if receipt:
            lane.noticed(text(reason), receipt)
        else:
            lane.ask_for_losses()
