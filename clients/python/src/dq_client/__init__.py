"""Delayed jobs with dq, the delay queue of Redis and Valkey.

An :class:`App` has tasks and consumers. ``dq-worker module:app`` runs them, or :class:`Worker` within a program.
"""

from .app import App as App, Task as Task
from .context import Context as Context
from .errors import (
    ConnectionLost as ConnectionLost,
    DeadId as DeadId,
    DqError as DqError,
    Failed as Failed,
    NotKept as NotKept,
    OutOfMemory as OutOfMemory,
    QueueClosed as QueueClosed,
    QueueFull as QueueFull,
    Refused as Refused,
    Reject as Reject,
    Retry as Retry,
    TooLarge as TooLarge,
    UnknownTask as UnknownTask,
)
from .middleware import Middleware as Middleware
from .queue import Queue as Queue
from .wire import PushOptions as PushOptions, ScheduleOptions as ScheduleOptions, Settings as Settings
from .worker import Worker as Worker
from .worker.log import Event as Event
from .worker.outcome import TimeLimit as TimeLimit

__version__ = "0.2.0"
