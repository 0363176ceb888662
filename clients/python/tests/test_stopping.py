"""Stopping, when the server or a proxy does not do what a worker asks for."""

import pytest
import redis
from server import Server, eventually

import dq_client


def pop_is(server, flag):
    """Returns whether a pop waits: ``b`` is the flag of a client that is blocked or put off."""
    return any(client["cmd"].lower() == "dq.pop" and flag in client["flags"] for client in server.admin.client_list())


def test_a_stop_while_writes_are_paused_harms_nobody(app, server, working):
    seen = []
    app.consumer("q")(seen.append)
    server.do("CLIENT", "PAUSE", 600_000, "WRITE")
    worker = working(app)
    eventually("the pop is put off", lambda: pop_is(server, "b"))
    worker.stop()
    assert server.admin.ping()
    eventually("its pop is gone", lambda: not pop_is(server, ""))
    server.do("CLIENT", "UNPAUSE")
    app.queue("q").push_sync(b"x")
    working(app)
    eventually("it is served", lambda: seen == [b"x"])


@pytest.mark.parametrize("missing", [["HELLO"], ["HELLO", "CLIENT"]])
def test_a_worker_needs_neither_hello_nor_client(working, missing, monkeypatch):
    monkeypatch.setattr("dq_client.worker.lane.BLOCK_MS", 600_000)  # No pop ends by itself.
    monkeypatch.setattr("dq_client.worker.fetcher.BLOCK_MS", 600_000)
    server = Server(*(word for command in missing for word in ("--rename-command", command, "")))
    server.admin = redis.Redis(port=server.port, protocol=2)
    try:
        app, seen = dq_client.App(server.boot().url + "?protocol=2"), []
        app.consumer("q")(seen.append)
        worker = working(app)
        app.queue("q").push_sync(b"x")
        eventually("it is served", lambda: seen == [b"x"])
        worker.stop()
        app.queue("q").push_sync(b"y", id="y")
        assert app.queue("q").get_sync("y")["state"] == "ready"
    finally:
        server.close()
