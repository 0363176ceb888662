"""Queues: what producers and operators do, with and without asyncio."""

import asyncio
import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
import redis
from server import ROOT, eventually, free_port

import dq_client
from dq_client import fields
from dq_client.errors import translated
from dq_client.queue import Queue
from dq_client.wire import milliseconds


def test_each_method_exists_with_and_without_asyncio():
    names = [name for name in vars(Queue) if not name.startswith("_") and callable(getattr(Queue, name))]
    waiting = [name for name in names if name.endswith("_sync")]
    assert sorted(waiting) == sorted(f"{name}_sync" for name in names if name not in waiting)
    for name in waiting:
        assert (
            inspect.signature(getattr(Queue, name)).parameters
            == inspect.signature(getattr(Queue, name[:-5])).parameters
        )


def test_a_batch_is_pushed(app, server):
    queue = app.queue("q")
    assert len(set(queue.push_many_sync([b"a", b"b"], delay=5))) == 2
    queue.push_sync(b"x", id="dead")
    server.do("DQ.BURY", "q", "dead")
    answers = asyncio.run(queue.push_many([b"a", b"b", b"c"], ids=["one", "two", "dead"]))
    assert answers[:2] == ["one", "two"] and isinstance(answers[2], dq_client.DeadId)
    assert queue.push_many_sync([b"a"], ids=["one"]) == [None]


def test_a_message_is_never_due_too_early(app):
    queue = app.queue("q")
    at = datetime(2200, 1, 1, 0, 0, 0, 1, tzinfo=timezone.utc)
    queue.push_sync(b"x", id="at", at=at)
    queue.push_sync(b"x", id="delayed", delay=0.0015)
    assert [milliseconds(duration) for duration in (Decimal("1.0004"), 1e14, timedelta.max, -0.0015)] == [
        1001,
        10**17,
        86_400_000 * 10**9,
        -1,
    ]
    assert queue.get_sync("at")["due"] == at.timestamp() // 0.001 + 1
    delayed = queue.get_sync("delayed")
    assert delayed["due"] - delayed["created"] == 2


def test_operators_have_their_commands(app):
    queue = app.queue("q")
    assert queue.info_sync() is None
    queue.push_sync(b"x", id="m", delay=60)
    assert queue.reschedule_sync("m", delay=120, priority=4) is True
    assert queue.reschedule_sync("nobody", delay=1) is False
    assert queue.promote_sync() == 1
    [fields] = queue.peek_sync()
    assert (fields["id"], fields["payload"], fields["priority"]) == ("m", b"x", 4)
    queue.pause_sync(60)
    assert queue.info_sync()["ready"] == 1
    queue.resume_sync()
    queue.pause_sync(60, group="g")
    queue.push_sync(b"x", id="in-g", group="g")
    assert queue.info_sync()["blocked"] == 1
    queue.resume_sync(group="g")
    assert queue.info_sync()["blocked"] == 0
    assert queue.cancel_sync("in-g") == ["ready"]
    assert queue.schedule_sync("tick", b"x", every=60) == "created"
    assert queue.schedule_sync("tick", b"x", every=60) == "unchanged"
    assert queue.cancel_sync("tick") == ["delayed"]
    assert queue.purge_sync() == 1
    assert queue.redrive_sync() == 0


def test_messages_are_chosen_by_age_by_reason_or_by_due_time(app, server):
    queue = app.queue("q")
    queue.push_sync(b"x", id="m", delay=60)
    now = datetime.now(timezone.utc)
    assert queue.promote_sync(until=now) == 0
    assert queue.promote_sync(until=now + timedelta(hours=1)) == 1
    assert queue.purge_sync("ready", older=3600) == 0
    server.do("DQ.BURY", "q", "m")
    assert queue.redrive_sync(reason="expired") == queue.redrive_sync(older=3600) == 0
    assert queue.redrive_sync(5, reason="rejected", older=0, delay=60) == 1
    assert queue.purge_sync(older=0) == 1


def test_a_closed_queue_refuses_pushes_until_it_is_resumed(app):
    queue = app.queue("q")
    queue.push_sync(b"x")
    queue.pause_sync(60, flow="in")
    assert (queue.info_sync()["paused"], queue.info_sync()["closed"]) == (0, 1)
    with pytest.raises(dq_client.QueueClosed):
        queue.push_sync(b"x")
    queue.resume_sync(flow="out")
    with pytest.raises(dq_client.QueueClosed):
        queue.push_sync(b"x")
    queue.resume_sync()
    assert queue.push_sync(b"x")


def test_pushes_are_not_repeated_if_that_is_switched_off(server):
    app = dq_client.App(server.url, push_timeout=0)
    assert "-" in app.queue("q").push_sync(b"x"), "the server makes the id"
    server.kill9()
    with pytest.raises(dq_client.ConnectionLost):
        app.queue("q").push_sync(b"x")


