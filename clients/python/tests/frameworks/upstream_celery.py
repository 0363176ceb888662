"""Has Celery's own integration tests run with dq:// as their broker, and lists those that are left out. Results, on
which chords depend, are in Celery's Redis backend. ``BROKER=redis`` runs all of them with the Redis transport, to
compare.

celery_versions.sh unpacks Celery's source distribution and runs ``pytest -p upstream_celery`` there, with the files
whose tests send tasks or canvases to a worker, or ask it. Those about result backends, beat, security and other parts
need no broker, or another one.
"""

import os
import pathlib
import sys

import pytest
from celery.app.control import Control

import dq_client.celery  # noqa: F401, for its scheme

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "conformance"))

from server import Server

_LOGS = "it fails with the Redis transport too, outside Celery's own environment"
_OVERTAKEN = "it fails with the Redis transport too, if the task runs before the line after delay()"
LEFT_OUT = {
    "test_scheduled": "it expects a worker that holds tasks which are not due",
    "test_task_success": _LOGS,
    "test_task_failed": _LOGS,
    "test_replaced_task_nesting_level_0": _OVERTAKEN,
    "test_replaced_task_nesting_level_1": _OVERTAKEN,
    "test_chord_header_id_duplicated_on_rabbitmq_msg_duplication": "a task pushed twice is one message, by its id",
}
_server = Server().boot()
_SCHEME = os.environ.get("BROKER", "dq")
os.environ.update(
    TEST_BROKER=f"{_SCHEME}://127.0.0.1:{_server.port}/1",
    TEST_BACKEND=f"redis://127.0.0.1:{_server.port}/0",  # The tests look into database 0.
    REDIS_HOST="127.0.0.1",
    REDIS_PORT=str(_server.port),
)
_revoke_by_stamped_headers = Control.revoke_by_stamped_headers


def _revoke_and_wait(self, headers, **options):
    """Waits for the worker's answer: with either transport, a task can overtake a broadcast that was sent before it."""
    return _revoke_by_stamped_headers(self, headers, **{**options, "reply": True, "limit": 1, "timeout": 60})


Control.revoke_by_stamped_headers = _revoke_and_wait


def pytest_collection_modifyitems(items):
    for item in items if _SCHEME == "dq" else ():
        if item.originalname in LEFT_OUT:
            item.add_marker(pytest.mark.skip(reason=LEFT_OUT[item.originalname]))


def pytest_sessionfinish():
    _server.close()
