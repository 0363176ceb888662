"""Messages, queues and batches as the server describes them: dicts, whose names type checkers and editors know.

``docs/commands`` describes each field. Times are Unix milliseconds, durations are milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from typing_extensions import TypedDict
else:  # The standard library has what is needed at run time.
    from typing import TypedDict

# fmt: off
_SomeMessages = TypedDict("_SomeMessages", {
    "payload": bytes, "priority": int, "retries": int, "lease": int, "ttl": int, "next": int,  # all but done ones
    "retain": int, "group": str, "batch": str, "headers": Dict[str, str], "checkpoint": bytes,
    "deadline": int, "receipt": str, "consumer": str,
    "error": str, "errors": List[Tuple[int, int, str]], "reason": str, "died": int, "lease-expired": int,
    "every": int, "offset": int, "cron": str, "tz": str, "until": Optional[int], "times-left": Optional[int],
    "runs": int, "failed-runs": int, "last-run": Optional[int],
    "done": int, "result": Optional[bytes],
}, total=False)


class Message(_SomeMessages):
    """A message as ``DQ.GET`` describes it. Which fields it has besides these five depends on its state and its
    options."""

    id: str
    state: str
    created: int
    due: int
    attempt: int


QueueInfo = TypedDict("QueueInfo", {
    "delayed": int, "ready": int, "inflight": int, "dead": int, "done": int, "groups": int, "blocked": int,
    "known": int, "batches": int, "payload-bytes": int, "waiting-clients": int,
    "next-due": Optional[int], "oldest-ready": Optional[int], "oldest-inflight": Optional[int],
    "oldest-dead": Optional[int], "newest-dead": Optional[int], "last-death": Optional[int],
    "last-delivery": Optional[int], "schedules": int, "consumers": int, "paused-groups": int,
    "paused": int, "paused-until": Optional[int], "closed": int, "closed-until": Optional[int],
    "next-delivery": Optional[int],
    # settings
    "lease": int, "retries": int, "backoff-base": int, "backoff-max": int, "backoff-jitter": int, "ttl": int,
    "maxlen": int, "maxinflight": int, "rate": int, "rate-period": int, "deadlen": int, "deadttl": int, "retain": int,
    "donelen": int, "maxpayload": int, "groupinflight": int, "grouprate": int, "grouprate-period": int, "errors": int,
    "grouporder": str, "dedupe": int, "maxlease": int, "delay": int,
    "forward": str, "forward-error": Optional[str], "forward-failing-since": Optional[int],
    "deadforward": str, "deadforward-error": Optional[str], "deadforward-failing-since": Optional[int],
    # totals
    "pushed": int, "duplicates": int, "delivered": int, "acked": int, "nacked": int, "given-back": int,
    "lease-expired": int, "died": int, "expired": int, "redriven": int, "cancelled": int, "rejected-full": int,
    "forwarded": int, "deadforwarded": int,
})
"""A queue as ``DQ.INFO`` describes it."""

_ClosedBatch = TypedDict("_ClosedBatch", {"then": bytes, "then-id": str}, total=False)
# fmt: on


class BatchInfo(_ClosedBatch):
    """A batch as ``DQ.BATCHINFO`` describes it. Only one that is closed has a ``then``."""

    total: int
    left: int
    acked: int
    dead: int
    cancelled: int
    closed: int
    created: int
