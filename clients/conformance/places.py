"""Servers of every kind that redis-py reaches: a unix socket, TLS with a password, a cluster of one node, Sentinel.

Each function yields a :class:`Place`, and ends its servers afterwards.
"""

import contextlib
import subprocess
from typing import NamedTuple, Optional

import redis
import redis.sentinel

from server import Server, binary, eventually, free_port


class Place(NamedTuple):
    """Where a server is."""

    server: Server
    client: str
    """An expression that makes a client of redis-py, if ``redis`` and ``redis.sentinel`` are imported."""
    url: Optional[str] = None
    replica: Optional[Server] = None
    sentinel: Optional[int] = None
    """The port of the Sentinel."""


@contextlib.contextmanager
def unix_socket(directory):
    """A server with a unix socket."""
    path = directory / "socket"
    with contextlib.closing(Server("--unixsocket", str(path))) as server:
        yield Place(server.boot(), f"redis.Redis(unix_socket_path={str(path)!r})", f"unix://{path}")


@contextlib.contextmanager
def tls(directory):
    """A server with TLS and a password."""
    key, certificate = directory / "key.pem", directory / "cert.pem"
    make = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout {key} -out {certificate}"
    subprocess.run(make.split(), check=True, capture_output=True)
    port = free_port()
    words = f"--tls-port {port} --tls-cert-file {certificate} --tls-key-file {key} --tls-auth-clients no"
    with contextlib.closing(Server(*words.split(), "--tls-ca-cert-file", str(certificate))) as server:
        server.boot()
        server.do("ACL", "SETUSER", "default", ">secret")
        settings = f"ssl_ca_certs={str(certificate)!r}, ssl_check_hostname=False, socket_connect_timeout=30"
        yield Place(
            server,
            f"redis.Redis(port={port}, password='secret', ssl=True, {settings})",
            f"rediss://:secret@localhost:{port}?ssl_ca_certs={certificate}&ssl_check_hostname=false",
        )


@contextlib.contextmanager
def cluster(directory, *arguments):
    """A cluster of one node."""
    arguments = "--cluster-enabled", "yes", "--cluster-port", str(free_port()), *arguments
    with contextlib.closing(Server(*arguments)) as server:
        server.boot()
        server.do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        eventually("the cluster is ready", lambda: "ok" in str(server.do("CLUSTER", "INFO")).split("cluster_slots")[0])
        yield Place(server, f"redis.RedisCluster(host='127.0.0.1', port={server.port})")


@contextlib.contextmanager
def sentinel(directory):
    """A master and a replica, and a Sentinel that knows them as ``jobs``."""
    with contextlib.closing(Server()) as master, contextlib.closing(Server()) as replica:
        master.boot()
        replica.boot("--replicaof", f"127.0.0.1 {master.port}")
        port = free_port()
        (directory / "sentinel.conf").write_text(
            f"port {port}\nbind 127.0.0.1\nsentinel monitor jobs 127.0.0.1 {master.port} 1\n"
            "sentinel down-after-milliseconds jobs 500\nsentinel failover-timeout jobs 2000\n"
        )
        command = [binary(), str(directory / "sentinel.conf"), "--sentinel"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            asked = redis.sentinel.Sentinel([("127.0.0.1", port)])
            eventually("it knows the replica", lambda: _replicas(asked), 20)
            # A sentinel that a slow write to a disk holds up for two seconds would do nothing for the next 30 (TILT).
            asked.sentinels[0].execute_command("SENTINEL", "DEBUG", "tilt-trigger", 600_000)
            eventually("it has the data", lambda: replica.admin.info("replication")["master_link_status"] == "up")
            client = f"redis.sentinel.Sentinel([('127.0.0.1', {port})]).master_for('jobs')"
            yield Place(master, client, replica=replica, sentinel=port)
        finally:
            process.kill()
            process.wait()


def _replicas(asked):
    try:
        return asked.discover_slaves("jobs")
    except redis.RedisError:
        return []


ALL = {"unix socket": unix_socket, "tls": tls, "cluster": cluster, "sentinel": sentinel}
