"""Bytes that are written to the AOF and sent to a replica while messages fall due and nobody takes them.

dq writes nothing. If a poll moves due messages, each move is written.
"""
import time

import messages
from workloads.base import Workload
from workloads.burst import Burst
from workloads.persistence import AOF, Persistence

AHEAD = 2.5  # of the time that the pushes should take: the AOF and the replica slow them down
QUIET = ("--repl-ping-replica-period", "3600", "--repl-diskless-sync-delay", "0")


class FallingDue(Workload):
    name = "falling-due"
    title = "written while messages fall due, bytes a message"
    peers = ("dq", "zset-list", "key-per-message")

    def run(self, lab, contender):
        count = lab.sizes.falling_due if contender.name == "dq" else lab.sizes.falling_due // 10
        one = contender(lab, arguments=AOF + QUIET)
        replica = contender.start(lab, ("--replicaof", f"127.0.0.1 {one.server.port}"), None)
        while replica.info("replication")["master_link_status"] != "up":
            time.sleep(0.05)
        due = Burst.push(one, count, AHEAD)
        if not due:
            raise messages.CheckFailed("the pushes took longer than expected: the machine is too busy")
        before = self.written(one)
        time.sleep(max(due - messages.now_ms() + 1_000, 0) / 1000)
        for _ in range(count // 1_000 + 2 if contender.polled else 0):
            one.fall_due()
        after = self.written(one)
        taken = one.collect(count, 100 if one.batches else 1, 8 if one.batches else 64, ack=True)
        messages.check_each_once([body for body, _ in taken], count)
        return {"messages": count, "aof_bytes": (after[0] - before[0]) / count,
                "replication_bytes": (after[1] - before[1]) / count}

    @staticmethod
    def written(one):
        return Persistence.aof_bytes(one), int(one.server.info("replication")["master_repl_offset"])
