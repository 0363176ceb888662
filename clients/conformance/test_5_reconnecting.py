"""Reconnecting: a worker consumes again soon after its server does, and loses and repeats nothing by itself."""

import contextlib
import json
import re
import threading
import time

import pytest
import redis

from server import NOT_NOW, PATIENCE, Server, eventually


def soon(worker, give, queue="q", seconds=2.0):
    """A message is worked on within two seconds."""
    id = give(queue, "ok")
    worker.wait_for("end", seconds, id=id, how="ok")


@pytest.mark.parametrize("away", [0.0, 3.0])
def test_it_consumes_again_after_the_server_was_killed(server, start, give, away):
    worker = start("q=2")
    soon(worker, give)
    server.kill9()
    end = time.monotonic() + away
    eventually("the server is away for a while", lambda: time.monotonic() >= end)
    server.boot()
    soon(worker, give)


def test_it_consumes_again_after_a_restart(server, start, give):
    worker = start("q=2")
    soon(worker, give)
    server.signal("TERM")
    server.kill9()
    server.boot()
    soon(worker, give)


def test_it_consumes_again_after_its_connections_were_killed(server, start, give):
    worker = start("q=2")
    for _ in range(3):
        server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        server.do("CLIENT", "KILL", "TYPE", "pubsub")
        soon(worker, give)


def test_it_learns_of_losses_after_its_connections_were_killed(server, start, give):
    worker = start("q=2", lease=60_000)
    id = give("q", "hang", ms=60_000)
    worker.wait_for("start", id=id)
    server.do("CLIENT", "KILL", "TYPE", "pubsub")
    eventually("it listens again", lambda: dict(server.admin.pubsub_numsub("__dq@0__:q")).get(b"__dq@0__:q"))
    server.do("DQ.CANCEL", "q", id)
    worker.wait_for("lost", 2.0, id=id)


def test_it_consumes_again_after_loading(server, start, give):
    worker = start("q=2")
    for n in range(20):
        server.admin.set(f"key-{n}", "x" * 100)
    server.do("CONFIG", "SET", "aof-use-rdb-preamble", "yes")
    server.do("BGREWRITEAOF")
    eventually("it is rewritten", lambda: not server.admin.info("persistence")["aof_rewrite_in_progress"])
    server.kill9()
    server.launch("--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024")

    def state():
        try:
            return server.admin.info("persistence")["loading"]
        except Exception:
            return None

    eventually("it loads, or has loaded", lambda: state() is not None)
    eventually("it has loaded", lambda: state() == 0, 30)
    soon(worker, give)


def test_it_consumes_again_after_readonly(server, start, give):
    worker = start("q=2")
    server.do("REPLICAOF", "127.0.0.1", "1")
    end = time.monotonic() + 1.5
    eventually("it was refused for a while", lambda: time.monotonic() > end)
    names_the_queue = re.compile(r"\bq: .*(READONLY|read only|replica|connection was lost)")
    eventually("it says so", lambda: any(map(names_the_queue.search, worker.errors)))
    server.do("REPLICAOF", "NO", "ONE")
    soon(worker, give)


@pytest.mark.parametrize("refusal", ["NOREPLICAS", "MISCONF"])
def test_outcomes_that_the_server_refuses_are_sent_again(server, start, give, refusal):
    worker = start("q=2", lease=30_000)
    id = give("q", "hang", ms=300)
    worker.wait_for("start", id=id)
    if refusal == "NOREPLICAS":
        server.do("CONFIG", "SET", "min-replicas-to-write", 1)
    else:
        server.do("CONFIG", "SET", "save", "3600 1")
        (server.directory / "no-file").mkdir()
        server.do("CONFIG", "SET", "dbfilename", "no-file")
        server.do("SET", "key", "value")
        server.do("BGSAVE")
        eventually("saving fails", lambda: server.admin.info("persistence")["rdb_last_bgsave_status"] == "err")
    worker.wait_for("end", id=id, how="ok")
    end = time.monotonic() + 1
    eventually("it was refused for a while", lambda: time.monotonic() > end)
    assert server.info("q")["acked"] == 0
    if refusal == "NOREPLICAS":
        server.do("CONFIG", "SET", "min-replicas-to-write", 0)
    else:
        server.do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
    eventually("it is acked", lambda: server.info("q")["acked"] == 1, 2)
    soon(worker, give)
    assert len(worker.said("start", id=id)) == 1


@pytest.mark.parametrize("trouble", ["busy", "readonly", "other password", "too many clients"])
def test_an_outcome_waits_until_the_server_can_take_it(server, start, give, trouble):
    worker = start("q=2", lease=30_000)
    id = give("q", "hang", ms=1500)
    worker.wait_for("start", id=id)
    with in_trouble(server, trouble):
        worker.wait_for("end", id=id, how="ok")
        end = time.monotonic() + 1.5
        eventually("it was refused for a while", lambda: time.monotonic() > end)
        if trouble != "busy":  # A server that is busy answers nobody.
            assert server.info("q")["acked"] == 0
    eventually("it is acked", lambda: server.info("q")["acked"] == 1, 3)
    assert len(worker.said("start", id=id)) == 1


