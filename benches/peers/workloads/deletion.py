"""DEL and UNLINK of a queue with many waiting messages: how long the client and all other clients wait, in ms."""
import time

import messages
from workloads.base import Workload, median

ROUNDS = 3


class Deletion(Workload):
    name = "deletion"
    title = "DEL and UNLINK, ms"
    peers = ("dq", "zset-lua", "zset-hash", "streams")

    def run(self, lab, contender):
        count, figures = lab.sizes.deleted, {}
        one = contender(lab)
        for command in ("DEL", "UNLINK"):
            waits = []
            for _ in range(ROUNDS if contender.name == "dq" else 1):
                one.push(messages.due_at_random(count), 100, 8)
                keys = one.connection.call("KEYS", "*")
                start = time.monotonic()
                one.connection.call(command, *keys)
                waits.append((time.monotonic() - start) * 1000)
                one.open_queue()
            figures[f"{command.lower()}_ms"] = median(waits)
        return {"messages": count, **figures}
