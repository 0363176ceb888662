"""kombu's own tests of transports, on dq://. KOMBU_SOURCE is its source distribution; celery_versions.sh fetches and
runs it.

What is left out of ``t/integration/common.py``: ``BaseTimeToLive``, because messages have no time to live for kombu (a
worker of Celery looks at the ``expires`` of a task itself). ``t/unit/transport/virtual`` tests the base classes and no
transport. ``BasePriority`` expects one call of ``drain_events`` to deliver all that is there, as that of AMQP does;
kombu has other tests for its Redis transport, which delivers one. Here a connection calls it until nothing comes.
"""

import os
import socket
import sys

import celery_worker  # noqa: F401
import kombu
import pytest
from server import Server

import dq_client.celery  # noqa: F401

sys.path.insert(0, os.environ["KOMBU_SOURCE"])

from t.integration import common


@pytest.fixture(scope="module")
def server():
    """A server that runs."""
    server = Server()
    try:
        yield server.boot()
    finally:
        server.close()


@pytest.fixture(params=[{}, {"global_keyprefix": "prefixed:"}])
def connection(server, request):
    """A connection to the server."""
    server.do("FLUSHALL")
    return kombu.Connection(f"dq://127.0.0.1:{server.port}/0", transport_options=request.param)


@pytest.fixture
def invalid_connection():
    """A connection to nobody."""
    return kombu.Connection("dq://localhost:1")


@pytest.fixture
def failover_connection(server):
    """A connection with a second address, at which the server is."""
    server.do("FLUSHALL")
    return kombu.Connection(f"dq://localhost:1;dq://127.0.0.1:{server.port}/0")


class Patient(kombu.Connection):
    """A connection that delivers all that is there at once."""

    def drain_events(self, **options):
        """Calls it until nothing comes."""
        super().drain_events(**options)
        try:
            while True:
                super().drain_events(timeout=1)
        except socket.timeout:
            pass


class TestBasicFunctionality(common.BasicFunctionality):
    pass


class TestExchangeTypes(common.BaseExchangeTypes):
    pass


class TestMessage(common.BaseMessage):
    pass


class TestFailover(common.BaseFailover):
    pass


if hasattr(common, "BaseEventLoop"):  # since kombu 5.7

    class TestEventLoop(common.BaseEventLoop):
        pass


class TestPriority(common.BasePriority):
    @pytest.fixture
    def connection(self, server):
        """A connection whose calls deliver all that is there."""
        server.do("FLUSHALL")
        return Patient(f"dq://127.0.0.1:{server.port}/0")
