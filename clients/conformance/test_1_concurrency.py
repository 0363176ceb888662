"""Concurrency: a worker never holds more messages than it works on."""

import time

from server import eventually


def test_it_holds_no_more_messages_than_it_works_on(server, start, give):
    for _ in range(12):
        give("q", "hang", ms=150)
    worker = start("q=3")
    held = []

    def all_are_done():
        assert worker.is_alive()
        held.append(server.info("q")["inflight"])
        return len(worker.said("end")) == 12

    eventually("all messages are done", all_are_done)
    assert max(held) == 3
    worker.wait_for_all(12, "end", how="ok")


def test_it_works_on_eight_messages_by_default(server, start, give):
    for _ in range(10):
        give("q", "hang", ms=60_000)
    start("q").wait_for_all(8, "start")
    assert server.info("q")["inflight"] == 8


def test_it_pops_only_for_free_places(server, start, give):
    for _ in range(5):
        give("q", "hang", ms=60_000)
    worker = start("q=2")
    worker.wait_for_all(2, "start")
    assert server.do("DQ.LEN", "q", "ready") == 3
    id = worker.said("start")[0]["id"]
    server.do("DQ.CANCEL", "q", id)
    worker.wait_for_all(3, "start")
    assert server.do("DQ.LEN", "q", "ready") == 2
    assert server.do("DQ.LEN", "q", "inflight") == 2


def test_a_slow_message_stops_nothing_else(server, start, give):
    slow = give("q", "hang", ms=60_000)
    other = give("r", "hang", ms=60_000)
    worker = start("q=2", "r=1")
    worker.wait_for("start", id=slow)
    worker.wait_for("start", id=other)
    quick = [give("q", "ok") for _ in range(20)]
    for id in quick:
        worker.wait_for("end", id=id, how="ok")
    assert not worker.said("end", id=slow)


def test_a_delayed_message_comes_when_it_is_due(server, start, give):
    worker = start("q=1")
    id = give("q", "ok", "DELAY", 300)
    due = server.message("q", id)["due"]
    started = worker.wait_for("start", id=id)
    assert due <= started["at"] <= due + 250
    eventually("it is acked", lambda: server.do("DQ.LEN", "q") == 0)
    assert time.time() * 1000 >= due
