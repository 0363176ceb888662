"""What each test gets: a client, a server of its own, and ways to start workers and to give them work."""

import json

import pytest

from program import Producer, Program, can_push, clients, push
from proxy import Proxy
from server import Server

# What a client does in another way.
NOT_OF = {
    "dqctl": {
        "test_it_works_on_eight_messages_by_default": "it works on one by default",
        "test_messages_of_a_worker_that_died_are_delivered_again": "the end of a command is not the end of the worker",
        "test_a_retry_waits_as_long_as_the_handler_says": "an exit code names no time",
        "test_a_retry_after_that_is_no_time_is_a_failure": "an exit code names no time",
        "test_a_checkpoint_waits_until_the_server_can_take_it": "a command stores no checkpoints",
        "test_a_failure_takes_a_checkpoint_along_that_is_not_stored": "a command stores no checkpoints",
        "test_hooks_that_fail_or_block_harm_no_message": "it has no hooks",
        "test_a_worker_has_a_name": "its name is always host:pid:dqctl",
        "test_later_deliveries_have_the_name_too": "its name is always host:pid:dqctl",
    },
}


def pytest_addoption(parser):
    parser.addoption("--client", action="append", help="drive this one only: python, node, go, rust, php, ruby, dqctl")


def pytest_collection_modifyitems(items):
    for item in items:
        if getattr(item, "callspec", None):
            differences = NOT_OF.get(item.callspec.params.get("client"), {})
            reason = differences.get(item.originalname) or differences.get(item.name)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


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

    if not can_push(client):
        pytest.skip("it does not push")

    def produce(*messages, url=None):
        return push(client, url or server.url, *messages)

    return produce


@pytest.fixture
def producer(client, server):
    """A producer that runs, and reaches the server directly."""
    if not can_push(client):
        pytest.skip("it does not push")
    producer = Producer(client, server.url)
    yield producer
    producer.close()
