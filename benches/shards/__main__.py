"""Measures what a message costs all servers of a cluster, with 1, 2, 4 and 8 shards, and prints a table.

    python3 benches/shards [--rounds N] [--series N] [--server PATH] [--module PATH]

The cost is the CPU time of all servers for a message, because this machine has fewer cores than the cluster has
servers. What a cluster does anyway, such as its gossip, is part of it. The sizes are measured in series that alternate,
of which the middle one counts.

Pipelines: a topic has 64 partitions, the queues `{orders:0}` to `{orders:63}`, which are spread over the shards. A
message lives by a push, a pop and an ack, in pipelines of 50 commands for each partition; a round is 3,200 messages.

Workers: the example `partitions` of the Rust client, with 12 partitions, one producer and 16 threads that wait and
work. Each command is a round trip. A server that finds several commands when it wakes up pays once for it, so it is
counted how often the servers wake up for a message.

In the last two rows each of four shards has a replica, whose CPU is part of the cost. In the last one, while the
messages live, partitions are moved from the first shard to the second one, key by key as `redis-cli --cluster reshard`
does it, and the replica of the third one takes over. Each message must be delivered once and acked once.
"""
import argparse
import binascii
import os
import re
import statistics
import subprocess
import sys
import threading
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "benches", "peers"))

from options import add_server_and_module  # noqa: E402
from process import RedisServer, free_port, pin_load, stop_all  # noqa: E402
import steal  # noqa: E402
import wire  # noqa: E402

SHARDS = (1, 2, 4, 8)
PARTITIONS = 64
SLOTS = 16384
DEPTH = 50
PAYLOAD = b"x" * 100
WAIT_SECONDS = 60
MOVED = 8  # partitions
WARM_UP = 10  # rounds
WORKED_ON = 5000  # messages
EXAMPLE = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "dq-client", "--example", "partitions", "--"]


def key(partition):
    return b"{orders:%d}" % partition


def slot(partition):
    return binascii.crc_hqx(b"orders:%d" % partition, 0) % SLOTS


