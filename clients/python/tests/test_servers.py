"""Servers of every kind that redis-py knows: a unix socket, a cluster, Sentinel."""

import asyncio
import subprocess

import pytest
import redis
import redis.sentinel
from server import Server, _binary, eventually, free_port

import dq_client


def works(app, working):
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
        await app.aclose()

    asyncio.run(push())
    eventually("it runs", lambda: b"wait" in seen)
    assert queue.cancel_sync("m") == ["inflight"]
    eventually("it is told", lambda: reasons == ["cancelled"])
    assert worker.is_healthy()
    return seen


def test_a_unix_socket(tmp_path, working):
    server = Server("--unixsocket", str(tmp_path / "socket"))
    try:
        server.boot()
        works(dq_client.App(f"unix://{tmp_path}/socket"), working)
    finally:
        server.close()


def test_tls_with_a_password(tmp_path, working):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout {key} -out {certificate}"
    subprocess.run(make.split(), check=True, capture_output=True)
    port = free_port()
    tls = f"--tls-port {port} --tls-cert-file {certificate} --tls-key-file {key} --tls-auth-clients no"
    server = Server(*tls.split(), "--tls-ca-cert-file", str(certificate))
    try:
        server.boot()
        server.do("ACL", "SETUSER", "default", ">secret")
        url = f"rediss://:secret@localhost:{port}?ssl_ca_certs={certificate}&ssl_check_hostname=false"
        works(dq_client.App(url), working)
    finally:
        server.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_cluster(working, kind):
    server = Server("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    try:
        server.boot()
        server.do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        eventually("the cluster is ready", lambda: "ok" in str(server.do("CLUSTER", "INFO")).split("cluster_slots")[0])
        if kind == "sync":
            client = redis.RedisCluster(host="127.0.0.1", port=server.port)
        else:
            asyncio.set_event_loop(asyncio.new_event_loop())
            client = redis.asyncio.RedisCluster(host="127.0.0.1", port=server.port)
        works(dq_client.App(client), working)
    finally:
        server.close()


def test_sentinel_and_its_failover(tmp_path, working):
    master = Server().boot()
    replica = Server("--replicaof", f"127.0.0.1 {master.port}").boot()
    port = free_port()
    (tmp_path / "sentinel.conf").write_text(
        f"port {port}\nbind 127.0.0.1\nsentinel monitor jobs 127.0.0.1 {master.port} 1\n"
        "sentinel down-after-milliseconds jobs 500\nsentinel failover-timeout jobs 2000\n"
    )
    process = subprocess.Popen([_binary(), str(tmp_path / "sentinel.conf"), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        sentinel = redis.sentinel.Sentinel([("127.0.0.1", port)])
        eventually("it knows the replica", lambda: slaves(sentinel), 20)
        eventually("it has the data", lambda: replica.admin.info("replication")["master_link_status"] == "up")
        app = dq_client.App(sentinel.master_for("jobs"))
        seen = works(app, working)
        master.kill9()
        eventually("it has taken over", lambda: replica.admin.info("replication")["role"] == "master", 20)
        app.queue("{jobs}").push_sync(b"after")
        eventually("it ran", lambda: b"after" in seen)
    finally:
        process.kill()
        process.wait()
        replica.close()
        master.close()


def slaves(sentinel):
    """Returns the replicas that a Sentinel knows."""
    try:
        return sentinel.discover_slaves("jobs")
    except redis.RedisError:
        return []
