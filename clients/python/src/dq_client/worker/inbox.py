"""A worker without handlers: the worker of a framework takes the messages and decides how each delivery ends.

It pops, keeps leases, reports outcomes and reconnects as every worker does. What is left to an adapter is to pass
messages on, at most as many at a time as its framework wants to hold.
"""

from __future__ import annotations

import threading
from typing import Callable, Iterable, List, Optional

from ..app import App
from ..context import Context
from ..wire import Duration, Word
from . import Worker
from .lane import Delivery, Lane
from .outcome import ACK, Outcome, of_error, of_result

# How long the end of a worker waits for answers to the last outcomes.
_CLOSE_SECONDS = 2.0
_A_YEAR = 365 * 86400.0


class Held:
    """A message that the worker of a framework holds until one of these methods ends the delivery."""

    def __init__(self, lane: Lane, delivery: Delivery) -> None:
        self._lane, self._delivery = lane, delivery

    @property
    def ctx(self) -> Context:
        """What is known of the message."""
        return self._delivery.ctx

    @property
    def lost(self) -> bool:
        """Whether the message was taken away: cancelled, replaced, or its lease is over."""
        return self.ctx.lost.is_set()

    def ack(self) -> None:
        """The work is done."""
        self._end(ACK)

    def complete(self, result: bytes) -> None:
        """The work is done, and this is its result."""
        self._end(of_result(result))

    def fail(self, error: BaseException, checkpoint: Optional[bytes] = None) -> None:
        """The work has failed: the message is delivered again, or is dead, as after the same error of a handler."""
        outcome = of_error(error)
        self._end(outcome._replace(words=[*outcome.words, *_checkpoint(checkpoint)]))

    def bury(self, error: BaseException, checkpoint: Optional[bytes] = None) -> None:
        """The message is dead, with this error."""
        outcome = of_error(error)
        words = ["DEAD", *outcome.words[-2:], *_checkpoint(checkpoint)]
        self._end(outcome._replace(kind="rejected", words=words))

    def give_back(self) -> None:
        """The work was not begun: the message returns to its place, and the attempt does not count."""
        self._lane.give_back(self._delivery)

    def _end(self, outcome: Outcome) -> None:
        if self._lane.ended(self._delivery, outcome):
            self._lane.worker.log.message(outcome.kind, self._delivery, outcome.error)


def _checkpoint(value: Optional[bytes]) -> List[Word]:
    return [] if value is None else ["CHECKPOINT", value]


class Inbox(Worker):
    """Calls ``deliver`` with each message of a queue, from a thread of its own, and holds at most ``prefetch``."""

    def __init__(
        self,
        app: App,
        queue: str,
        prefetch: int,
        deliver: Callable[[Held], object],
        *,
        lease: Optional[Duration] = None,
        name: str = "worker",
    ) -> None:
        super().__init__(app, queues={queue: prefetch}, lease=lease, grace=_A_YEAR, name=name)
        self._deliver = deliver

    def start_handlers(self, lane: Lane, deliveries: List[Delivery]) -> None:
        """Passes messages on, or gives them back if the framework wants no more."""
        for delivery in deliveries:
            if self.stopping:
                lane.give_back(delivery)
            else:
                self._deliver(Held(lane, delivery))

    def _known(self) -> Iterable[str]:
        return [lane.name for lane in self.lanes]

    def close(self) -> None:
        """Takes no further messages, and waits a moment for the answers to the last outcomes.

        What the framework still works on keeps its lease until it ends, or the process does: it is not given back,
        since another worker would then do it at the same time.
        """
        ending = threading.Thread(target=self.stop, name="dq-close", daemon=True)
        ending.start()
        ending.join(_CLOSE_SECONDS)
