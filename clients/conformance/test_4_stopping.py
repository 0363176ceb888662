"""Stopping: nothing is dropped, nothing is held, and it does not take long."""

import pathlib
import re
import time

import pytest

from proxy import Proxy
from server import PATIENCE, eventually


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_an_idle_worker_is_gone_within_a_second(server, start, name):
    passed = []
    for _ in range(3):  # A busy machine may delay one of them.
        worker = start("q=4", "r=4")
        eventually("it waits", lambda: server.admin.info("clients")["blocked_clients"] == 2)
        begun = time.monotonic()
        worker.signal(name)
        assert worker.exit_code() == 0
        passed.append(time.monotonic() - begun)
        worker.wait_for("stopped")
    assert min(passed) < 1.0


@pytest.mark.parametrize("new_ones", ["work", "are dead too"])
def test_an_idle_worker_whose_connections_are_dead_stops_soon(server, start, new_ones):
    passed = []
    for _ in range(3):  # A busy machine may delay one of them.
        proxy = Proxy(server.port)
        worker = start("q=4", url=proxy.url)
        eventually("it waits", lambda: server.admin.info("clients")["blocked_clients"] == 1)
        proxy.fall_silent(for_all=new_ones == "are dead too")
        code, seconds = worker.stop()
        assert code == 0
        passed.append(seconds)
        proxy.close()
        server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert min(passed) < 1.5 * PATIENCE


def test_running_messages_get_their_time(server, start, give):
    worker = start("q=2", grace=10_000)
    id = give("q", "hang", ms=1000)
    worker.wait_for("start", id=id)
    waiting = give("q", "ok", "DELAY", 200)
    worker.signal("TERM")
    worker.wait_for("end", id=id, how="ok")
    assert worker.exit_code() == 0
    assert server.info("q")["acked"] == 1
    assert server.message("q", waiting)["state"] == b"ready"
    assert not worker.said("start", id=waiting)


def test_acks_during_the_stop_do_not_wait_for_its_end(server, start, give):
    # One handler has no message, so that a pop waits at the stop.
    worker = start("q=3", grace=60_000, lease=240_000)
    short, long = give("q", "hang", ms=500), give("q", "hang", ms=60_000)
    worker.wait_for("start", id=short)
    worker.wait_for("start", id=long)
    worker.signal("TERM")
    worker.wait_for("end", id=short, how="ok")
    eventually("it is acknowledged", lambda: server.info("q")["acked"] == 1)
    assert worker.is_alive()


@pytest.mark.parametrize("lease", [400, 30_000])
def test_leases_are_kept_during_the_stop(server, start, give, lease):
    worker = start("q=1", grace=10_000, lease=lease)
    id = give("q", "hang", ms=1500)
    worker.wait_for("start", id=id)
    worker.signal("TERM")
    worker.wait_for("end", id=id, how="ok")
    assert worker.exit_code() == 0
    assert server.do("DQ.LEN", "q") == 0


def test_the_log_says_what_went_back(server, start, give):
    worker = start("q=1", grace=0)
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    assert worker.stop()[0] == 0
    said = re.compile("stopped; 1 messages? went back")
    eventually("it is logged", lambda: [line for line in worker.errors if said.search(line)])


def test_a_stop_that_cannot_report_says_so_and_ends_with_another_code(client, proxy, start, give):
    worker = start("q=1", grace=0, url=proxy.url)
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    proxy.fall_silent(for_all=True)
    worker.signal("TERM")
    assert worker.exit_code(20) == (3 if client == "dqctl" else 1)
    said = re.compile("could not report 1 messages?")
    eventually("it is logged", lambda: [line for line in worker.errors if said.search(line)])


def test_messages_that_take_too_long_are_told_and_given_back(server, start, give):
    worker = start("q=2", grace=300)
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    worker.signal("TERM")
    worker.wait_for("lost", id=id, reason="stopping")
    worker.wait_for("end", id=id, how="lost")
    assert worker.exit_code() == 0
    fields = server.message("q", id)
    assert (fields["state"], fields["attempt"]) == (b"ready", 0)


