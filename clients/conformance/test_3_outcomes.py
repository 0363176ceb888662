"""Outcomes: what becomes of a message when its handler ends."""

import json
import re

import pytest

from server import eventually

# The clients in which a handler may return a value of any type, and ask for a retry after a value of any type.
UNTYPED = ("python", "node", "php", "ruby")


def test_success_acks(server, start, give):
    worker = start("q=1")
    id = give("q", "ok")
    worker.wait_for("end", id=id, how="ok")
    eventually("it is acked", lambda: server.info("q")["acked"] == 1)
    assert server.do("DQ.LEN", "q") == 0


def test_success_acks_together_with_the_next_pop(server, start, give):
    for _ in range(50):
        give("q", "ok")
    server.clear_calls()
    worker = start("q=1")
    worker.wait_for_all(50, "end", how="ok")
    eventually("all are acked", lambda: server.info("q")["acked"] == 50)
    assert server.calls("dq.ackpop") >= 40
    assert server.calls("dq.ack") <= 10


@pytest.mark.parametrize("result, stored", [("grüß", "grüß".encode()), ("123", b"123"), ({"a": [1]}, None), (7, b"7")])
def test_a_result_is_kept(server, start, give, result, stored):
    worker = start("q=1")
    id = give("q", "result", "RETAIN", 60_000, result=result)
    worker.wait_for("end", id=id, how="ok")
    kept = eventually("it is done", lambda: server.message("q", id).get("result"))
    assert kept == stored if stored else json.loads(kept) == result


@pytest.mark.parametrize("retain", [60_000, 0])
@pytest.mark.parametrize("do", ["result", "no-result"])
def test_a_result_that_cannot_be_kept_repeats_no_work(client, server, start, give, do, retain):
    if do == "no-result" and client not in UNTYPED:
        pytest.skip("its results are bytes")
    worker = start("q=1")
    id = give("q", do, "RETAIN", retain, result="x" * 65_537)
    worker.wait_for("end", id=id, how="ok")
    eventually("it is completed", lambda: server.info("q")["acked"] == 1)
    fields = server.message("q", id)
    assert fields["state"] == b"done" and not fields.get("result") if retain else not fields
    eventually("the log has the reason", lambda: [line for line in worker.errors if "result" in line])
    assert worker.stop()[0] == 0
    assert len([line for line in worker.errors if "result" in line]) == 1, worker.errors
    assert server.info("q")["delivered"] == 1


def test_a_failure_is_retried_with_its_error(server, start, give):
    server.do("DQ.CREATE", "q", "BACKOFF", 300, 300)
    worker = start("q=1")
    id = give("q", "fail", text="the düse is blocked")
    worker.wait_for("end", id=id, how="fail")
    fields = eventually("it failed", lambda: "error" in (said := server.message("q", id)) and said)
    assert "the düse is blocked" in fields["error"].decode()
    first, second = worker.wait_for_all(2, "start", id=id)[:2]
    assert second["attempt"] == 2
    assert second["at"] - first["at"] >= 295


@pytest.mark.parametrize("do", ["fail", "reject"])
@pytest.mark.parametrize("before", ["", "x"])
def test_errors_end_with_a_character(server, start, give, do, before):
    worker = start("q=1")
    id = give("q", do, "RETRIES", 0, text=before + "ü" * 5000)
    worker.wait_for("end", id=id)
    fields = eventually("it is dead", lambda: (said := server.message("q", id))["state"] == b"dead" and said)
    assert "üüü" in fields["error"].decode("utf-8")  # dqctl keeps the end


def test_a_retry_waits_as_long_as_the_handler_says(server, start, give):
    worker = start("q=1")
    id = give("q", "retry", after=400, text="busy")
    worker.wait_for("end", id=id, how="retry")
    first, second = worker.wait_for_all(2, "start", id=id)[:2]
    assert 395 <= second["at"] - first["at"] < 1000
    assert second["attempt"] == 2


