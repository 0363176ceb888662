"""Calls each method of a queue with all its options, for the conformance suite, which looks at what the server gets."""

import argparse
import contextlib
import datetime
import pathlib
import sys

# The package is imported from the source tree if it is not installed.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "src"))

from dq_client import App


def main() -> None:
    """Calls them all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    queue = App(parser.parse_args().url).queue("q")
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    common = {"priority": 1, "retries": 1, "lease": 5, "group": "g", "headers": {"h": "1"}}
    each = {**common, "ttl": 5000, "replace": True, "later": True, "max_wait": 5, "retain": 5, "batch": "b"}
    queue.push_sync(b"x", id="m", at=soon, **each)
    queue.push_sync(b"x", id="m", delay=5, **each)
    queue.push_many_sync([b"x"], ids=["n"], at=soon, **each)
    queue.push_many_sync([b"x"], ids=["n"], delay=5, **each)
    past = {"attempt": 2, "error": "e", "checkpoint": b"c", "dead": True, "reason": "retries"}
    queue.push_sync(b"x", **past)
    queue.push_many_sync([b"x"], **past)
    with contextlib.suppress(TimeoutError):
        queue.push_and_wait_sync(b"x", timeout=0.001)
    queue.schedule_sync("s", b"x", every=60, offset=1, at=soon, until=soon, times=2, ttl=5, **common)
    queue.schedule_sync("s", b"x", cron="@daily", tz="UTC")
    queue.follow_sync("b", b"x", id="f", delay=5, **common)
    queue.batch_info_sync("b")
    queue.cancel_batch_sync("b")
    queue.cancel_sync("m")
    queue.reschedule_sync("n", at=soon, priority=1)
    queue.reschedule_sync("n", delay=5)
    queue.promote_sync(1, until=soon)
    queue.redrive_sync(1, delay=5, older=0, reason="expired")
    queue.redrive_sync(ids=["m"])
    queue.get_sync("m")
    queue.peek_sync("ready", 1, group="g")
    queue.len_sync("ready", group="g")
    queue.info_sync()
    for flow in ("in", "out", "all"):
        queue.pause_sync(5, flow=flow)
        queue.resume_sync(flow=flow)
    queue.pause_sync(5, group="g")
    queue.resume_sync(group="g")
    settings = {
        **{"lease": 5, "max_lease": 60, "delay": 1, "retries": 1, "backoff": (1, 60), "jitter": 10, "ttl": 60},
        **{"max_len": 5, "max_inflight": 5, "rate": (5, 1), "dead_len": 5, "dead_ttl": 60, "retain": 5, "done_len": 5},
        **{"max_payload": 100, "group_inflight": 2, "group_rate": (5, 1), "errors": 2, "group_order": "turn"},
        **{"dedupe": 5, "forward": "STREAM due TRIM 9", "dead_forward": "QUEUE dead"},
    }
    queue.declare_sync(**settings)
    queue.create_sync(**settings)
    queue.alter_sync(**settings)
    queue.purge_sync("ready", count=1, group="g", recurring=True, older=0)


if __name__ == "__main__":
    main()
