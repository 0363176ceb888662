"""The thread that extends the leases of a queue at half time, and reports outcomes until they are answered.

It has a connection of its own, and no handler, however busy, can stall it.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ..errors import is_disconnect, is_transient
from ..source import Backoff, Link
from ..wire import CHECKPOINT_BYTES, Word
from .fetcher import MARGIN_SECONDS
from .lane import Delivery, Lane
from .outcome import ACK, Outcome

if TYPE_CHECKING:
    from . import Worker

Report = Tuple[Delivery, Outcome]
Saves = Dict[bytes, bytes]


class Reporter:
    """Reports the outcomes of a lane and keeps its leases until it is closed."""

    def __init__(self, worker: Worker, lane: Lane) -> None:
        self._worker, self._lane = worker, lane
        self._link: Optional[Link] = None
        self._backoff = Backoff()

    def run(self) -> None:
        """Works until the worker is closed and nothing is left to report."""
        while True:
            reports, saves, kept = self._next()
            if not (reports or saves or kept):
                break
            try:
                unheard = self._send(self._link or self._connect(), reports, saves, kept)
            except Exception as error:
                self._again(reports, saves, error)
            else:
                if unheard:
                    self._again(*unheard)
                else:
                    self._backoff.reset()
                    self._lane.last_answer = time.monotonic()
        if self._link is not None:
            self._link.close()

    def _connect(self) -> Link:
        self._link = link = self._worker.app.source.link(self._lane.key, MARGIN_SECONDS)
        self._lane.server_time.read(link)
        return link

    def _next(self) -> Tuple[List[Report], Saves, List[Delivery]]:
        """Waits until there is something to send. Returns nothing once the worker is closed and everything is sent."""
        lane = self._lane
        with lane.lock:
            while True:
                due = min((delivery.due for delivery in lane.held.values()), default=None)
                pause = None if due is None else due - time.monotonic()
                if lane.extend_now or (pause is not None and pause <= 0):
                    kept, lane.extend_now = list(lane.held.values()), False
                else:
                    kept = []
                if kept or lane.reports or lane.saves:
                    reports, lane.reports = lane.reports, []
                    saves, lane.saves = lane.saves, {}
                    return reports, saves, kept
                if self._worker.closed:
                    return [], {}, []
                lane.look_at = math.inf if due is None else due
                lane.report.wait(None if pause in (None, math.inf) else pause)
                lane.look_at = -math.inf  # It looks now.

    def _send(
        self, link: Link, reports: List[Report], saves: Saves, kept: List[Delivery]
    ) -> Optional[Tuple[List[Report], Saves, BaseException]]:
        """Sends all in one go. Returns what is to be sent again, and why, if the server cannot do it now."""
        lane, key, lease = self._lane, self._lane.key, self._lane.lease_words
        acks = [report for report in reports if report[1] is ACK]
        others = [report for report in reports if report[1] is not ACK]
        commands: List[List[Word]] = []
        if kept:
            commands.append(["DQ.MEXTEND", key, len(kept), *(d.ctx.receipt for d in kept), *lease])
        for receipt, value in saves.items():
            commands.append(["DQ.EXTEND", key, receipt, *lease, "CHECKPOINT", value])
        if acks:
            commands.append(["DQ.ACK", key, *(delivery.ctx.receipt for delivery, _ in acks)])
        for delivery, outcome in others:
            words = outcome.words + _checkpoint_for(outcome, saves.get(delivery.ctx.receipt))
            commands.append([outcome.command, key, delivery.ctx.receipt, *words])
        if kept or saves:
            lane.server_time.refresh(link)
        sent = time.monotonic()
        replies = link.ask_many(commands)
        again: List[Report] = []
        reason: Optional[BaseException] = None
        if kept:
            reason = self._extended(kept, replies.pop(0), sent)
        unsaved, why = self._saved(saves, [replies.pop(0) for _ in saves], sent)
        reason = why or reason
        for about, reply in zip(([acks] if acks else []) + [[report] for report in others], replies):
            if isinstance(reply, Exception) and is_transient(reply):
                again += about
                reason = reply
                continue
            if isinstance(reply, Exception):
                self._worker.log.queue("refused", lane.name, str(reply))
            for delivery, outcome in about:
                dead = reply == b"dead"
                self._worker.log.accepted(delivery, outcome, dead)
                lane.answered(delivery)
        return (again, unsaved, reason) if reason is not None else None

    def _extended(self, kept: List[Delivery], reply: Any, sent: float) -> Optional[BaseException]:
        """Notes the new ends of leases, and what is lost."""
        if isinstance(reply, Exception):
            if not is_transient(reply):
                self._worker.log.queue("refused", self._lane.name, str(reply))
            return reply
        for delivery, deadline in zip(kept, reply):
            self._lane.extended(delivery, deadline, sent)
        return None

    def _saved(self, saves: Saves, replies: List[Any], sent: float) -> Tuple[Saves, Optional[BaseException]]:
        """Returns the checkpoints that the server cannot keep now, and why. To keep one also extends the lease."""
        again: Saves = {}
        reason: Optional[BaseException] = None
        for (receipt, value), reply in zip(saves.items(), replies):
            delivery = self._lane.held.get(receipt)
            if isinstance(reply, Exception) and is_transient(reply):
                again[receipt], reason = value, reply
            elif isinstance(reply, Exception):
                self._worker.log.queue("refused", self._lane.name, f"a checkpoint is not kept: {reply}")
            elif delivery is not None:
                self._lane.extended(delivery, reply, sent)
        return again, reason

    def _again(self, reports: List[Report], saves: Saves, error: Optional[BaseException]) -> None:
        """Keeps what is to be sent again. What was sent on a connection that broke may be answered there no more."""
        lane = self._lane
        if self._link is not None:
            self._link.close()
            self._link = None
        if error is not None and (is_disconnect(error) or is_transient(error)):
            self._worker.app.source.rediscover()
        with lane.lock:
            lane.reports = reports + lane.reports
            mine = {*lane.held, *(delivery.ctx.receipt for delivery, _ in lane.reports)}
            lane.saves = {**{receipt: value for receipt, value in saves.items() if receipt in mine}, **lane.saves}
            if time.monotonic() > self._worker.patience:
                lane.reports, lane.saves = [], {}
            else:
                lane.report.wait(self._backoff.next())


def _checkpoint_for(outcome: Outcome, checkpoint: Optional[bytes]) -> List[Word]:
    """A nack takes the checkpoint along that is not stored yet: the server may refuse that and accept the nack."""
    is_nack = outcome.command == "DQ.NACK" and "CHECKPOINT" not in outcome.words
    if not is_nack or checkpoint is None or len(checkpoint) > CHECKPOINT_BYTES:
        return []
    return ["CHECKPOINT", checkpoint]
