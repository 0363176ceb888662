"""Runs Django's own tests of tasks on our backend, and lists those that are left out.

versions.sh unpacks ``tests/tasks`` of Django's source distribution and runs this program beside it. Django's tests
enqueue at a dummy backend, which keeps tasks, and at an immediate one, which runs them before ``enqueue`` returns. Here
ours takes the place of both: as the dummy it has no worker, as the immediate one it has a worker and waits for it.
``test_custom_backend.py`` has backends of its own.
"""

import pathlib
import sys
import time

import django
from django.conf import settings
from django.tasks.backends import dummy, immediate
from django.test.runner import DiscoverRunner

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "conformance"))

from server import Server

from dq_client.django import DqBackend

settings.configure(
    SECRET_KEY="none",
    USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()

_FIELDS = "it looks at fields of the dummy backend"
_LIMITS = "it expects that a backend without results or delays refuses them"
_ORDER = "it expects the worker's lines of the log after the producer's, or before them"
LEFT_OUT = {
    "DummyBackendTestCase.test_errors": _FIELDS,
    "DummyBackendTestCase.test_validate_disallowed_async_task": _FIELDS,
    "ImmediateBackendTestCase.test_cannot_get_result": _LIMITS,
    "ImmediateBackendTestCase.test_cannot_refresh_result": _LIMITS,
    "ImmediateBackendTestCase.test_cannot_pass_run_after": _LIMITS,
    "ImmediateBackendTestCase.test_throws_keyboard_interrupt": "it interrupts the producer, which runs no task here",
    "DummyBackendTestCase.test_refresh_result": _FIELDS,
    "DummyBackendTestCase.test_refresh_result_async": _FIELDS,
    "ImmediateBackendTestCase.test_enqueue_logs": _ORDER,
    "ImmediateBackendTestCase.test_failed_logs": _ORDER,
}
server = Server().boot()


class Dummy(DqBackend):
    """Keeps tasks."""

    def __init__(self, alias, params):
        super().__init__(alias, {**params, "OPTIONS": {"url": server.url}})
        self.options = {}

    def clear(self):
        """Removes all tasks."""
        while Immediate.workers:  # Of tests before this one.
            Immediate.workers.pop().stop()
        server.do("FLUSHALL")

    @property
    def results(self):
        """All tasks."""
        return [self.get_result(message["id"]) for message in self.queue().peek_sync("ready", count=100)]


class Immediate(Dummy):
    """Has a worker, and returns when a task has ended."""

    workers = []

    def enqueue(self, task, args, kwargs):
        """Pushes a task and waits for its end."""
        result = super().enqueue(task, args, kwargs)
        if not self.workers:
            self.workers.append(self.worker({"default": 1}, grace=1))
            self.workers[0].start()
        while not result.is_finished:
            time.sleep(0.01)
            result.refresh()
        return result


class Runner(DiscoverRunner):
    """Leaves out the tests of the list."""

    def build_suite(self, *args, **kwargs):
        """Builds the suite and marks them."""
        suite = super().build_suite(*args, **kwargs)
        for test in suite:
            reason = LEFT_OUT.get(".".join(test.id().split(".")[-2:]))
            if reason:
                test.setUp = lambda test=test, reason=reason: test.skipTest(reason)
        return suite


dummy.DummyBackend, immediate.ImmediateBackend = Dummy, Immediate
try:
    failures = Runner(verbosity=1).run_tests([f"tasks.test_{name}" for name in sys.argv[1:]])
finally:
    server.close()
sys.exit(bool(failures))
