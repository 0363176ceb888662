"""Seen: operators see who holds what."""

import contextlib
import socket

from program import Program
from server import Server, eventually


def test_a_worker_has_a_name(server, start, give):
    worker = start("q=2", name="blue")
    for _ in range(2):
        give("q", "hang", ms=60_000)
    worker.wait_for_all(2, "start")
    _, consumers = server.do("DQ.CONSUMERS", "q", 0)
    assert [consumer[:2] for consumer in consumers] == [[f"{socket.gethostname()}:{worker.pid}:blue".encode(), 2]]


def test_later_deliveries_have_the_name_too(server, start, give):
    worker = start("q=1", name="blue")
    quick = [give("q", "ok") for _ in range(5)]
    id = give("q", "hang", ms=60_000)
    for other in quick:
        worker.wait_for("end", id=other)
    worker.wait_for("start", id=id)
    assert server.message("q", id)["consumer"].endswith(b":blue")


def test_without_the_module_a_sentence_says_so(client):
    with contextlib.closing(Server(module=False)) as server:
        worker = Program(client, server.boot().url, "q=1")
        said = "the server has not loaded the module dq"
        eventually("the log has it", lambda: [line for line in worker.errors if said in line], 20)
        worker.kill9()
