"""All messages are due at one instant, and are taken and acked in hundreds: how long other clients wait meanwhile.

A prober sends trivial requests on a connection of its own all the time. Consumers have one batch in flight, so that
they do not delay the prober themselves. Pauses of the machine are watched and left out. For contenders without delays
the same number of ready messages is taken."""
import time

import messages
from contenders.base import chunks
from probe import Prober
from watch import Watch
from workloads.base import Workload, median, scaled

AHEAD = 1.7  # of the time that the pushes should take
TRIALS = 10  # pushes from which that time is estimated: one stall of the machine must not count for all
MARGIN_MS = 800


class Burst(Workload):
    name = "burst"
    title = "due at one instant"

    def run(self, lab, contender):
        count = scaled(contender, lab.sizes.burst)
        for attempt in (1, 2, 3):
            one = contender(lab)
            due = self.push(one, count, AHEAD * attempt)
            if due:
                return self.deliver(one, count, due)
            one.close()
        raise messages.CheckFailed("the pushes took longer than expected three times: the machine is too busy")

    @staticmethod
    def push(one, count, ahead):
        """Pushes all messages with one due time. Returns this time, or 0 if it came before all were pushed."""
        trial, times = max(count // 50, 2_000), []
        for numbers in chunks(range(trial), trial // TRIALS):
            start = time.monotonic()
            one.push(messages.due_now(len(numbers), numbers[0]), one.bulk)
            times.append((time.monotonic() - start) / len(numbers))
        expected = median(times) * count
        one.ack([handle for _, handle in one.collect(trial)])
        due = messages.now_ms() + int(expected * ahead * 1000) + MARGIN_MS
        if not one.delays:
            one.push(messages.due_now(count), 1, 64)
            return messages.now_ms() + 100
        for numbers in chunks(range(count), 10_000):
            one.push(messages.due_at(due, len(numbers), numbers[0]), one.bulk, 64)
        return due if messages.now_ms() < due else 0

    @staticmethod
    def deliver(one, count, due):
        if one.on_redis:
            one.server.connection.call("CONFIG", "RESETSTAT")
        time.sleep(max(due - messages.now_ms() - 200, 0) / 1000)
        with Watch() as watch, Prober(one.server, one.ping) as prober, one.server.cost(count) as cost:
            time.sleep(max(due - messages.now_ms(), 0) / 1000)
            taken = one.collect(count, 100 if one.batches else 1, 1 if one.batches else 64, ack=True)
        bodies = [body for body, _ in taken]
        messages.check_each_once(bodies, count)
        one.check_empty()
        figures = {"messages": count, "longest_ping_ms": watch.longest_wait_ms(prober.waits),
                   "p99_ping_ms": prober.p99_ms,
                   "deliver_us": cost.us, "in_order": bodies == sorted(bodies)}
        if one.on_redis:
            figures["longest_command_ms"] = one.server.longest_us() / 1000
        if one.name == "dq":
            info = one.server.info("dq")
            figures["longest_timer_ms"] = int(info["dq_timer_longest_us"]) / 1000
            if not figures["in_order"]:
                raise messages.CheckFailed("the order of a burst must be exact")
        return figures
