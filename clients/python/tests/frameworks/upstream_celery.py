"""Has Celery's own integration tests run with dq:// as their broker, and lists those that are left out.

celery_versions.sh unpacks Celery's source distribution and runs ``pytest -p upstream_celery`` there, with the files whose tests
send tasks to a worker, or ask it. Those about result backends, beat, security and other parts need no broker, or another one.
"""

import os
import pathlib
import sys

import pytest

import dq_client.celery  # noqa: F401, for its scheme

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "conformance"))

from server import Server

_LOGS = "it fails with the Redis transport too, outside Celery's own environment"
LEFT_OUT = {
    "test_scheduled": "it expects a worker that holds tasks which are not due",
    "test_task_success": _LOGS,
    "test_task_failed": _LOGS,
}
_server = Server().boot()
os.environ.update(
    TEST_BROKER=f"dq://127.0.0.1:{_server.port}/0",
    TEST_BACKEND=f"redis://127.0.0.1:{_server.port}/1",
    REDIS_HOST="127.0.0.1",
    REDIS_PORT=str(_server.port),
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.originalname in LEFT_OUT:
            item.add_marker(pytest.mark.skip(reason=LEFT_OUT[item.originalname]))


def pytest_sessionfinish():
    _server.close()
