"""What a handler knows of its message, and how it learns that it has lost it."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Optional

from .wire import Text, headers, raw

RESULT_HEADER = "dq-result"
"""A header of calls. With the value ``json`` whatever the handler returns is stored as JSON, so that the caller gets the same."""


class Context:
    """One delivery of a message. A handler gets it if it has a parameter that is annotated with this class, or named
    ``ctx`` and not annotated. Type checkers know that it is no argument of a task if it is the first."""

    __slots__ = (
        *("queue", "consumer", "id", "attempt", "receipt", "payload", "meta", "lost", "reason", "task"),
        *("_save", "_headers"),
    )

    def __init__(
        self,
        queue: str,
        consumer: str,
        save: Callable[[bytes, bytes], None],
        id: str,
        payload: bytes,
        attempt: int,
        receipt: bytes,
        meta: Dict[str, Any],
    ) -> None:
        self.queue = queue
        """The name of the queue."""
        self.consumer = consumer
        """The name under which ``DQ.CONSUMERS`` lists the worker."""
        self.id = id
        self.attempt = attempt
        """1 on the first delivery."""
        self.receipt = receipt
        """Names this delivery."""
        self.payload = payload
        self.meta = meta
        """What else the server tells of the message: ``created``, ``due``, ``group``, ``checkpoint`` and so on."""
        self.lost = threading.Event()
        """Set when the message is no longer the handler's, which then should stop: its outcome is discarded."""
        self.reason: Optional[str] = None
        """Why it was told to stop: ``lease``, ``cancelled``, ``replaced``, ``buried``, ``purged``, ``released``,
        ``stopping`` or ``time limit``."""
        self.task: Optional[str] = None
        """The name of the task, if the payload names one."""
        self._save = save
        self._headers: Optional[Dict[str, str]] = None

    @property
    def headers(self) -> Dict[str, str]:
        """The headers of the message."""
        if self._headers is None:
            self._headers = headers(self.meta.get("headers"))
        return self._headers

    @property
    def checkpoint(self) -> Optional[bytes]:
        """What an earlier attempt, or this one, has stored last."""
        return self.meta.get("checkpoint")

    def save(self, checkpoint: Text) -> None:
        """Stores how far the work has come, up to 65536 bytes, for the next attempt and for operators. Does not wait."""
        value = raw(checkpoint)
        self.meta["checkpoint"] = value or None
        self._save(self.receipt, value)
