"""Servers of every kind that redis-py knows: a unix socket, a cluster, Sentinel."""

import asyncio
import contextlib
import time
import weakref

import places
import pytest
import redis
import redis.sentinel
from proxy import Proxy
from server import Server, eventually, free_port

import dq_client
from dq_client.switches import watch


def works(app, working, at_once=1):
    """Messages are pushed, with and without asyncio, and worked on, and losses are heard of."""
    seen, reasons = [], []

    @app.consumer("{jobs}")
    async def consume(payload, ctx):
        seen.append(payload)
        if payload == b"wait":
            try:
                await asyncio.sleep(60)
            finally:
                reasons.append(ctx.reason)

    worker = working(app)
    queue = app.queue("{jobs}")
    queue.push_sync(b"first")
    eventually("it ran", lambda: seen == [b"first"])

    async def push():
        await queue.push(b"wait", id="m")
        assert len(await asyncio.gather(*(queue.len() for _ in range(at_once)))) == at_once
        await app.aclose()

    asyncio.run(push())
    eventually("it runs", lambda: b"wait" in seen)
    assert queue.cancel_sync("m") == ["inflight"]
    eventually("it is told", lambda: reasons == ["cancelled"])
    assert worker.is_healthy()
    return seen


def test_a_unix_socket(tmp_path, working):
    with places.unix_socket(tmp_path) as place:
        works(dq_client.App(place.url), working)


def test_tls_with_a_password(tmp_path, working):
    with places.tls(tmp_path) as place:
        works(dq_client.App(place.url), working)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_cluster(tmp_path, working, kind):
    with places.cluster(tmp_path) as place:
        if kind == "sync":
            client = eval(place.client)
        else:
            asyncio.set_event_loop(asyncio.new_event_loop())
            client = redis.asyncio.RedisCluster(host="127.0.0.1", port=place.server.port)
        works(dq_client.App(client), working, at_once=150)


def pushing(port, kind):
    """Returns an app with a client of a cluster, how it pushes to the queue ``jobs``, and what closes it."""
    if kind == "sync":
        app = dq_client.App(redis.RedisCluster(host="127.0.0.1", port=port))
        return app, app.queue("jobs").push_sync, lambda: None
    loop = asyncio.new_event_loop()

    async def client():
        return redis.asyncio.RedisCluster(host="127.0.0.1", port=port)

    app = dq_client.App(loop.run_until_complete(client()))

    def push(*given, **options):
        return loop.run_until_complete(app.queue("jobs").push(*given, **options))

    async def close():
        await app.aclose()
        await app.source.async_client().aclose()

    return app, push, lambda: loop.run_until_complete(close())


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_push_through_a_cluster_whose_reply_is_lost_is_no_duplicate(tmp_path, kind):
    with (
        contextlib.closing(Proxy(0)) as proxy,
        places.cluster(tmp_path, "--cluster-announce-port", str(proxy.port)) as place,
    ):
        proxy.lead_to(place.server.port)
        _, push, close = pushing(place.server.port, kind)
        proxy.lose_the_reply_to(b"DQ.PUSH")
        assert push(b"x", id="m") == "m", "its reply was lost"
        assert push(b"x", id="m") is None, "it is there"
        assert place.server.admin.execute_command("DQ.LEN", "jobs") == 1
        close()


