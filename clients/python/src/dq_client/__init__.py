"""Delayed jobs with dq, the delay queue of Redis and Valkey.

An :class:`App` has tasks and consumers. ``dq-worker module:app`` runs them, or :class:`Worker` within a program.
"""

from .app import App, Task
from .context import Context
from .errors import (
    ConnectionLost,
    DeadId,
    DqError,
    Failed,
    NotKept,
    OutOfMemory,
    QueueClosed,
    QueueFull,
    Refused,
    Reject,
    Retry,
    TooLarge,
    UnknownTask,
)
from .middleware import Middleware
from .queue import Queue
from .wire import PushOptions, ScheduleOptions, Settings
from .worker import Event, Worker
from .worker.outcome import TimeLimit

__version__ = "0.2.0"

__all__ = [
    "App",
    "ConnectionLost",
    "Context",
    "DeadId",
    "DqError",
    "Event",
    "Failed",
    "Middleware",
    "NotKept",
    "OutOfMemory",
    "PushOptions",
    "Queue",
    "QueueClosed",
    "QueueFull",
    "Refused",
    "Reject",
    "Retry",
    "ScheduleOptions",
    "Settings",
    "Task",
    "TimeLimit",
    "TooLarge",
    "UnknownTask",
    "Worker",
]
