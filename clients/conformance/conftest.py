"""What each test gets: a client, a server of its own, and ways to start workers and to give them work."""

import json

import pytest

from program import Program, clients, push
from proxy import Proxy
from server import Server


def pytest_addoption(parser):
    parser.addoption("--client", action="append", help="drive this client only: python, node, go, rust")


def pytest_generate_tests(metafunc):
    if "client" in metafunc.fixturenames:
        metafunc.parametrize("client", metafunc.config.getoption("client") or clients())


@pytest.fixture
def server():
    """A server that runs."""
    server = Server()
    try:
        yield server.boot()
    finally:
        server.close()


@pytest.fixture
def proxy(server):
    """A network in front of the server."""
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def start(client, server):
    """Starts workers; they are killed at the end. Each is given the time to consume unless ``ready`` is false."""
    programs = []

    def start(*queues, url=None, ready=True, **options):
        program = Program(client, url or server.url, *queues, **options)
        programs.append(program)
        return program.ready() if ready else program

    yield start
    for program in programs:
        program.kill9()


@pytest.fixture
def give(server):
    """Pushes a message that asks for something. Returns its id."""

    def give(queue, do, *words, **fields):
        return server.do("DQ.PUSH", queue, json.dumps(dict(fields, do=do)), *words).decode()

    return give


@pytest.fixture
def produce(client, server):
    """Pushes messages with the client."""

    def produce(*messages, url=None):
        return push(client, url or server.url, *messages)

    return produce
