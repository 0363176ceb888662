"""The life of messages as most people run a server: with an AOF that is synced each second, and with a replica.

Both make a contender write down what it does. The control, SET + GET + DEL, runs on the same server and is written down
as well.
"""
import os
import time

from workloads.base import Workload, scaled
from workloads.life import Life

AOF = ("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
REPLICATING = ("--repl-diskless-sync-delay", "0")
WAYS = ("aof", "replica")
UP_SECONDS = 30


class DurableLife(Workload):
    name = "durable-life"
    title = "push, take and ack with an AOF and with a replica, CPU us a message"

    @classmethod
    def suits(cls, contender):
        return contender.on_redis

    def run(self, lab, contender):
        figures = {}
        for way in WAYS:
            one = contender(lab, arguments=AOF if way == "aof" else REPLICATING)
            replica = self.replica(lab, contender, one.server) if way == "replica" else None
            life = Life.in_rounds(one, scaled(contender, lab.sizes.life), lab.sizes.durable_rounds)
            figures[way] = {key: life[key] for key in (
                "messages", "control_us", "life_us", "batch_life_us", "ratio", "batch_ratio") if key in life}
            one.close()
            if replica:
                replica.stop()
        return figures

    @staticmethod
    def replica(lab, contender, master):
        """A replica that has caught up, on the core of the load: the master keeps the first core to itself."""
        replica = contender.start(lab, ("--replicaof", f"127.0.0.1 {master.port}"), None)
        if os.cpu_count() > 1:
            os.sched_setaffinity(replica.process.pid, {1})
        deadline = time.monotonic() + UP_SECONDS
        while replica.info("replication")["master_link_status"] != "up":
            if time.monotonic() > deadline:
                raise RuntimeError("the replica did not connect")
            time.sleep(0.05)
        return replica
