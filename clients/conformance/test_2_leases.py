"""Leases: they are kept while a handler runs, and a handler that has lost its message is told why."""

import shutil
import time

import pytest

from server import PATIENCE, Clock, eventually


def test_leases_are_kept_as_long_as_handlers_run(server, start, give):
    worker = start("q=4", lease=400)
    ids = [give("q", "hang", ms=1600) for _ in range(4)]
    for id in ids:
        worker.wait_for("end", id=id, how="ok")
    assert {said["attempt"] for said in worker.said("start")} == {1}
    assert len(worker.said("start")) == 4
    eventually("all are acked", lambda: server.info("q")["acked"] == 4)


def test_leases_of_a_queue_are_extended_with_one_command_at_half_time(server, start, give):
    worker = start("q=8", lease=1000)
    for _ in range(8):
        give("q", "hang", ms=60_000)
    worker.wait_for_all(8, "start")
    server.clear_calls()
    begun = time.monotonic()
    eventually("leases are extended", lambda: server.calls("dq.mextend") >= 4)
    assert time.monotonic() - begun > 1.2
    assert server.calls("dq.extend") == 0


def test_a_handler_that_blocks_the_event_loop_keeps_its_message(server, start, give):
    worker = start("q=2", lease=1000)
    id = give("q", "spin", ms=3500)
    worker.wait_for("end", id=id, how="ok")
    assert len(worker.said("start")) == 1
    eventually("it is acked", lambda: server.info("q")["acked"] == 1)
    assert not worker.said("lost")


@pytest.mark.parametrize("reason", ["cancelled", "replaced", "buried", "purged", "released"])
def test_a_handler_is_told_at_once_that_its_message_was_taken(server, start, give, reason):
    worker = start("q=1", lease=30_000, name="w")
    id = give("q", "hang", "ID", "m", ms=60_000)
    worker.wait_for("start", id=id)
    _, [[name, *_]] = server.do("DQ.CONSUMERS", "q", 0)
    take = {
        "cancelled": ("DQ.CANCEL", "q", id),
        "replaced": ("DQ.PUSH", "q", "{}", "ID", id, "REPLACE", "DELAY", 60_000),
        "buried": ("DQ.BURY", "q", id),
        "purged": ("DQ.PURGE", "q"),
        "released": ("DQ.RELEASE", "q", name),
    }
    begun = time.monotonic()
    server.do(*take[reason])
    worker.wait_for("lost", 0.5, id=id, reason=reason)
    assert time.monotonic() - begun < 0.5 * PATIENCE
    worker.wait_for("end", id=id, how="lost")


def test_the_outcome_of_a_lost_message_is_discarded(server, start, give):
    worker = start("q=1", lease=30_000)
    id = give("q", "spin", "ID", "m", ms=1500)
    worker.wait_for("start", id=id)
    server.do("DQ.PUSH", "q", '{"do": "hang", "ms": 60000}', "ID", id, "REPLACE")
    worker.wait_for("end", id=id, how="lost")
    worker.wait_for_all(2, "start", id=id)
    assert server.message("q", id)["attempt"] == 1
    assert server.info("q")["acked"] == 0


def test_a_handler_is_told_by_the_clock_of_its_worker_if_the_server_is_away(server, start, give):
    worker = start("q=1", lease=1000)
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    server.signal("STOP")
    begun = time.monotonic()
    try:
        worker.wait_for("lost", 2.0, id=id, reason="lease")
        passed = time.monotonic() - begun
        worker.wait_for("end", 0.5, id=id, how="lost")
    finally:
        server.signal("CONT")
    assert 0.4 < passed < 1.4 * PATIENCE


def test_a_handler_that_outlives_the_longest_lease_is_told(server, start, give):
    server.do("DQ.CREATE", "q", "MAXLEASE", 1000)
    worker = start("q=1", lease=600)
    id = give("q", "hang", ms=60_000)
    worker.wait_for("lost", 3.0, id=id, reason="lease")
    worker.wait_for("start", id=id, attempt=2)
    assert server.calls("dq.mextend") < 12, "what cannot be extended further is not asked for again and again"
    first, second = worker.said("start", id=id)[:2]
    assert 900 < second["at"] - first["at"] < 1800 * PATIENCE
    assert worker.said("lost")[0]["at"] <= first["at"] + 1300 * PATIENCE


def test_the_lease_of_the_queue_counts_if_no_other_is_given(server, start, give):
    server.do("DQ.CREATE", "q", "LEASE", 7000)
    worker = start("q=1")
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    fields = server.message("q", id)
    left = fields["deadline"] - time.time() * 1000
    assert 5000 < left <= 7000


