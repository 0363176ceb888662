"""Memory of messages that wait for random times, and what it cost to push them; and what is left per live message after
nine in ten were acked in random order. Memory is `used_memory`, for dq what MEMORY USAGE says too."""
import random

import messages
from contenders.base import chunks
from workloads import control
from workloads.base import Workload, median, scaled

STEPS = 20
ACKED_PER_MILLE = 900
LEASE_MS = 3_600_000


class Memory(Workload):
    name = "memory"
    title = "memory beyond the payload, bytes a message"

    def run(self, lab, contender):
        count = scaled(contender, lab.sizes.memory)
        one = contender(lab)
        figures = self.delayed(one, count)
        one.close()
        if contender.name in ("dq", "zset-hash", "streams"):
            one = contender(lab)
            figures.update(self.after_acks(one, count))
            one.close()
        return figures

    @staticmethod
    def delayed(one, count):
        """Pushed in steps, each followed by as many ZADD for dq: both grow alike, close in time."""
        grown, costs, ratios, first, step = 0, [], [], 0, count // STEPS
        for _ in range(STEPS):
            some = messages.due_at_random(step, first)
            first += step
            before = one.server.memory_bytes()
            with one.server.cost(step) as cost:
                one.push(some, batch=one.bulk)
            grown += one.server.memory_bytes() - before
            costs.append(cost.us)
            if one.name == "dq":
                ratios.append(cost.us / control.zadd_us(one.server, some))
        figures = {"messages": first, "bytes": grown / first - one.size, "push_us": sum(costs) / len(costs)}
        if ratios:
            figures["zadd_ratio"] = median(ratios)
            figures["usage_bytes"] = usage(one) / first - one.size
        return figures

    @staticmethod
    def after_acks(one, count):
        if one.name == "dq":  # no lease ends before its ack, however slow the machine is
            one.connection.call("DQ.CREATE", one.queue, "LEASE", LEASE_MS)
        before = one.server.memory_bytes()
        one.push(messages.due_now(count), 1, 64)
        handles = [handle for _, handle in one.collect(count, 100, 8)]
        random.Random(3).shuffle(handles)
        acked = count * ACKED_PER_MILLE // 1000
        for some in chunks(handles[:acked], 10_000):
            one.ack(some, 100, 8)
        left = count - acked
        figures = {"after_acks_bytes": (one.server.memory_bytes() - before) / left - one.size}
        if one.name == "dq":
            figures["after_acks_usage_bytes"] = usage(one) / left - one.size
        return figures


def usage(one):
    """What MEMORY USAGE says of the queue. It looks at all of it."""
    return one.connection.call("MEMORY", "USAGE", one.queue, "SAMPLES", 0)
