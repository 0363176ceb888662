"""Bytes and rights: names, ids and texts of any bytes, both protocols, users with few rights."""

import pytest
import redis

from server import PATIENCE, eventually

RIGHTS = "+dq.push +dq.pop +dq.ackpop +dq.ack +dq.nack +dq.complete +dq.mextend +dq.extend +dq.info"
ENDS_OF_WAITS = "+multi +exec +client|unblock"
CHANNEL = "+subscribe &__dq@0__:q"


@pytest.mark.parametrize("id", [b"\x00\xff\n\r", "ключ 🎈".encode(), b"x" * 255])
def test_ids_may_have_any_bytes(server, start, id):
    worker = start("q=1")
    server.do("DQ.PUSH", "q", '{"do": "ok"}', "ID", id)
    name = id.decode("utf-8", "surrogateescape")
    worker.wait_for("end", id=name, how="ok")
    eventually("it is acked", lambda: server.info("q")["acked"] == 1)


def test_the_names_of_queues_may_have_any_characters(server, start, give):
    worker = start("a=b ü{}*[=1", lease=60_000)
    id = give("a=b ü{}*[", "hang", ms=60_000)
    assert worker.wait_for("start", id=id)["queue"] == "a=b ü{}*["
    server.do("DQ.CANCEL", "a=b ü{}*[", id)
    worker.wait_for("lost", 0.5, id=id, reason="cancelled")


def test_long_errors_are_shortened(server, start, give):
    worker = start("q=1")
    id = give("q", "fail", text="ü" * 100_000)
    worker.wait_for("end", id=id, how="fail")
    fields = eventually("it failed", lambda: "error" in (said := server.message("q", id)) and said)
    assert "üüü" in fields["error"].decode("utf-8", "replace")


def test_a_payload_may_be_large(server, start, give):
    worker = start("q=1")
    id = give("q", "ok", text="x" * 5_000_000)
    worker.wait_for("end", id=id, how="ok")


def in_protocol(client, url, protocol):
    """Returns the URL with which a client speaks a protocol."""
    if client == "go" and protocol == 3:
        pytest.skip("redigo speaks RESP2")
    return url if client == "go" else f"{url}?protocol={protocol}"


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols_work(client, server, start, give, produce, protocol):
    url = in_protocol(client, server.url, protocol)
    [answer] = produce({"queue": "q", "payload": '{"do": "hang", "ms": 900}', "headers": {"a": "b"}}, url=url)
    worker = start("q=2", url=url, lease=400)
    assert worker.wait_for("start", id=answer["id"])["headers"]["a"] == "b"
    worker.wait_for("end", id=answer["id"], how="ok")
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    server.do("DQ.CANCEL", "q", id)
    worker.wait_for("lost", 0.5, id=id, reason="cancelled")


@pytest.fixture
def without_hello(client, server):
    """The URL of a server, or of a proxy in front of it, that does not know ``HELLO``."""
    server.kill9()
    server.admin = redis.Redis(port=server.port, protocol=2, socket_timeout=30)
    server.boot("--rename-command", "HELLO", "")
    return in_protocol(client, server.url, 2)


@pytest.mark.parametrize("names", ["with", "without"])
def test_workers_need_neither_hello_nor_a_name(server, start, give, without_hello, names):
    server.do("ACL", "SETUSER", "default", "+client|setname" if names == "with" else "-client|setname")
    worker = start("q=2", url=without_hello, lease=60_000)
    worker.wait_for("end", id=give("q", "ok"), how="ok")
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    server.do("DQ.CANCEL", "q", id)
    worker.wait_for("lost", 0.5, id=id, reason="cancelled")
    code, seconds = worker.stop()
    assert code == 0 and seconds < 2 * PATIENCE


def test_producers_need_no_hello(produce, without_hello):
    assert produce({"queue": "q", "payload": "x"}, url=without_hello)[0]["id"]


@pytest.mark.parametrize("more", [CHANNEL + " " + ENDS_OF_WAITS, ENDS_OF_WAITS, CHANNEL])
def test_a_user_with_the_rights_of_a_worker_is_enough(server, start, give, produce, more):
    rights = *RIGHTS.split(), *more.split()
    server.do("ACL", "SETUSER", "worker", "on", ">secret", "resetchannels", "~q", *rights)
    url = server.url.replace("://", "://worker:secret@")
    # No extension is due within half a second if only a notice may tell of the loss.
    worker = start("q=2", url=url, lease=10_000 if CHANNEL in more else 1000)
    for do in ("ok", "fail", "reject", "result"):
        worker.wait_for("end", id=give("q", do, result="x"))
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    server.do("DQ.CANCEL", "q", id)
    if CHANNEL in more:
        # Without the right to ask for the time, a worker may ask at once how long its lease is, and learn of it there.
        worker.wait_for("lost", 0.5, id=id)
    else:
        worker.wait_for("lost", 1.0, id=id, reason="lease")
    assert produce({"queue": "q", "payload": "x"}, url=url)[0]["id"]
    code, seconds = worker.stop()
    assert code == 0 and seconds < 2


@pytest.mark.parametrize("waits", [True, False])
def test_leases_of_messages_are_kept_without_the_right_to_time(server, start, give, waits):
    server.do("ACL", "SETUSER", "worker", "on", ">secret", "resetchannels", "~q", *RIGHTS.split())
    url = server.url.replace("://", "://worker:secret@")
    if waits:
        start("q=2", url=url)
        eventually("it waits", lambda: server.admin.info("clients")["blocked_clients"] == 1)
    give("q", "hang", "LEASE", 1000, ms=3000)
    if not waits:
        start("q=2", url=url)
    eventually("it is acked", lambda: server.info("q")["acked"] == 1)
    assert server.info("q")["delivered"] == 1