@pytest.mark.parametrize("after", ["30", "soon", "NaN", "Infinity", -5, 5e12, 1e300])
def test_a_retry_after_that_is_no_time_is_a_failure(client, server, start, give, after):
    if client not in UNTYPED and (isinstance(after, str) or client == "rust" and after < 0):
        pytest.skip("its times have a type")
    server.do("DQ.CREATE", "q", "BACKOFF", 300, 300)
    worker = start("q=1")
    id = give("q", "retry", after=after, text="busy")
    worker.wait_for("end", id=id)
    fields = eventually("it failed", lambda: "error" in (said := server.message("q", id)) and said)
    assert re.search("(?i)after|delay", fields["error"].decode())
    worker.wait_for("end", id=give("q", "ok"), how="ok")
    first, second = worker.wait_for_all(2, "start", id=id)[:2]
    assert second["attempt"] == 2
    assert second["at"] - first["at"] >= 295


def test_a_rejected_message_is_dead(server, start, give):
    worker = start("q=1")
    id = give("q", "reject", text="no address")
    worker.wait_for("end", id=id, how="reject")
    fields = eventually("it is dead", lambda: (said := server.message("q", id))["state"] == b"dead" and said)
    assert fields["reason"] == b"rejected"
    assert "no address" in fields["error"].decode()


def test_a_time_limit_fails(server, start, give):
    worker = start("q=2", time_limit=300)
    id = give("q", "hang", "RETRIES", 0, ms=60_000)
    worker.wait_for("end", 2.0, id=id, how="fail")
    fields = eventually("it is dead", lambda: (said := server.message("q", id))["state"] == b"dead" and said)
    assert b"time" in fields["error"].lower()
    quick = give("q", "hang", ms=50)
    worker.wait_for("end", id=quick, how="ok")


@pytest.mark.parametrize("payload", ["not JSON", "[]", "7", b"\xff\xfe"])
def test_what_cannot_be_decoded_is_retried(server, start, payload):
    assert "JSON" in retried(server, start("tasks=1"), payload), "the error says what was expected"


@pytest.mark.parametrize(
    "payload",
    [
        '{"card": "4711-0815", ',
        '"4711-0815"',
        "47110815",
        '{"do": "fail", "text": "no", "times": 4711.0815}',
        '{"do": "fail", "text": "no", "times": "4711-0815"}',
    ],
)
def test_errors_show_nothing_of_the_payload(server, start, payload):
    worker = start("tasks=1")
    error = retried(server, worker, payload)
    assert "4711" not in error
    assert not any("4711" in line for line in worker.errors)


def test_a_kind_of_work_that_is_not_known_is_retried(server, start):
    worker = start("tasks=1")
    assert "dance" in retried(server, worker, '{"do": "dance", "task": "dance", "name": "dance"}')
    eventually("the log names it", lambda: any("dance" in line for line in worker.errors))


def retried(server, worker, payload):
    """Pushes a message that no handler can begin with. Returns its error, with which it waits for its second
    attempt."""
    server.do("DQ.CREATE", "tasks", "BACKOFF", 60_000, 60_000)
    id = server.do("DQ.PUSH", "tasks", payload).decode()
    fields = eventually("it failed", lambda: "error" in (said := server.message("tasks", id)) and said)
    assert fields["state"] == b"delayed" and fields["attempt"] == 1
    assert fields["due"] - fields["created"] >= 60_000, "the backoff of the queue applies"
    return fields["error"].decode()


@pytest.mark.parametrize("do, attempts", [("fail", 2), ("reject", 1)])
def test_the_log_names_what_failed_and_says_when_it_is_dead(server, start, give, do, attempts):
    server.do("DQ.CREATE", "orders", "BACKOFF", 50, 50)
    worker = start("orders=1")
    id = give("orders", do, "RETRIES", 1, text="no oven")
    eventually("it is dead", lambda: server.message("orders", id)["state"] == b"dead")
    lines = eventually(
        "the log has it", lambda: len(found := [line for line in worker.errors if id in line]) == attempts and found
    )
    for attempt, line in enumerate(lines, 1):
        assert "orders" in line and "no oven" in line and re.search(rf"attempt\W+{attempt}\b", line)
        assert ("now dead" in line) == (attempt == attempts)
