"""A server for each test, as the conformance suite starts them, and an app on it."""

import asyncio
import pathlib
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))

from server import Server, eventually

import dq_client


@pytest.fixture
def server():
    """A server that runs."""
    server = Server()
    try:
        yield server.boot()
    finally:
        server.close()


@pytest.fixture
def app(server):
    """An app on the server."""
    return dq_client.App(server.url)


@pytest.fixture
def working():
    """Runs workers in threads, with coroutines in a loop of their own, until the test ends."""
    workers = []

    def working(app, **options):
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        worker = dq_client.Worker(app, **dict({"grace": 1}, **options))
        workers.append(worker)
        worker.start(loop)
        eventually("it is ready", lambda: worker.ready)
        return worker

    yield working
    for worker in workers:
        worker.stop()