def until(what, condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain: {what}")
        time.sleep(0.02)


class Cluster:
    """Shards with the same number of slots each, and with a replica each if asked for."""

    def __init__(self, lab, shards, with_replicas=False):
        self.nodes = [self.node(lab) for _ in range(shards * (2 if with_replicas else 1))]
        self.masters, replicas = self.nodes[:shards], self.nodes[shards:]
        for n, node in enumerate(self.masters):
            node.connection.call("CLUSTER", "ADDSLOTSRANGE", n * SLOTS // shards, (n + 1) * SLOTS // shards - 1)
        first = self.nodes[0]
        for node in self.nodes[1:]:
            first.connection.call("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus)
        until("all nodes know each other", lambda: all(self.knows_all(node) for node in self.nodes))
        for master, replica in zip(self.masters, replicas):
            replica.connection.call("CLUSTER", "REPLICATE", master.id)
        for replica in replicas:
            until("a replica follows", lambda: replica.info("replication").get("master_link_status") == "up")
        until("the cluster is up", lambda: all(self.is_up(node) for node in self.nodes))

    @staticmethod
    def node(lab):
        bus = free_port()
        node = RedisServer(lab.server, "--cluster-enabled", "yes", "--cluster-port", str(bus),
                           "--loadmodule", lab.module)
        node.bus, node.id = bus, node.connection.call("CLUSTER", "MYID")
        return node

    def knows_all(self, node):
        lines = node.connection.call("CLUSTER", "NODES").decode().splitlines()
        return len(lines) == len(self.nodes) and not any("handshake" in line for line in lines)

    @staticmethod
    def is_up(node):
        return b"cluster_state:ok" in node.connection.call("CLUSTER", "INFO")

    def cpu_ns(self):
        return sum(node.total_cpu_ns() for node in self.nodes)

    def wake_ups(self):
        return sum(node.wake_ups() for node in self.nodes)


class Client:
    """A client that knows which node has which slot, and learns it anew when a node sends it elsewhere."""

    def __init__(self, cluster):
        self.ports = {}
        self.connections = {node.port: node.connect() for node in cluster.nodes}
        self.learn()

    def learn(self):
        for connection in list(self.connections.values()):
            found = {n: entry[2][1] for entry in connection.call("CLUSTER", "SLOTS")
                     for n in range(entry[0], entry[1] + 1)}
            self.ports.update(found)

    def ask(self, asked):
        """Sends one pipeline for each partition, and returns the replies to each. `asked` has the commands of each."""
        replies = {partition: [None] * len(words) for partition, words in asked.items()}
        left = [(partition, n, words) for partition, of in asked.items() for n, words in enumerate(of)]
        deadline = time.monotonic() + WAIT_SECONDS
        while left:
            by_port, again = {}, []
            for one in left:
                by_port.setdefault(self.ports[slot(one[0])], []).append(one)
            for port, those in by_port.items():
                self.connections[port].send(b"".join(words for _, _, words in those))
            for port, those in by_port.items():
                for partition, n, words in those:
                    reply = self.reply(port, words)
                    if isinstance(reply, wire.ServerError):
                        again.append((partition, n, words))
                    else:
                        replies[partition][n] = reply
            left = again
            if left:
                if time.monotonic() > deadline:
                    raise RuntimeError("the cluster does not carry out commands")
                self.learn()
        return replies

    def reply(self, port, words):
        """One reply; what is with another node for the moment is asked there."""
        try:
            return self.connections[port].reply()
        except wire.ServerError as error:
            asked = re.fullmatch(r"ASK \d+ \S*:(\d+)", str(error))
            if not asked:
                if not str(error).startswith(("MOVED", "TRYAGAIN", "CLUSTERDOWN")):
                    raise
                return error
            return self.ask_there(int(asked[1]), words)

    def ask_there(self, port, words):
        # Another connection, because replies of the usual one may be under way.
        there = wire.Connection(port)
        there.send(wire.encode("ASKING") + words)
        there.reply()
        try:
            return there.reply()
        except wire.ServerError as error:
            return error
        finally:
            there.close()


def live(client, rounds, seen=None):
    """Lets messages live in all partitions. Notes their receipts in `seen`."""
    every = range(PARTITIONS)
    for _ in range(rounds):
        client.ask({n: [wire.encode("DQ.PUSH", key(n), PAYLOAD)] * DEPTH for n in every})
        popped = client.ask({n: [wire.encode("DQ.POP", key(n))] * DEPTH for n in every})
        receipts = {n: [reply[0][0] for reply in replies if reply] for n, replies in popped.items()}
        if any(len(those) != DEPTH for those in receipts.values()):
            raise RuntimeError("a message was not delivered")
        acked = client.ask({n: [wire.encode("DQ.ACK", key(n), one) for one in those] for n, those in receipts.items()})
        if any(reply != 1 for replies in acked.values() for reply in replies):
            raise RuntimeError("a message was not acked")
        if seen is not None:
            seen.extend((n, receipt) for n, those in receipts.items() for receipt in those)


def us_a_message(cpu_ns, rounds):
    return cpu_ns / (rounds * PARTITIONS * DEPTH) / 1000


def cost(cluster, client, rounds):
    live(client, WARM_UP)
    before = cluster.cpu_ns()
    live(client, rounds)
    return us_a_message(cluster.cpu_ns() - before, rounds)


def cost_with_workers(cluster):
    """The cost of a message that a worker of the Rust client waits for, and how often servers wake up for it."""
    environment = {**os.environ, "DQ_URL": f"redis+cluster://127.0.0.1:{cluster.nodes[0].port}"}
    worker = subprocess.Popen([*EXAMPLE, "consume", "16"], cwd=ROOT, env=environment, stdout=subprocess.PIPE)

    def work_on(count):
        subprocess.run([*EXAMPLE, "produce", str(count)], cwd=ROOT, env=environment,
                       stdout=subprocess.DEVNULL, check=True,
                       timeout=WAIT_SECONDS)
        if not all(worker.stdout.readline() for _ in range(count)):
            raise RuntimeError("the worker has ended")

    try:
        work_on(100)
        before, slept = cluster.cpu_ns(), cluster.wake_ups()
        work_on(WORKED_ON)
        return (cluster.cpu_ns() - before) / WORKED_ON / 1000, (cluster.wake_ups() - slept) / WORKED_ON
    finally:
        worker.terminate()
        worker.wait()


def move(cluster):
    """Moves partitions from the first shard to the second one, and lets the replica of the third one take over."""
    source, target = cluster.masters[:2]
    owned = [n for n in range(PARTITIONS) if slot(n) * len(cluster.masters) < SLOTS]
    for partition in owned[:MOVED]:
        where = slot(partition)
        source_call, target_call = source.connect().call, target.connect().call
        target_call("CLUSTER", "SETSLOT", where, "IMPORTING", source.id)
        source_call("CLUSTER", "SETSLOT", where, "MIGRATING", target.id)
        while keys := source_call("CLUSTER", "GETKEYSINSLOT", where, 100):
            source_call("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for call in (target_call, source_call, *(node.connect().call for node in cluster.masters[2:])):
            call("CLUSTER", "SETSLOT", where, "NODE", target.id)
    replica = cluster.nodes[len(cluster.masters) + 2]
    until("the replica has taken over", lambda: takes_over(replica))


def takes_over(replica):
    """Orders a replica to take over, and returns whether it does. Servers give such an order up after five seconds,
    which may pass where there are fewer cores than servers; then it is to be given again."""
    replica.connect().call("CLUSTER", "FAILOVER")
    for _ in range(60):
        if replica.info("replication")["role"] == "master":
            return True
        time.sleep(0.1)
    return False


def with_changes(lab):
    """The cost of a message while partitions move and a replica takes over."""
    cluster = Cluster(lab, 4, with_replicas=True)
    client, seen, failed = Client(cluster), [], []

    def change():
        try:
            move(cluster)
        except Exception as error:  # the thread that waits for it tells
            failed.append(error)

    live(client, WARM_UP)
    before, rounds = cluster.cpu_ns(), 0
    changes = threading.Thread(target=change)
    changes.start()
    while changes.is_alive() or rounds < lab.rounds:
        live(client, 1, seen)
        rounds += 1
    changes.join()
    if failed:
        raise failed[0]
    if len(set(seen)) != rounds * PARTITIONS * DEPTH:
        raise RuntimeError("a message was delivered twice")
    return us_a_message(cluster.cpu_ns() - before, rounds)


def main():
    parser = argparse.ArgumentParser(prog="benches/shards", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--series", type=int, default=3)
    add_server_and_module(parser)
    lab = parser.parse_args()
    lab.module = os.path.abspath(lab.module)
    subprocess.run([*EXAMPLE[:1], "build", *EXAMPLE[2:-1]], cwd=ROOT, check=True)
    pin_load()
    watched = steal.Steal()
    version = None
    pipelines, workers, wake_ups = ({n: [] for n in SHARDS} for _ in range(3))
    replicas, changes = [], []
    for _ in range(lab.series):
        for shards in SHARDS:
            cluster = Cluster(lab, shards)
            version = cluster.nodes[0].version()
            pipelines[shards].append(cost(cluster, Client(cluster), lab.rounds))
            for figures, figure in zip((workers, wake_ups), cost_with_workers(cluster)):
                figures[shards].append(figure)
            stop_all()
        cluster = Cluster(lab, 4, with_replicas=True)
        replicas.append(cost(cluster, Client(cluster), lab.rounds))
        stop_all()
        changes.append(with_changes(lab))
        stop_all()
        so_far = f"{pipelines} {workers} {wake_ups} {replicas} {changes}"
        print(f"{so_far} {steal.told(watched.share())}", file=sys.stderr, flush=True)
    if watched.share() > steal.LIMIT:
        sys.exit(f"dq: no table: {steal.told(watched.share())}")
    print(f"{version}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}, {steal.told(watched.share())}\n")
    print("| shards | in pipelines, µs a message | | with workers, µs a message | | wake-ups a message |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for shards in SHARDS:
        slept = f"{statistics.median(wake_ups[shards]):.2f}"
        with_workers = against(workers[shards], workers[1])
        print(f"| {shards} | {against(pipelines[shards], pipelines[1])} | {with_workers} | {slept} |")
    print(f"| 4, each with a replica | {against(replicas, pipelines[1])} | | | |")
    changed = against(changes, pipelines[1])
    print(f"| the same, while {MOVED} partitions move and a replica takes over | {changed} | | | |")


def against(figures, of_one):
    """The middle figure, and which part of that of one shard it is."""
    return f"{statistics.median(figures):.2f} | {statistics.median(figures) / statistics.median(of_one):.2f}"


if __name__ == "__main__":
    main()