def test_a_push_fails_with_its_cause_if_the_server_is_away():
    address = f"127.0.0.1:{free_port()}"
    assert inspect.signature(dq_client.App).parameters["push_timeout"].default == 10
    begun = time.monotonic()
    asyncio.set_event_loop(asyncio.new_event_loop())  # Python 3.9 wants one for a client that is made outside of it.
    for origin in (f"redis://{address}", redis.asyncio.Redis(host="127.0.0.1", port=int(address[10:]))):
        queue = dq_client.App(origin, push_timeout=0.5).queue("q")
        with pytest.raises(dq_client.ConnectionLost, match=f"{address}: .*refused") as first:
            queue.push_sync(b"x")
        with pytest.raises(dq_client.ConnectionLost, match=f"{address}: .*") as second:
            asyncio.run(queue.push_many([b"x"]))
        for raised in (first, second):
            assert isinstance(raised.value.__cause__, (redis.ConnectionError, asyncio.TimeoutError))
    assert time.monotonic() - begun < 10, "none of the four takes the ten seconds of the default"


def test_a_push_to_a_server_that_hangs_fails_in_time(server):
    asyncio.set_event_loop(asyncio.new_event_loop())  # as above
    client = redis.asyncio.Redis(port=server.port)
    server.signal("STOP")
    try:
        queue = dq_client.App(client, push_timeout=0.3).queue("q")
        with pytest.raises(dq_client.ConnectionLost, match=f"localhost:{server.port}: no answer in time"):
            asyncio.run(queue.push(b"x"))
    finally:
        server.signal("CONT")


def test_hundreds_of_commands_go_at_once(app, server):
    async def main():
        queue = app.queue("q")
        assert set(await asyncio.gather(*(queue.len() for _ in range(300)))) == {0}
        await app.aclose()

    asyncio.run(main())
    begun = threading.Semaphore(0)

    def length():
        begun.release()
        return app.queue("q").len_sync()

    server.signal("STOP")
    with ThreadPoolExecutor(150) as pool:
        lengths = [pool.submit(length) for _ in range(150)]
        for _ in lengths:
            assert begun.acquire(timeout=30)
        server.signal("CONT")
        assert {length.result() for length in lengths} == {0}


@pytest.mark.parametrize(
    "url, said",
    [
        ("redis://localhost/abc", "database .*'abc'"),
        ("redis://localhost/1/2", "database .*'1/2'"),
        ("redis://localhost/1?db=2", "database .*'1'"),
        ("redis://localhost?family=4", "'family'"),
        ("redis://localhost?key_prefix=a", "'key_prefix'"),
        ("redis://localhost?ssl_cert_reqs=none", "'ssl_cert_reqs'"),
        ("redis://localhost?retry=3", "'retry'"),
        ("redis://localhost?protocol=", "'protocol'"),
        ("redis://localhost?protocol=2&protocol=3", "'protocol'"),
        ("redis://localhost?socket_timeout=soon", "socket_timeout"),
        ("redis://:pass#word@localhost", "%23"),
    ],
)
def test_a_url_that_is_not_understood_is_refused(url, said):
    with pytest.raises(ValueError, match=said):
        dq_client.App(url)


def test_parameters_of_a_url_count_with_and_without_asyncio():
    source = dq_client.App("redis://localhost/3?socket_timeout=1.5&client_name=me&protocol=2").source
    wanted = {"db": 3, "socket_timeout": 1.5, "client_name": "me", "protocol": 2}

    async def asynchronous():
        return source.async_client()

    for client in (source.client(), asyncio.run(asynchronous())):
        given = client.connection_pool.connection_kwargs
        assert {name: type(wanted[name])(given[name]) for name in wanted} == wanted


def test_errors_of_the_server_have_classes(app, server):
    server.do("DQ.CREATE", "full", "MAXLEN", 1)
    app.queue("full").push_sync(b"x")
    with pytest.raises(dq_client.QueueFull):
        app.queue("full").push_sync(b"x")
    with pytest.raises(dq_client.Refused, match="PRIORITY"):
        app.queue("q").push_sync(b"x", priority=1000)


