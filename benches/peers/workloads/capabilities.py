"""What a rate limit, schedules, a deduplication window, groups and forwarding cost (dq only).

- Clients that wait at a rate limit that is reached: the CPU of the server and the runs of its timer until the next
  delivery is allowed, and what another pop costs meanwhile.
- Schedules with EVERY 60000, spread over the minute: memory of each beyond its payload, and the CPU of the server while
  all runs are delivered and acked, with a consumer that waits and with one that polls ten times a second.
- Known ids: memory of each id that outlives its message.
- Groups: CPU of a life and memory of a message, with all messages in many groups, with half of them, and with all in
  one group, where all but one are blocked.
- Forwarding: messages a second that are due at once and go to a stream or a list.
"""
import time

import messages
from workloads.base import Workload
from wire import encode

RATE_PERIOD_MS = 3_600_000
RATE_POPS = 20_000
ID_BYTES = 20
BATCH = 1_000
MINUTE_MS = 60_000
POLLS_A_SECOND = 10


class Capabilities(Workload):
    name = "capabilities"
    title = "rate limits, schedules, deduplication windows, groups, forwarding"
    peers = ("dq",)

    def run(self, lab, contender):
        figures = {}
        for measure in (self.rate, self.schedules, self.known_ids, self.groups, self.forwarding):
            one = contender(lab)
            figures.update(measure(lab, one))
            one.close()
        return figures

    @staticmethod
    def rate(lab, one):
        """The limit is reached for an hour. Clients wait, and messages are ready."""
        call = one.connection.call
        call("DQ.CREATE", one.queue, "RATE", 1, RATE_PERIOD_MS)
        one.push(messages.due_now(100))
        call("DQ.POP", one.queue, "NOACK")
        count, seconds = max(lab.sizes.waiters), lab.sizes.limit_seconds
        clients = one.server.connections(count)
        for client in clients:
            client.send(encode("DQ.POP", one.queue, "BLOCK", 0))
        while int(one.server.info("dq")["dq_blocked_clients"]) < count:
            time.sleep(0.01)
        runs = int(one.server.info("dq")["dq_timer_runs"])
        with one.server.cost(1) as idle:
            time.sleep(seconds)
        runs = int(one.server.info("dq")["dq_timer_runs"]) - runs
        pops = RATE_POPS // 10 if lab.sizes.quick else RATE_POPS
        with one.server.cost(pops) as cost:
            one.connection.pipeline([encode("DQ.POP", one.queue)] * pops, 64)
        return {"limit_clients": count, "limit_timer_runs": runs, "limit_cpu": idle.cpu_seconds / seconds,
                "limit_pop_us": cost.us}

    def schedules(self, lab, one):
        count, seconds = lab.sizes.schedules, lab.sizes.schedule_seconds
        before = one.server.memory_bytes()
        declare = [encode("DQ.SCHEDULE", one.queue, f"schedule-{number}", one.payload(number), "EVERY", MINUTE_MS,
                          "OFFSET", number * MINUTE_MS // count) for number in range(count)]
        with one.server.cost(count) as declared:
            one.connection.pipeline(declare, 64)
        held = one.server.memory_bytes() - before
        with one.server.cost(count) as again:
            one.connection.pipeline(declare, 64)
        # What fell due since the declarations is not measured.
        one.collect(one.connection.call("DQ.LEN", one.queue, "ready"), 100, 8, ack=True)
        waiting = self.consumed(one, seconds, encode("DQ.POP", one.queue, "COUNT", 100, "BLOCK", 100), 0)
        polling = self.consumed(one, seconds, encode("DQ.POP", one.queue, "COUNT", BATCH), 1 / POLLS_A_SECOND)
        return {"schedules": count, "schedule_bytes": held / count - one.size, "schedule_us": declared.us,
                "unchanged_us": again.us, "runs_a_second": count * 1000 / MINUTE_MS,
                "waiting_cpu": waiting, "polling_cpu": polling}

    @staticmethod
    def consumed(one, seconds, pop, pause):
        """The share of a core that the server takes while all runs are delivered and acked."""
        ran, expected = 0, seconds * int(one.connection.call("DQ.LEN", one.queue)) * 1000 / MINUTE_MS
        with one.server.cost(1) as cost:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                one.connection.send(pop)
                some = one.connection.reply() or ()
                if some:
                    one.connection.send(encode("DQ.ACK", one.queue, *[message[3] for message in some]))
                    ran += one.connection.reply()
                time.sleep(pause)
        if not 0.9 * expected - BATCH <= ran <= 1.1 * expected + BATCH:
            raise messages.CheckFailed(f"{ran} runs in {seconds} s, and not about {expected:.0f}")
        return cost.cpu_seconds / cost.seconds

    @staticmethod
    def known_ids(lab, one):
        """Messages are pushed with an id and taken at once, with a window and without one."""
        def grown(queue, count):
            before = one.server.memory_bytes()
            for first in range(0, count, BATCH):
                ids = [b"%020d" % number for number in range(first, first + BATCH)]
                one.connection.call("DQ.MPUSH", queue, BATCH, *[b"x"] * BATCH, "IDS", *ids)
                one.connection.call("DQ.POP", queue, "COUNT", BATCH, "NOACK")
            return one.server.memory_bytes() - before

        one.connection.call("DQ.CREATE", "plain")
        one.connection.call("DQ.CREATE", one.queue, "DEDUPE", 604_800_000)
        # An empty queue keeps the same memory, however many messages it held.
        plain = grown("plain", lab.sizes.known_ids // 10)
        each = (grown(one.queue, lab.sizes.known_ids) - plain) / lab.sizes.known_ids
        known = one.connection.call("DQ.INFO", one.queue)
        known = known[known.index(b"known") + 1]
        if known != lab.sizes.known_ids:
            raise messages.CheckFailed(f"{known} ids are known of {lab.sizes.known_ids}")
        return {"known_ids": known, "known_id_bytes": each}

    @staticmethod
    def groups(lab, one):
        """Messages are pushed one by one, with a group and without one, and some are delivered and acked."""
        count, groups = lab.sizes.grouped, lab.sizes.groups
        figures = {"grouped": count, "groups": groups}
        in_some = [b"customer-%06d" % (number * 7_919 % groups) for number in range(groups)]
        ways = {"plain": lambda _: (), "grouped": lambda number: ("GROUP", in_some[number % groups]),
                "half": lambda number: ("GROUP", in_some[number % groups]) if number % 2 else (),
                "blocked": lambda _: ("GROUP", "one")}
        for way, group in ways.items():
            # One that is blocked is delivered only after the one before was acked: nothing can be pipelined.
            depth, lives = (1, count // 50) if way == "blocked" else (64, count)
            before = one.server.memory_bytes()
            with one.server.cost(count) as push:
                for first in range(0, count, BATCH):
                    one.connection.pipeline([encode("DQ.PUSH", way, one.payload(number), *group(number))
                                             for number in range(first, first + BATCH)], 64)
            figures[f"{way}_bytes"] = (one.server.memory_bytes() - before) / count - one.size
            done = 0
            with one.server.cost(lives) as finish:
                while done < lives:
                    popped = one.connection.pipeline([encode("DQ.POP", way)] * depth, depth)
                    receipts = [reply[0][3] for reply in popped if reply]
                    one.connection.pipeline([encode("DQ.ACK", way, receipt) for receipt in receipts], depth)
                    done += len(receipts)
            figures[f"{way}_push_us"], figures[f"{way}_finish_us"] = push.us, finish.us
            one.connection.call("DEL", way)
        return figures

    @staticmethod
    def forwarding(lab, one):
        """Messages wait in a queue that is paused. Measured from when it is resumed until the last is forwarded."""
        figures, call, count = {"forwarded": lab.sizes.forwarded}, one.connection.call, lab.sizes.forwarded
        for kind in ("stream", "list"):
            call("DQ.CREATE", kind)
            call("DQ.PAUSE", kind)
            for first in range(0, count, BATCH):
                call("DQ.MPUSH", kind, BATCH, *[one.payload(number) for number in range(first, first + BATCH)])
            call("DQ.ALTER", kind, "FORWARD", kind, "target")
            with one.server.cost(count) as cost:
                began = time.monotonic()
                call("DQ.RESUME", kind)
                while call("DQ.LEN", kind):
                    time.sleep(0.005)
                seconds = time.monotonic() - began
            figures[f"{kind}_us"], figures[f"{kind}_a_second"] = cost.us, count / seconds
            if call("XLEN" if kind == "stream" else "LLEN", "target") != count:
                raise messages.CheckFailed(f"the {kind} does not hold {count} messages")
            call("DEL", "target")
        return figures