def test_a_busy_handler_does_not_prevent_the_stop(server, start, give):
    worker = start("q=3", grace=200)
    id = give("q", "spin", ms=60_000)
    worker.wait_for("start", id=id)
    begun = time.monotonic()
    worker.signal("TERM")
    assert worker.exit_code() == 0
    assert time.monotonic() - begun < 4.0 * PATIENCE
    fields = server.message("q", id)
    assert (fields["state"], fields["attempt"]) == (b"ready", 0)


def test_a_slow_server_still_hears_what_is_given_back(server, start, give):
    worker = start("q=2", grace=200)
    id = give("q", "spin", ms=60_000)
    worker.wait_for("start", id=id)
    server.do("CLIENT", "PAUSE", 3000, "ALL")
    worker.signal("TERM")
    assert worker.exit_code() == 0
    fields = server.message("q", id)
    assert (fields["state"], fields["attempt"]) == (b"ready", 0)


def test_messages_that_were_not_begun_are_given_back(server, start, give):
    """While a handler occupies the only event loop, those behind it have not begun."""
    worker = start("q=4", grace=200)
    busy = give("q", "spin", ms=1500)
    worker.wait_for("start", id=busy)
    others = [give("q", "ok") for _ in range(3)]
    worker.signal("TERM")
    assert worker.exit_code() == 0
    begun = {said["id"] for said in worker.said("start")}
    for id in others:
        fields = server.message("q", id)
        assert id in begun or (fields["state"], fields["attempt"]) == (b"ready", 0)
    assert server.do("DQ.LEN", "q", "inflight") == 0


def test_a_second_signal_ends_at_once(server, start, give):
    worker = start("q=1", grace=60_000)
    give("q", "hang", ms=60_000)
    worker.wait_for("start")
    worker.signal("TERM")
    time.sleep(0.3)  # The second one is another signal only if the first one was handled.
    assert worker.is_alive()
    begun = time.monotonic()
    worker.signal("TERM")
    assert worker.exit_code() != 0
    assert time.monotonic() - begun < 1.0 * PATIENCE


def test_a_pop_that_arrives_during_the_stop_goes_back(server, start, give):
    for _ in range(4):
        worker = start("q=1", lease=60_000)
        worker.signal("TERM")
        id = give("q", "ok")
        assert worker.exit_code() == 0
        fields = server.message("q", id)
        assert not fields or (fields["state"], fields["attempt"]) == (b"ready", 0)
        server.do("DQ.PURGE", "q")


def test_a_worker_stops_if_its_server_is_away(server, start, give):
    worker = start("q=1", grace=500)
    server.kill9()
    worker.signal("TERM")
    assert worker.exit_code() == 0


@pytest.mark.parametrize("id", ["none", "0"])
def test_a_stop_acknowledges_no_message_of_any_id(server, start, id):
    server.do("DQ.PUSH", "q", "x", "ID", id)
    server.do("DQ.POP", "q")
    worker = start("q=1")
    eventually("it waits", lambda: server.admin.info("clients")["blocked_clients"] == 1)
    assert worker.stop()[0] == 0
    assert server.info("q")["inflight"] == 1


@pytest.mark.parametrize("waits", ["for messages", "for the pause to end"])
def test_a_worker_stops_while_writes_are_paused(server, start, give, waits):
    """Some servers end if a client whose command is put off is unblocked."""

    def is_waiting():
        return any("b" in one["flags"] and "pop" in one["cmd"].lower() for one in server.admin.client_list())

    if waits == "for messages":
        worker = start("q=2")
        eventually("it waits", is_waiting)
    else:
        id = give("q", "ok")
    server.do("CLIENT", "PAUSE", 60_000, "WRITE")
    if waits == "for the pause to end":
        worker = start("q=2", ready=False)
        eventually("its pop is put off", is_waiting)
    code, seconds = worker.stop()
    assert code == 0 and seconds < 3 * PATIENCE
    server.do("CLIENT", "UNPAUSE")
    if waits == "for messages":
        id = give("q", "ok")
    start("q=1").wait_for("end", id=id, how="ok")
    assert server.info("q")["delivered"] == 1


def test_nothing_of_a_killed_worker_is_left(server, start):
    worker = start("q=1")
    tasks = pathlib.Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    worker.kill9()

    def is_left(process):
        try:
            return "\nState:\tZ" not in pathlib.Path(f"/proc/{process}/status").read_text()
        except FileNotFoundError:
            return False

    eventually("all are gone", lambda: not any(map(is_left, tasks)))
