"""The whole life of a message: pushed, taken, acked; one by one, and in hundreds. CPU us a message.

Rounds are interleaved with the control, and each figure is the median of them.
"""
import messages
from workloads import control
from workloads.base import Workload, median, scaled

BATCH = 100
BATCH_DEPTH = 8  # batches in flight


class Life(Workload):
    name = "life"
    title = "push, take and ack, CPU us a message"

    def run(self, lab, contender):
        one = contender(lab)
        count = scaled(contender, lab.sizes.life)
        rounds, batched, controls = [], [], []
        self.live(one, count // 4, 1, 64)  # warms up
        for _ in range(lab.sizes.rounds):
            if one.on_redis:
                controls.append(control.three_commands_us(one.server, count))
            rounds.append(self.live(one, count, 1, 64))
            if contender.batches:
                batched.append(self.live(one, count, BATCH, BATCH_DEPTH))
        one.close()
        figures = {"messages": count * lab.sizes.rounds}
        if controls:
            figures["control_us"] = median(controls)
        for prefix, lives in (("", rounds), ("batch_", batched)):
            for part in lives[0] if lives else ():
                figures[prefix + part] = median([life[part] for life in lives])
        if controls:
            figures["ratio"] = median([life["life_us"] / base for life, base in zip(rounds, controls)])
            if batched:
                figures["batch_ratio"] = median([life["life_us"] / base for life, base in zip(batched, controls)])
        return figures

    @staticmethod
    def live(one, count, batch, depth):
        with one.server.cost(count) as push:
            one.push(messages.due_now(count), batch, depth)
        with one.server.cost(count) as take:
            taken = one.collect(count, batch, depth)
        messages.check_each_once([body for body, _ in taken], count)
        figures = {"push_us": push.us, "take_us": take.us, "life_us": push.us + take.us,
                   "life_total_us": push.total_us + take.total_us}
        if not one.acks_with_take:
            with one.server.cost(count) as ack:
                one.ack([handle for _, handle in taken], batch, depth)
            figures["ack_us"] = ack.us
            figures["life_us"] += ack.us
            figures["life_total_us"] += ack.total_us
        one.check_empty()
        return figures
