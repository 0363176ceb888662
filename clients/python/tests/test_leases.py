"""The ends of leases, by the clock of the worker."""

import threading
import types

import pytest
from server import eventually

from dq_client.worker.lane import Lane
from dq_client.worker.reporter import Reporter


@pytest.mark.parametrize("slow", [0.0, 0.7])
def test_an_extension_is_as_long_as_the_server_says(monkeypatch, slow):
    now = [0.0]
    monkeypatch.setattr("dq_client.worker.reporter.time.monotonic", lambda: now[0])
    lane = types.SimpleNamespace(lease_ms=10_000, lease=10.0)
    # The server's clock is at 1,000,000 when that of the worker is at 0.
    delivery = types.SimpleNamespace(deadline=1_010_000, heard=0.0, end=10.0, due=5.0)
    reporter = Reporter(None, lane)

    def extend(sent, took, deadline):
        now[0] = sent + took
        reporter._extended([delivery], [deadline], sent)
        return delivery.end

    # A command that took its time tells of a later end than was counted on, and the next one is not cut.
    assert extend(5, slow, 1_015_000 + int(slow * 1000)) == 15
    assert extend(10, 0, 1_020_000) == 20
    # No delivery lasts longer than 22 seconds.
    assert extend(15, 0, 1_022_000) == 22


def test_what_extends_leases_learns_of_a_shorter_one():
    worker = types.SimpleNamespace(closed=False)
    lane = Lane(worker, "q", 1, None)
    lane.held[b"long"] = types.SimpleNamespace(due=float("inf"))
    thread = threading.Thread(target=Reporter(worker, lane)._next, daemon=True)
    thread.start()
    eventually("it waits", lambda: lane.report._waiters)
    lane.held[b"short"] = types.SimpleNamespace(due=0.0)
    lane.learn({"lease": 1000})
    thread.join(10)
    assert not thread.is_alive()