def test_a_push_through_a_client_of_one_connection_is_not_repeated_by_it(server):
    with contextlib.closing(Proxy(server.port)) as proxy:
        client = redis.Redis(port=proxy.port, single_connection_client=True)
        queue = dq_client.App(client).queue("q")
        proxy.lose_the_reply_to(b"DQ.PUSH")
        assert queue.push_sync(b"x", id="m") == "m"
        assert queue.push_sync(b"x", id="m") is None


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_command_follows_the_slot_of_its_queue(tmp_path, kind):
    with places.cluster(tmp_path) as first, contextlib.closing(Server("--cluster-enabled", "yes")) as second:
        bus = free_port()
        second.boot("--cluster-port", str(bus))
        _, push, close = pushing(first.server.port, kind)
        push(b"before")
        place, other = first.server.admin, second.admin
        place.execute_command("DQ.PURGE", "jobs")
        place.execute_command("CLUSTER", "MEET", "127.0.0.1", second.port, bus)
        eventually("both know each other", lambda: "16384" in str(other.execute_command("CLUSTER INFO")), 20)
        slot = place.execute_command("CLUSTER", "KEYSLOT", "jobs")
        source, target = (each.execute_command("CLUSTER", "MYID") for each in (place, other))
        place.execute_command("DEL", "jobs")
        other.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source)
        place.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target)
        assert push(b"x", id="while it moves") == "while it moves"
        for each in other, place:
            each.execute_command("CLUSTER", "SETSLOT", slot, "NODE", target)
        assert push(b"x", id="when it has moved") == "when it has moved"
        assert other.execute_command("DQ.LEN", "jobs") == 2
        close()


def test_sentinel_and_its_failover(tmp_path, working):
    with places.sentinel(tmp_path) as place:
        app = dq_client.App(eval(place.client))
        seen = works(app, working, at_once=150)
        place.server.kill9()
        replica = place.replica.admin
        eventually("it has taken over", lambda: replica.info("replication")["role"] == "master", 20)
        app.queue("{jobs}").push_sync(b"after")
        eventually("it ran", lambda: b"after" in seen)


def fails_over(sentinel):
    """Returns whether a Sentinel has begun a failover. It needs to know the replica well enough."""
    try:
        return sentinel.execute_command("SENTINEL", "FAILOVER", "jobs")
    except redis.ResponseError:
        return False


@pytest.mark.parametrize("kind", ["waiting", "asyncio", "a client of asyncio"])
def test_a_master_that_lives_on_is_left_when_sentinel_names_another(tmp_path, working, kind):
    with places.sentinel(tmp_path) as place:
        app = dq_client.App(eval(place.client))
        pushing = app
        loop = asyncio.new_event_loop()
        if kind == "a client of asyncio":

            async def client():  # redis-py 5.0 makes one only within a loop.
                return eval(place.client.replace("redis.", "redis.asyncio."))

            pushing = dq_client.App(loop.run_until_complete(client()))
        queue = pushing.queue("q")
        push = queue.push_sync if kind == "waiting" else lambda x: loop.run_until_complete(queue.push(x))
        seen = works(app, working)
        push(b"before")
        sentinel = redis.Redis(port=place.sentinel)
        channels = sentinel.pubsub()
        channels.subscribe("+switch-master")
        eventually("it can fail over", lambda: fails_over(sentinel), 20)
        eventually("it is named", lambda: (channels.get_message(timeout=1) or {}).get("type") == "message", 30)
        eventually("its clients have heard of it", lambda: place.server.admin.ping() and time.sleep(0.3) is None)
        id = push(b"after")
        assert place.replica.message("q", id), "the old master would have taken it, and lost it"
        app.queue("{jobs}").push_sync(b"after")
        eventually("it ran", lambda: b"after" in seen, 20)
        loop.run_until_complete(app.aclose())


def test_sentinels_are_watched_in_each_process(monkeypatch):
    watched = []
    monkeypatch.setattr("dq_client.source.watch", lambda *arguments: watched.append(arguments))
    app = dq_client.App(redis.sentinel.Sentinel([("127.0.0.1", 1)]).master_for("jobs"))
    app.source.client(), app.source.client()
    assert len(watched) == 1
    monkeypatch.setattr("os.getpid", lambda: -1)
    app.source.client(), app.source.client()
    assert len(watched) == 2


def test_what_watches_sentinels_does_not_keep_an_app_alive(server):
    class Owner:
        told = 0

        def switched(self):
            type(self).told += 1

    owner = Owner()
    watch(owner, [("127.0.0.1", server.port)], {}, "jobs")
    eventually("it listens", lambda: server.admin.publish("+switch-master", "jobs 127.0.0.1 1 127.0.0.1 2"))
    eventually("it was told", lambda: Owner.told == 1)
    gone = weakref.ref(owner)
    del owner
    eventually("it is gone", lambda: gone() is None, 0.5)