def test_an_outcome_is_sent_again_after_each_answer_that_says_not_now(server, proxy, start, give):
    worker = start("q=4", url=proxy.url, lease=30_000)
    # This pop goes on waiting, so that hardly another one takes acks along.
    eventually("it waits", lambda: server.admin.info("clients")["blocked_clients"] == 1)
    for error in NOT_NOW:
        for do, command, state in [
            ("ok", b"ACK", b"done"),  # or ACKPOP
            ("fail", b"NACK", b"dead"),
            ("result", b"COMPLETE", b"done"),
        ]:
            proxy.answer(b"\r\nDQ." + command, error)
            id = give("q", do, "RETRIES", 0, "RETAIN", 60_000, text="no", result="x")
            worker.wait_for("end", id=id)
            until(server, id, state)
    assert not proxy.has_answers()
    assert server.info("q")["delivered"] == 3 * len(NOT_NOW)


def until(server, id, state):
    """Waits until a message is in a state."""
    eventually(f"{id} is {state}", lambda: server.message("q", id).get("state") == state)


@pytest.mark.parametrize("trouble", ["busy", "readonly"])
def test_a_checkpoint_waits_until_the_server_can_take_it(server, start, give, trouble):
    server.do("DQ.CREATE", "q", "BACKOFF", 1, 1)
    # A checkpoint may be sent at once or with the next extension. Both come before the handler fails.
    worker = start("q=1", lease=6000)
    id = give("q", "save", ms=1600, text="half", times=1)
    worker.wait_for("start", id=id, attempt=1)
    with in_trouble(server, trouble):
        end = time.monotonic() + 3.3
        eventually("it is stored, or was refused for a while", lambda: time.monotonic() > end)
    worker.wait_for("start", 5.0, id=id, attempt=2, checkpoint="half")


def test_a_failure_takes_a_checkpoint_along_that_is_not_stored(server, proxy, start, give):
    server.do("DQ.CREATE", "q", "BACKOFF", 1, 1)
    worker = start("q=1", url=proxy.url, lease=30_000)
    id = give("q", "save", ms=200, text="half", times=1)
    worker.wait_for("start", id=id, attempt=1)
    end = time.monotonic() + 1.2

    def is_over():
        proxy.answer(b"\r\nDQ.EXTEND", b"BUSY Redis is busy running a script.", alone=True)
        return time.monotonic() > end

    # The nack is accepted meanwhile.
    eventually("the checkpoint was refused for a while", is_over)
    worker.wait_for("start", 5.0, id=id, attempt=2, checkpoint="half")


@contextlib.contextmanager
def in_trouble(server, trouble):
    """A server that can carry out nothing for a while, or that nobody can reach."""
    script = None
    if trouble == "busy":
        server.do("CONFIG", "SET", "lua-time-limit", 10)
        loop = "local from = redis.call('TIME')[1]; while redis.call('TIME')[1] - from < 3 do end"
        script = threading.Thread(target=redis.Redis(port=server.port, socket_timeout=30).eval, args=[loop, 0])
        script.start()
    elif trouble == "readonly":
        server.do("REPLICAOF", "127.0.0.1", "1")
    else:
        setting = ("requirepass", "other") if trouble == "other password" else ("maxclients", 1)
        server.do("CONFIG", "SET", *setting)
        server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        server.do("CLIENT", "KILL", "TYPE", "pubsub")
    yield
    if script is not None:
        script.join()
    elif trouble == "readonly":
        server.do("REPLICAOF", "NO", "ONE")
    else:
        server.do("CONFIG", "SET", "requirepass", "")
        server.do("CONFIG", "SET", "maxclients", 1000)


def test_an_outcome_that_is_late_is_reported_as_lost(server, start, give):
    worker = start("q=1", lease=4000)
    id = give("q", "hang", ms=1500)
    worker.wait_for("start", id=id)
    server.signal("STOP")
    try:
        worker.wait_for("end", id=id, how="ok")
        eventually("it is reported", lambda: worker.said("lost", id=id) or logged(worker, id), 7)
    finally:
        server.signal("CONT")
    soon(worker, give)


def logged(worker, id):
    """Returns what the log of a worker has about the loss of a message."""
    return [line for line in worker.errors if id in line and "lost" in line]


def test_a_worker_goes_on_after_a_reply_that_was_cut(server, proxy, start, give):
    worker = start("q=1", url=proxy.url, lease=1000)
    for kept in (1, 9, 40):
        soon(worker, give, seconds=5.0)
        proxy.cut_the_reply_to(b"POP", kept)
        id = give("q", "ok")
        worker.wait_for("end", 15.0, id=id, how="ok")
    soon(worker, give, seconds=5.0)
    eventually("all is acked", lambda: server.do("DQ.LEN", "q") == 0)
    assert worker.is_alive()


