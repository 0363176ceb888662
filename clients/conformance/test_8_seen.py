"""Seen: operators see who holds what."""

import contextlib
import os
import socket

import pytest

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


@pytest.mark.parametrize("hook", ["fail", "block"])
def test_hooks_that_fail_or_block_harm_no_message(server, start, give, hook):
    worker = start("q=2", lease=1000, environment=dict(os.environ, DQ_HOOK=hook))
    held = give("q", "hang", ms=2500)
    worker.wait_for("start", id=held)
    id = give("q", "fail", "RETRIES", 0, text="no luck")
    worker.wait_for("end", id=held, how="ok")
    eventually("it is acked", lambda: server.info("q")["acked"] == 1)
    assert len(worker.said("start", id=held)) == 1, "its lease was kept"
    assert server.message("q", id)["state"] == b"dead"
    later = give("q", "ok")
    worker.wait_for("end", id=later, how="ok")
    assert worker.stop()[0] == 0