def test_a_queues_own_short_lease_is_kept_from_the_start(server, start, give):
    server.do("DQ.CREATE", "q", "LEASE", 1000)
    ids = [give("q", "hang", ms=3500) for _ in range(2)]
    worker = start("q=2", ready=False)
    for id in ids:
        worker.wait_for("end", id=id, how="ok")
    eventually("both are acked", lambda: server.info("q")["acked"] == 2)
    assert server.info("q")["delivered"] == 2


def test_the_lease_of_a_message_counts(server, start, give):
    server.do("DQ.CREATE", "q", "LEASE", 60_000)
    worker = start("q=2")
    id = give("q", "hang", "LEASE", 1000, ms=3500)
    worker.wait_for("start", id=id)
    assert server.message("q", id)["deadline"] - time.time() * 1000 <= 1000
    worker.wait_for("end", id=id, how="ok")
    eventually("it is acked", lambda: server.info("q")["acked"] == 1)
    assert server.info("q")["delivered"] == 1


def test_a_lease_of_the_queue_that_was_changed_counts(server, start, give):
    server.do("DQ.CREATE", "q", "LEASE", 6000)
    worker = start("q=2")
    id = give("q", "hang", ms=9000)
    worker.wait_for("start", id=id)
    server.do("DQ.ALTER", "q", "LEASE", 2000)
    other = give("q", "hang", ms=5000)
    worker.wait_for("start", id=other)
    assert server.message("q", other)["deadline"] - time.time() * 1000 <= 2000
    worker.wait_for("end", id=other, how="ok")
    worker.wait_for("end", 15.0, id=id, how="ok")
    eventually("both are acked", lambda: server.info("q")["acked"] == 2)
    assert server.info("q")["delivered"] == 2


@pytest.mark.skipif(not shutil.which("cc"), reason="it needs a C compiler")
@pytest.mark.parametrize("hours", [1, -1])
def test_leases_are_kept_after_the_clock_of_the_server_was_set(server, start, give, tmp_path, hours):
    clock = Clock(tmp_path)
    server.kill9()
    server.environment = clock.environment
    server.boot()
    server.do("DQ.CREATE", "q", "LEASE", 1500)
    worker = start("q=1")
    eventually("it waits", lambda: server.admin.info("clients")["blocked_clients"] == 1)
    clock.set(hours)
    for id in [give("q", "hang", ms=3500), give("q", "ok")]:
        worker.wait_for("end", id=id, how="ok")
    assert {said["attempt"] for said in worker.said("start")} == {1}


def test_a_handler_is_told_before_another_worker_begins_although_its_pop_was_late(server, proxy, start, give):
    """The lease began when the server delivered the message, not when the worker heard of it."""
    worker = start("q=1", url=proxy.url, lease=4000)
    eventually("it waits", lambda: server.admin.info("clients")["blocked_clients"] == 1)
    for word in (b"DQ.POP", b"DQ.ACKPOP"):
        proxy.delay_the_reply_to(word, 1.2)
    worker.wait_for("end", 15.0, id=give("q", "ok"), how="ok")  # Only then the connection is the slow one.
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", 15.0, id=id)
    proxy.fall_silent(for_all=True)
    end = server.message("q", id)["deadline"]
    lost = worker.wait_for("lost", 7.0, id=id, reason="lease")
    assert lost["at"] <= end + 500 * PATIENCE
    start("q=1", lease=4000).wait_for("start", 7.0, id=id, attempt=2)


def test_a_handler_is_told_before_the_longest_lease_is_over(server, start, give):
    server.do("DQ.CREATE", "q", "MAXLEASE", 10_000)
    worker = start("q=3", lease=10_000)
    ends = {}
    for _ in range(3):  # A busy machine may delay one of them.
        id = give("q", "hang", ms=60_000)
        worker.wait_for("start", id=id)
        ends[id] = server.message("q", id)["deadline"]
    late = [worker.wait_for("lost", 12.0, id=id, reason="lease")["at"] - end for id, end in ends.items()]
    assert -1000 <= min(late) and max(late) <= 500 * PATIENCE
    # A hundredth of the time since the last extension would be twice as late.
    assert min(late) <= 25 * PATIENCE


def test_messages_of_a_worker_that_died_are_delivered_again(server, start, give):
    worker = start("q=1", lease=500)
    id = give("q", "exit")
    worker.wait_for("start", id=id)
    assert worker.exit_code() != 0
    eventually("its lease is over", lambda: server.message("q", id)["state"] == b"ready")