@pytest.mark.parametrize("do, command, state", [("hang", b"ACK", b"done"), ("fail", b"NACK", b"dead")])
@pytest.mark.parametrize("lost", ["the command", "the reply"])
def test_an_outcome_whose_connection_breaks_is_sent_again(server, proxy, start, give, lost, do, command, state):
    worker = start("q=1", url=proxy.url, lease=3000)
    lose = proxy.lose if lost == "the command" else proxy.lose_the_reply_to
    lose(b"DQ." + command)
    id = give("q", do, "RETRIES", 0, "RETAIN", 60_000, ms=500, text="no")
    worker.wait_for("end", id=id)
    later = give("q", "ok")  # It may be delivered on the connection that breaks.
    worker.wait_for("end", 15.0, id=later, how="ok")
    eventually("both have ended", lambda: server.info("q")["inflight"] == 0, 5)
    assert server.message("q", id)["state"] == state
    assert worker.stop()[0] == 0
    assert len(worker.said("start", id=id)) == 1
    assert not worker.said("lost", id=id) and not logged(worker, id)


def test_replies_that_are_too_large_are_asked_for_in_parts(server, start, give):
    server.do("CONFIG", "SET", "client-output-buffer-limit", "normal 400000 0 0")
    server.do("DQ.CREATE", "q", "LEASE", 500, "RETRIES", -1)
    ids = [give("q", "ok", text="x" * 150_000) for _ in range(8)]
    worker = start("q=8", ready=False)
    for id in ids:
        worker.wait_for("end", 20.0, id=id, how="ok")


def test_a_server_that_is_not_there_yet_is_waited_for(client, start, give, server):
    server.kill9()
    worker = start("q=1", ready=False)
    end = time.monotonic() + 1.5
    eventually("it waits for a while", lambda: time.monotonic() > end)
    assert worker.is_alive()
    server.boot()
    soon(worker, give)


def test_a_silent_connection_is_noticed_within_thirty_seconds(server, proxy, start, give):
    worker = start("q=1", url=proxy.url)
    soon(worker, give)
    proxy.fall_silent()
    lost = give("q", "ok")  # It may be delivered into the silence, and returns when its lease is over.
    begun = time.monotonic()
    id = give("q", "ok")
    worker.wait_for("end", 30.0, id=id, how="ok")
    assert time.monotonic() - begun < 30 * PATIENCE
    assert lost != id


def test_a_queue_of_another_type_is_tried_again_but_not_spun_on(server, start, give):
    server.do("SET", "q", "text")
    worker = start("q=1", "r=1", ready=False)
    soon(worker, give, "r", 5)
    server.clear_calls()
    end = time.monotonic() + 2
    eventually("it is tried for a while", lambda: time.monotonic() > end)
    assert worker.is_alive()
    assert worker.errors, "it is an error in the log"
    assert server.calls("dq.pop") + server.calls("dq.info") < 40
    server.do("DEL", "q")
    soon(worker, give)


def test_nothing_is_lost_or_done_twice_while_the_server_is_killed(server, start, give):
    worker = start("q=8", lease=3000)
    ids = []
    for _ in range(3):
        ids += [give("q", "hang", ms=20) for _ in range(60)]
        server.kill9()
        server.boot()
    eventually("all are done", lambda: server.do("DQ.LEN", "q") == 0, 20)
    for id in ids:
        assert worker.said("end", id=id, how="ok")
    # What was delivered while the connection broke comes again when its lease is over, and not before.
    for id in ids:
        starts = worker.said("start", id=id)
        ends = [said["at"] for said in worker.said("end", id=id, how="ok")]
        assert all(later["at"] - earlier["at"] >= 2500 for earlier, later in zip(starts, starts[1:])), starts
        assert len(ends) <= len(starts)


def test_it_follows_a_failover(client, start, give, server):
    replica = Server("--replicaof", f"127.0.0.1 {server.port}")
    try:
        replica.boot()
        eventually("it has the data", lambda: replica.admin.info("replication")["master_link_status"] == "up")
        worker = start("q=1")
        soon(worker, give)
        # The address moves, as behind a service address: the old master goes, the new one takes its port.
        server.kill9()
        replica.do("REPLICAOF", "NO", "ONE")
        replica.do("CONFIG", "SET", "port", server.port)
        replica.admin = server.admin
        replica.port = server.port
        soon(worker, give_to(replica))
    finally:
        replica.close()


def give_to(server):
    """Returns how messages are given to another server."""
    return lambda queue, do, **fields: server.do("DQ.PUSH", queue, json.dumps(dict(fields, do=do))).decode()
