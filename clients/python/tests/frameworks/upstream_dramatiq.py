"""Fixtures with which Dramatiq's own tests run on our broker, and a list of the tests that are left out.

Its source distribution has the tests, but not their fixtures. versions.sh unpacks it and runs
``pytest -p upstream_dramatiq`` there. Those of its tests that are about RabbitMQ, results, limits, its command line and
other parts are not run: they need no broker, or another one.
"""

import contextlib
import pathlib
import sys
import types

import dramatiq
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "conformance"))

from server import Server

from dq_client.dramatiq import DqBroker


@contextlib.contextmanager
def worker(*args, **kwargs):
    """Runs a worker in this process."""
    worker = dramatiq.Worker(*args, **kwargs)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


# What the tests import from a file that the distribution lacks.
common = types.ModuleType("tests.common")
common.worker = worker
common.skip_on_windows = common.skip_on_pypy = common.skip_in_ci = lambda test: test
sys.modules["tests.common"] = common


_STUB = "it has join() of the stub broker raise what a message has raised"
_FIELDS = "it looks at fields of the stub broker"
_KEYS = "it looks at keys, scripts or fields of the broker for Redis"
LEFT_OUT = {
    "test_actors_can_be_assigned_time_limits": _STUB,
    "test_actor_messages_can_be_assigned_time_limits": _STUB,
    "test_actors_can_be_assigned_message_age_limits": _STUB,
    "test_actor_messages_can_be_assigned_message_age_limits": _STUB,
    "test_messages_belonging_to_missing_actors_are_rejected": _STUB,
    "test_workers_log_rate_limit_exceeded_errors_differently": _STUB,
    "test_actors_can_prioritize_work": "it has a worker prefetch everything, whatever it asks for",
    "test_actors_can_be_sent_messages": _FIELDS,
    "test_worker_handles_none_eta": _FIELDS,
    "test_worker_handles_non_numeric_eta_and_logs_warning": _FIELDS,
    "test_redis_unacked_messages_can_be_requeued": _KEYS,
    "test_redis_messages_can_be_dead_lettered": _KEYS,
    "test_redis_dead_lettered_messages_are_cleaned_up": _KEYS,
    "test_redis_messages_belonging_to_missing_actors_are_rejected": _KEYS,
    "test_redis_requeues_unhandled_messages_on_shutdown": _KEYS,
    "test_redis_requeues_unhandled_delay_messages_on_shutdown": _KEYS,
    "test_redis_consumer_ack_can_retry_on_connection_error": _KEYS,
    "test_redis_consumer_nack_can_retry_on_connection_error": _KEYS,
    "test_redis_join_race_condition": _KEYS,
    "test_redis_broker_can_connect_via_url": "it makes a broker for Redis",
    "test_redis_broker_can_connect_via_client": "it makes a broker for Redis",
    "test_redis_consumer_nack_does_not_raise_on_missing_id": "it nacks a message that no consumer has delivered",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.originalname in LEFT_OUT:
            item.add_marker(pytest.mark.skip(reason=LEFT_OUT[item.originalname]))


class Broker(DqBroker):
    """The stub broker of Dramatiq has one more option."""

    def join(self, queue_name, *, fail_fast=False, **options):
        super().join(queue_name, interval=10, **options)


@pytest.fixture(scope="session")
def server():
    server = Server()
    yield server.boot()
    server.close()


@pytest.fixture
def redis_broker(server):
    server.do("FLUSHALL")
    broker = Broker(url=server.url)
    dramatiq.set_broker(broker)
    broker.emit_after("process_boot")
    yield broker
    broker.close()


@pytest.fixture
def redis_worker(redis_broker):
    with worker(redis_broker, worker_timeout=100, worker_threads=32) as running:
        yield running


stub_broker = pytest.fixture(lambda redis_broker: redis_broker, name="stub_broker")
stub_worker = pytest.fixture(lambda redis_worker: redis_worker, name="stub_worker")
