"""The state of one queue of a worker: the messages that it holds, and the outcomes that the server has not answered
yet.

The threads of a lane meet here. The fetcher brings messages, handlers end, the clock, the listener and the reporter
find out that a message is lost. For each delivery exactly one of them decides the outcome. A message occupies its place
in the worker until its handler has ended and its outcome has been answered.

An outcome is reported until the server has answered it. If the lease ends before, another worker may do the work again,
which is reported as a loss; an ack still counts if no other worker has taken the message.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from ..context import Context
from ..wire import Word, pairs, raw, text
from .outcome import ACK, GIVEN_BACK, Outcome
from .server_time import DRIFT, ROUNDING_SECONDS, ServerTime, has_jumped

if TYPE_CHECKING:
    from . import Worker

# The lease of a queue that does not exist yet, or whose settings this user may not read: the default of the server.
_DEFAULT_LEASE_MS = 30_000
# How long a pop waits.
BLOCK_MS = 5000
# A notice may come before the reply of the pop that it concerns. So many are remembered.
_EARLY_NOTICES = 1000


class Delivery:
    """A message that this worker holds."""

    __slots__ = ("ctx", "begun", "end", "due", "deadline", "heard", "limit", "interrupt", "decided", "late", "parts")

    def __init__(self, ctx: Context, begun: float, left: float, lease: float) -> None:
        self.ctx = ctx
        self.begun = begun
        self.end = begun + left
        """When the lease expires, by the clock of this process."""
        self.due = begun + min(left, lease) / 2
        """When it is to be extended: not later than at half of the queue's lease, as the clock of the server may be
        set."""
        self.deadline: Optional[int] = ctx.meta.get("deadline")
        """When the lease expires, by the clock of the server."""
        self.heard = begun
        """When the server reported that."""
        self.limit: Optional[float] = None
        self.interrupt: Optional[Callable[[], object]] = None
        self.decided = False
        self.late = False
        """Whether the lease has ended while the outcome was not answered."""
        self.parts = 2
        """What is to come: the end of the handler, and the answer to its outcome."""

    def stop(self, reason: str) -> None:
        """Asks the handler to stop."""
        self.ctx.reason = reason
        self.ctx.lost.set()
        if self.interrupt is not None:
            self.interrupt()


class Lane:
    """One queue of a worker."""

    def __init__(self, worker: Worker, name: str, concurrency: int, lease_ms: Optional[int]) -> None:
        self.worker, self.name, self.key, self.concurrency = worker, name, raw(name), concurrency
        self.asked_lease_ms = lease_ms
        self.lease_ms = lease_ms or _DEFAULT_LEASE_MS
        self.max_lease_ms: Optional[int] = None
        self.server_time = ServerTime()
        self.working = 0
        self.held: Dict[bytes, Delivery] = {}
        self.acks: List[Delivery] = []
        self.reports: List[Tuple[Delivery, Outcome]] = []
        self.saves: Dict[bytes, bytes] = {}
        self.collecting = False
        """Whether the fetcher takes acks to send them with its next pop."""
        self.extend_now = False
        self.unanswered: Dict[Delivery, None] = {}
        """The deliveries whose outcome the server has not answered."""
        self.look_at = math.inf
        """When the reporter wakes by itself."""
        self.last_answer = time.monotonic()
        self.told: Dict[Delivery, float] = {}
        """Since when handlers go on although their message was taken from them. They keep their places."""
        self.refused_since: Optional[float] = None
        """Since when pops have failed."""
        self._early: "OrderedDict[bytes, str]" = OrderedDict()
        self.lock = threading.Lock()
        self.fetch = threading.Condition(self.lock)
        self.report = threading.Condition(self.lock)

    # --- leases ---

    @property
    def lease(self) -> float:
        """How long a lease of a message without one of its own lasts, in seconds."""
        return (min(self.lease_ms, self.max_lease_ms) if self.max_lease_ms else self.lease_ms) / 1000

    @property
    def lease_words(self) -> List[Word]:
        """The lease that a command asks for. Without one, that of the message counts, else that of the queue.

        How long that of a message lasts only the time of the server tells, so without it that of the queue is asked
        for.
        """
        if self.asked_lease_ms is not None:
            return ["LEASE", self.asked_lease_ms]
        return [] if self.server_time.is_known else ["LEASE", self.lease_ms]

    @property
    def block_ms(self) -> int:
        """How long a pop waits. Leases that count from its sending are not to be over when its reply arrives."""
        return BLOCK_MS if self.server_time.is_known else max(1, min(BLOCK_MS, int(self.lease * 1000 / 2)))

    def learn(self, info: Any) -> None:
        """Reads the settings of the queue from ``DQ.INFO``."""
        fields = pairs(info)
        self.lease_ms = self.asked_lease_ms or fields.get("lease") or _DEFAULT_LEASE_MS
        self.max_lease_ms = fields.get("maxlease") or 0

    def extended(self, delivery: Delivery, deadline: Optional[int], sent: float) -> None:
        """A command that was sent at ``sent`` has extended a lease, or has found that it is lost."""
        if deadline is None:
            self.take(delivery, "lease")
            return
        now = time.monotonic()
        grown, passed, jumped = math.inf, sent - delivery.heard, False
        if delivery.deadline is not None:
            grown = (deadline - delivery.deadline) / 1000
            is_cut = self.max_lease_ms != 0 and grown < passed
            jumped = not is_cut and has_jumped(grown, now - delivery.heard)
        left = self.server_time.left(deadline, now)
        if left is None:
            left = self.lease - (now - sent)
            if self.max_lease_ms != 0 and grown < passed * (1 - DRIFT) - ROUNDING_SECONDS:  # MAXLEASE has cut it.
                left = min(left, delivery.end + grown - now)
        # MAXLEASE permits nothing more to a lease that has not grown.
        is_longest = deadline == delivery.deadline and self.max_lease_ms != 0 and passed > ROUNDING_SECONDS
        delivery.due = math.inf if is_longest else now + min(left, self.lease) / 2
        if jumped and self.server_time.expire():
            delivery.due = now  # It is extended again at once, and then it is known how long that lasts.
        delivery.deadline, delivery.heard, delivery.end = deadline, now, now + left
        self.worker.clock.note(delivery.end)

    # --- the life of a delivery ---

    def received(self, messages: Any, begun: Optional[float]) -> List[Delivery]:
        """Takes messages in. Returns those whose handlers are to be called.

        Their leases began at ``begun`` or later; ``None``: the time of the server was to tell when they end.
        """
        deliveries: List[Delivery] = []
        over: List[Delivery] = []
        now, consumer = time.monotonic(), text(self.worker.consumer)
        for id, payload, attempt, receipt, *meta in messages:
            fields = pairs(meta[0]) if meta else {}
            ctx = Context(self.name, consumer, self.save, text(id), payload, attempt, receipt, fields)
            left = self.server_time.left(fields.get("deadline"), now)
            is_unknown = left is None and begun is None
            if left is None:
                left = self.lease - (now - (now if begun is None else begun))
            delivery = Delivery(ctx, now, left, self.lease)
            if is_unknown:
                delivery.due = now  # It is extended at once, and then it is known how long that lasts.
            (deliveries if left > 0 else over).append(delivery)
        with self.lock:
            self.working += len(deliveries)
            self.held.update((delivery.ctx.receipt, delivery) for delivery in deliveries)
            if any(delivery.due < self.look_at for delivery in deliveries):
                self.report.notify()
            early = [(delivery, self._early.pop(delivery.ctx.receipt, None)) for delivery in deliveries]
        for delivery in over:  # The reply came when another worker may have the message.
            self.worker.log.message("lost", delivery, "lease")
        for delivery in deliveries:
            self.worker.clock.note(delivery.end)
        for delivery, reason in early:
            if reason is not None:
                self.take(delivery, reason)
        return deliveries

    def ended(self, delivery: Delivery, outcome: Outcome) -> bool:
        """A handler has ended. Returns whether its outcome counts."""
        with self.lock:
            counts = self._decide(delivery)
            self.told.pop(delivery, None)
            delivery.parts -= 1
            if counts:
                self.unanswered[delivery] = None
                if outcome is ACK and self.collecting:
                    self.acks.append(delivery)
                    self.fetch.notify()
                else:
                    self.reports.append((delivery, outcome))
                    self.report.notify()
            else:
                self._free_if_done(delivery)
        return counts

    def take(self, delivery: Delivery, reason: str, outcome: Optional[Outcome] = None) -> bool:
        """Takes a message from its handler, with an outcome if the message is still ours. Returns whether it had it."""
        with self.lock:
            if not self._decide(delivery):
                return False
            self.told[delivery] = time.monotonic()
            if outcome is None:
                self.saves.pop(delivery.ctx.receipt, None)
                delivery.parts -= 1
                self._free_if_done(delivery)
            else:
                self.unanswered[delivery] = None
                self.reports.append((delivery, outcome))
                self.report.notify()
        delivery.stop(reason)
        self.worker.log.message(outcome.kind if outcome else "lost", delivery, reason)
        return True

    def give_back(self, delivery: Delivery) -> None:
        """Gives a message back whose handler was not called."""
        self.ended(delivery, GIVEN_BACK)

    def answered(self, delivery: Delivery) -> None:
        """The server has answered the outcome."""
        with self.lock:
            self.unanswered.pop(delivery, None)
            delivery.parts -= 1
            self._free_if_done(delivery)

    def is_late(self, delivery: Delivery) -> None:
        """The lease has ended before the server has answered the outcome."""
        with self.lock:
            if delivery.late or delivery not in self.unanswered:
                return
            delivery.late = True
        self.worker.log.message("lost", delivery, "lease")

    def save(self, receipt: bytes, checkpoint: bytes) -> None:
        """Stores a checkpoint soon."""
        with self.lock:
            self.saves[receipt] = checkpoint
            self.report.notify()

    def flush_acks(self) -> None:
        """Passes the acks that wait for the fetcher to the reporter."""
        with self.lock:
            self.collecting = False
            self.reports.extend((delivery, ACK) for delivery in self.acks)
            self.acks.clear()
            self.report.notify()

    def noticed(self, reason: str, receipt: bytes) -> None:
        """A command has taken a message from this worker, or from another one."""
        with self.lock:
            delivery = self.held.get(receipt)
            if delivery is None:
                self._early[receipt] = reason
                if len(self._early) > _EARLY_NOTICES:
                    self._early.popitem(last=False)
        if delivery is not None:
            self.take(delivery, reason)

    def ask_for_losses(self) -> None:
        """Has all leases extended at once, which shows what is lost."""
        with self.lock:
            self.extend_now = True
            self.report.notify()

    def running(self) -> List[Delivery]:
        """Returns the deliveries whose outcome is open."""
        with self.lock:
            return list(self.held.values())

    def reported(self) -> List[Delivery]:
        """Returns the deliveries whose outcome the server has not answered."""
        with self.lock:
            return list(self.unanswered)

    def wake(self) -> None:
        """Wakes the threads, so that they see that the worker stops."""
        with self.lock:
            self.fetch.notify_all()
            self.report.notify_all()

    def _decide(self, delivery: Delivery) -> bool:
        if delivery.decided:
            return False
        delivery.decided = True
        self.held.pop(delivery.ctx.receipt, None)
        return True

    def _free_if_done(self, delivery: Delivery) -> None:
        if delivery.parts == 0:
            self.working -= 1
            self.fetch.notify()
