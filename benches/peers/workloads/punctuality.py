"""How late messages are delivered, and what it costs the server, at a steady rate with waiting consumers.

A producer pushes at the rate; each message is due at random one to two seconds later. A consumer in a process of its
own takes and acks. The lateness is the time at which the consumer has the payload, minus the due time, on the clock of
the machine. A negative value means early."""
import gc
import multiprocessing
import random
import time

import messages
from process import prefer
from workloads.base import Workload, percentile

SLOT_MS = 5  # the interval at which the producer sends what is due to be pushed
LEAD_MS = 500  # before the first push
GIVE_UP_SECONDS = 30


class Punctuality(Workload):
    name = "punctuality"
    title = "lateness in ms, and server CPU"

    @classmethod
    def suits(cls, contender):
        return contender.delays

    def run(self, lab, contender):
        figures = {}
        for rate in lab.sizes.rates:
            if contender.own_client and rate > 2_000:
                continue  # one process of its client does not reach it
            for interval in lab.sizes.polls if contender.polled else (None,):
                how = f"poll_{int(interval * 1000)}ms" if interval else "waiting"
                one = contender(lab)
                count = int(rate * lab.sizes.punctual_seconds)
                measure = self.by_own_client if contender.own_client else self.by_ours
                with one.server.cost(count) as cost:
                    bodies, late = measure(one, rate, count, interval)
                messages.check_each_once(bodies, count)
                one.check_empty()
                one.close()
                late.sort()
                figures[f"{rate}_{how}"] = {
                    "rate": rate, "how": how, "p50_ms": percentile(late, 50), "p99_ms": percentile(late, 99),
                    "max_ms": late[-1], "min_ms": late[0], "early": sum(ms < 0 for ms in late) / count,
                    "us": cost.us, "server_cpu": cost.cpu_seconds / cost.seconds}
        return figures

    def by_ours(self, one, rate, count, interval):
        start = messages.now_ms() + LEAD_MS + count // 100  # encoding takes time
        plan, slots = self.plan(one, rate, count, start)
        context = multiprocessing.get_context("fork")
        pipe, theirs = context.Pipe()
        dues = [due for _, due, _ in plan]
        consumer = context.Process(target=consume, args=(one, dues, interval, theirs), daemon=True)
        consumer.start()
        theirs.close()
        pipe.recv()
        for at, slot in enumerate(slots):
            time.sleep(max(start + at * SLOT_MS - time.time_ns() / 1e6, 0) / 1000)
            one.connection.pipeline(slot, len(slot), one.replies_each)
        bodies, late = pipe.recv()
        consumer.join()
        return bodies, late

    @staticmethod
    def plan(one, rate, count, start):
        """Returns all messages, and their requests grouped into slots of time."""
        order, plan, slots = random.Random(4), [], []
        each = rate * SLOT_MS // 1000
        for first in range(0, count, each):
            sent = start + first // each * SLOT_MS
            slot = []
            for number in range(first, min(first + each, count)):
                delay = order.choice((1_000, 2_000)) if one.name == "beanstalkd" else order.randrange(1_000, 2_000)
                slot.append((number, sent + delay, delay))
            plan.extend(slot)
            slots.append(one.encode_push(slot))
        return plan, slots

    @staticmethod
    def by_own_client(one, rate, count, interval):
        producer = one.another_driver()
        order = random.Random(4)
        delays = [order.randrange(1_000, 2_000) for _ in range(count)]
        seconds = count / rate + GIVE_UP_SECONDS
        one.driver.ask("work", count=count, seconds=seconds)
        producer.call("pace", delays=delays, size=one.size, rate=rate, start=messages.now_ms() + LEAD_MS)
        done = one.driver.answer()
        return [body.encode() for body in done["bodies"]], done["late"]


def consume(contender, dues, interval, pipe):
    """The process of the consumer. Sends all payloads and the lateness of each, in ms."""
    gc.disable()
    prefer()
    one = contender.on_own_connection()
    bodies, late = [], []
    deadline = time.monotonic() + (dues[-1] / 1000 - time.time()) + GIVE_UP_SECONDS

    def arrived(body, ns):
        bodies.append(body)
        late.append(ns / 1e6 - dues[messages.number_of(body)])

    pipe.send("ready")
    one.consume(arrived, lambda: len(bodies) < len(dues) and time.monotonic() < deadline, interval)
    pipe.send((bodies, late))
