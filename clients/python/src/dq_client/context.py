"""The context of a handler: its message, and whether that was taken from it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, Dict, Optional

from .wire import Text, headers, raw

RESULT_HEADER = "dq-result"
"""A header of calls. With the value ``json`` whatever the handler returns is stored as JSON, so that the caller gets
the same."""


@dataclass(eq=False, repr=False)
class Context:
    """One delivery of a message. A handler gets it if it has a parameter that is annotated with this class, or named
    ``ctx`` and not annotated. Type checkers know that it is no argument of a task if it is the first."""

    queue: str
    """The name of the queue."""
    consumer: str
    """The name under which ``DQ.CONSUMERS`` lists the worker."""
    _save: Callable[[bytes, bytes], None]
    id: str
    payload: bytes
    attempt: int
    """1 on the first delivery."""
    receipt: bytes
    """Names this delivery."""
    meta: Dict[str, Any]
    """The other fields of the message: ``created``, ``due``, ``group``, ``checkpoint`` and so on."""
    lost: threading.Event = field(default_factory=threading.Event)
    """Set when the message is no longer the handler's, which then should stop: its outcome is discarded."""
    reason: Optional[str] = None
    """Why it should stop: ``lease``, ``cancelled``, ``replaced``, ``buried``, ``purged``, ``released``, ``stopping`` or
    ``time limit``."""
    task: Optional[str] = None
    """The name of the task, if the payload names one."""

    @cached_property
    def headers(self) -> Dict[str, str]:
        """The headers of the message."""
        return headers(self.meta.get("headers"))

    @property
    def checkpoint(self) -> Optional[bytes]:
        """What an earlier attempt, or this one, has stored last."""
        return self.meta.get("checkpoint")

    def save(self, checkpoint: Text) -> None:
        """Stores how far the work has come, up to 65536 bytes, for the next attempt and for operators. Does not
        wait."""
        value = raw(checkpoint)
        self.meta["checkpoint"] = value or None
        self._save(self.receipt, value)
