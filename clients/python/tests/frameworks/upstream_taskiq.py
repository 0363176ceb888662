"""Has Taskiq's own tests run on our broker and result backend, and lists those that are left out.

versions.sh unpacks Taskiq's source distribution and runs ``pytest -p upstream_taskiq`` there, with the files of tests
that send tasks. The others are about parsing, scheduling, brokers of their own and other parts, and need no broker.
"""

import asyncio
import pathlib
import sys
import uuid

import pytest
import taskiq
import taskiq.brokers.inmemory_broker
from taskiq.api import run_receiver_task

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "conformance"))

from server import Server

from dq_client.taskiq import DqBroker, DqResultBackend

_FIELDS = "it looks at fields of the broker in memory"
_INPLACE = "it has the producer run the task"
_BEFORE_RETRY = "it expects a result before the task has ended"
_PROGRESS = "DqResultBackend keeps no progress"
_TWICE = "it starts a producer and a worker at once"
_DELAY = "it expects that a retry is not delayed by the 5 s that its middleware says"
LEFT_OUT = {
    "test_inmemory_success": _FIELDS,
    "test_inline_awaits": _INPLACE,
    "test_cannot_listen": "it expects that the broker cannot listen",
    "test_wait_all": _FIELDS,
    "test_requeue": _FIELDS,
    "test_requeue_from_dependency": _FIELDS,
    "test_shutdown": _TWICE,
    "test_middleware_startup_and_shutdown_fire": _TWICE,
    "test_inmemory_broker_raises_unknown_task_error": _INPLACE,
    "test_progress_tracker_ctx_raw": _PROGRESS,
    "test_progress_tracker_validation_error": "it expects the class of an error, which results in JSON do not keep",
    "test_per_task_exc_types_matching[SmartRetryMiddleware]": _DELAY,
    "test_per_task_exc_types_override_global[SmartRetryMiddleware]": _DELAY,
    "test_retry_of_custom_exc_types_of_smart_middleware": _DELAY,
    "test_wait_result_error": _BEFORE_RETRY,
    "test_wait_result_no_result": _BEFORE_RETRY,
}


def pytest_collection_modifyitems(items):
    for item in items:
        reason = LEFT_OUT.get(item.originalname) or LEFT_OUT.get(item.name)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


_server = Server()


def pytest_sessionstart():
    _server.boot()


def pytest_sessionfinish():
    _server.close()


class Broker(DqBroker):
    """Works on the tasks that it is sent, as the broker in memory does."""

    def __init__(self, **_):
        name = f"taskiq-{uuid.uuid4()}"
        super().__init__(_server.url, name)
        self.with_result_backend(DqResultBackend(_server.url, name))
        self._receiver = None

    async def kick(self, message):
        if self._receiver is None:
            self._receiver = asyncio.create_task(run_receiver_task(self))
        await super().kick(message)

    async def startup(self):
        self.is_worker_process = True
        await super().startup()
        self.is_worker_process = False
        await super().startup()


taskiq.InMemoryBroker = taskiq.brokers.inmemory_broker.InMemoryBroker = Broker
