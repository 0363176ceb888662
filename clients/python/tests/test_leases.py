"""The ends of leases, by the clock of the worker."""

import threading
import time
import types

import pytest
from server import eventually

from dq_client.worker.lane import Lane
from dq_client.worker.reporter import Reporter


@pytest.fixture
def lane():
    """A lane of a worker that does nothing."""
    clock = types.SimpleNamespace(note=lambda instant: None)
    return Lane(types.SimpleNamespace(closed=False, clock=clock, consumer=b"w"), "q", 1, 10_000)


@pytest.mark.parametrize("slow", [0.0, 0.7])
def test_an_extension_is_as_long_as_the_server_says(monkeypatch, lane, slow):
    """A user without the right to TIME counts leases from the commands that begin them."""
    now = [0.0]
    monkeypatch.setattr("dq_client.worker.lane.time.monotonic", lambda: now[0])
    # The server's clock is at 1,000,000 when that of the worker is at 0.
    delivery = types.SimpleNamespace(deadline=1_010_000, heard=0.0, end=10.0, due=5.0)

    def extend(sent, took, deadline):
        now[0] = sent + took
        lane.extended(delivery, deadline, sent)
        return delivery.end

    # A command that took its time tells of a later end than was counted on, and the next one is not cut.
    assert extend(5, slow, 1_015_000 + int(slow * 1000)) == pytest.approx(15)
    assert extend(10, 0, 1_020_000) == pytest.approx(20)
    # No delivery lasts longer than 22 seconds.
    assert extend(15, 0, 1_022_000) == pytest.approx(22)
    assert extend(16, 0, 1_022_000) == pytest.approx(22)
    assert delivery.due == float("inf"), "what cannot be extended further is not asked for again"


def test_what_extends_leases_learns_of_a_shorter_one(lane):
    lane.received([[b"long", b"x", 1, b"r1", {}]], time.monotonic())
    reporter = Reporter(lane.worker, lane)
    thread = threading.Thread(target=reporter._next, daemon=True)
    thread.start()
    eventually("it waits", lambda: lane.report._waiters)
    lane.lease_ms = 10
    lane.received([[b"short", b"x", 1, b"r2", {}]], time.monotonic())
    thread.join(4)
    assert not thread.is_alive()