@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "dq_client"], [os.path.join(os.path.dirname(sys.executable), "dq-worker")]]
)
def test_a_worker_is_a_program(server, tmp_path, command):
    (tmp_path / "shop.py").write_text(
        "import dq_client\n"
        f"app = dq_client.App({server.url!r})\n"
        "@app.task(queue='mail')\n"
        "async def send(to): print('to', to, flush=True)\n"
        "@app.task(queue='mail')\n"
        "def archive(to): print('archived', to, flush=True)\n"
    )
    worker = subprocess.Popen(
        [*command, "shop:app", "--concurrency", "2"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        queue = dq_client.App(server.url).queue("mail")
        queue.push_sync('{"task": "shop.send", "args": ["ann"]}')
        assert worker.stdout.readline() == "to ann\n"
        queue.push_sync('{"task": "shop.archive", "args": ["ann"]}')
        assert worker.stdout.readline() == "archived ann\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(5) == 0
    finally:
        worker.kill()


def test_a_wrong_app_is_an_error(tmp_path):
    done = subprocess.run([sys.executable, "-m", "dq_client", "json:app"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "there is no dq_client.App at 'json:app'" in done.stderr
    words = [sys.executable, "-m", "dq_client", "json:app", "--log-level", "LOUD"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "Unknown level: 'LOUD'" in done.stderr


def test_a_worker_whose_server_is_gone_is_not_healthy(app, server, working, monkeypatch):
    app.consumer("q")(lambda payload: None)
    worker = working(app, lease=0.2)
    eventually("it is healthy", worker.is_healthy)
    server.kill9()
    monkeypatch.setattr("dq_client.worker.BLOCK_MS", 0)
    monkeypatch.setattr("dq_client.worker.MARGIN_SECONDS", 0.5)
    eventually("it is not healthy", lambda: not worker.is_healthy())
    server.boot()
    eventually("it is healthy again", worker.is_healthy)


def test_a_group_is_counted_looked_at_and_purged_alone(app):
    queue = app.queue("q")
    queue.push_sync(b"x")
    queue.push_sync(b"x", id="m", group="g")
    assert (queue.len_sync(), queue.len_sync("ready", group="g")) == (2, 1)
    assert [fields["id"] for fields in queue.peek_sync(count=5, group="g")] == ["m"]
    assert (queue.purge_sync(group="h"), queue.purge_sync("ready", group="g"), queue.len_sync()) == (0, 1, 1)


def test_a_message_follows_when_all_of_a_batch_have_ended(app, server):
    class Tenant:
        def push(self, queue, headers):
            headers["tenant"] = "ann"

    app.middleware.append(Tenant())
    queue = app.queue("q")
    queue.push_many_sync([b"1", b"2"], ids=["a", "b"], batch="pages")
    assert queue.follow_sync("pages", b"bind", id="bind", delay=60, headers={"own": "1"}) == 2
    assert queue.get_sync("a")["batch"] == "pages"
    server.do("DQ.POP", "q", "NOACK")
    info = asyncio.run(queue.batch_info("pages"))
    assert (info["total"], info["left"], info["acked"], info["closed"]) == (2, 1, 1, 1)
    assert (info["then"], info["then-id"]) == (b"bind", "bind")
    assert queue.cancel_sync("b") == ["ready"]
    follows = queue.get_sync("bind")
    assert (follows["headers"]["dq-batch-acked"], follows["headers"]["dq-batch-cancelled"]) == ("1", "1")
    assert (follows["headers"]["own"], follows["headers"]["tenant"]) == ("1", "ann")
    queue.push_sync(b"3", batch="other")
    assert queue.cancel_batch_sync("other") == 1
    assert queue.batch_info_sync("other") is None


def test_a_queue_is_declared_created_and_altered(app):
    queue = app.queue("q")
    queue.declare_sync(jitter=20, backoff=(0.5, timedelta(minutes=1)), group_rate=(5, 1), forward="STREAM due TRIM 9")
    info = queue.info_sync()
    assert (info["backoff-base"], info["backoff-max"], info["backoff-jitter"]) == (500, 60_000, 20)
    assert (info["grouprate"], info["grouprate-period"], info["forward"]) == (5, 1000, "STREAM due TRIM 9")
    with pytest.raises(dq_client.Refused):
        queue.create_sync(max_len=1)
    with pytest.raises(dq_client.Refused):
        app.queue("none").alter_sync(max_len=1)
    with pytest.raises(TypeError, match="maxlen"):
        queue.alter_sync(maxlen=1)
    asyncio.run(queue.alter(forward="NONE"))
    assert queue.info_sync()["forward"] == "NONE"


def test_what_is_known_of_messages_queues_and_batches_has_types(app, server):
    queue = app.queue("q")
    queue.push_sync(b"x", batch="b", headers={"h": "1"})
    queue.follow_sync("b", b"y", id="f")
    queue.declare_sync(retries=3, forward="NONE")
    assert queue.info_sync().keys() == fields.QueueInfo.__annotations__.keys()
    assert queue.batch_info_sync("b").keys() == fields.BatchInfo.__annotations__.keys()
    page = (ROOT / "docs/commands/dq.get.md").read_text().split("## Reply")[1].split("## Errors")[0]
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", " ".join(rows))) == fields.Message.__annotations__.keys()


def test_a_connection_that_was_closed_while_idle_is_opened_again(server, app):
    """Neither a load balancer nor the setting ``timeout`` of a server makes commands fail, also if the event loop did
    not turn."""

    async def use():
        queue = app.queue("q")
        await queue.push("x", id="m")
        for _ in range(3):
            server.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            eventually("it is closed", lambda: len(server.admin.client_list()) == 1)
            assert (await queue.get("m"))["id"] == "m"
            assert await queue.push("x", id="m") is None, "a push that was not sent makes no duplicate"
        await app.aclose()

    asyncio.run(use())


def test_a_node_of_a_cluster_says_who_holds_the_queue():
    error = translated(redis.exceptions.MovedError("15495 127.0.0.1:23062"), "127.0.0.1:7000")
    assert "127.0.0.1:23062 holds the queue" in str(error)


def test_an_error_shows_nothing_of_the_payload(app):
    with pytest.raises(TypeError) as raised:
        app.queue("q").push_sync({"card": "4711"})
    assert "4711" not in str(raised.value)
