"""The whole life of a message: pushed, taken, acked; one by one, and in hundreds. CPU us a message.

Rounds are interleaved with the control, and each figure is the median of them.
"""
import messages
from workloads import control
from workloads.base import Workload, median, scaled

BATCH = 100
BATCH_DEPTH = 8  # batches in flight
IN_HAND = 1_000  # messages that are taken and not acked


class Life(Workload):
    name = "life"
    title = "push, take and ack, CPU us a message"

    def run(self, lab, contender):
        one = contender(lab)
        figures = self.in_rounds(one, scaled(contender, lab.sizes.life), lab.sizes.rounds)
        if contender.name == "dq":
            figures.update(self.of_many(one, lab.sizes.life_large))
        one.close()
        return figures

    @classmethod
    def in_rounds(cls, one, count, times):
        """The medians of a number of rounds, and their ratios to the control on the same server."""
        rounds, batched, controls = [], [], []
        cls.live(one, count // 4, 1, 64)  # warms up
        for _ in range(times):
            if one.on_redis:
                controls.append(control.three_commands_us(one.server, count))
            rounds.append(cls.live(one, count, 1, 64))
            if one.batches:
                batched.append(cls.live(one, count, BATCH, BATCH_DEPTH))
        figures = {"messages": count * times}
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

    def of_many(self, one, count):
        """The same with more messages, and as many keys, than any cache holds."""
        base = control.three_commands_us(one.server, count)
        alone, batched = self.live(one, count, 1, 64), self.live(one, count, BATCH, BATCH_DEPTH)
        return {"large_messages": count, "large_control_us": base, "large_life_us": alone["life_us"],
                "large_ratio": alone["life_us"] / base, "large_batch_ratio": batched["life_us"] / base}

    @staticmethod
    def live(one, count, batch, depth):
        """Pushes all, then takes and acks as many at a time as a consumer may well hold."""
        with one.server.cost(count) as push:
            one.push(messages.due_now(count), batch, depth)
        bodies, take, ack = [], [], []
        in_hand = count if one.own_client else IN_HAND
        while len(bodies) < count:
            with one.server.cost(count) as cost:
                taken = one.collect(min(in_hand, count - len(bodies)), batch, depth)
            take.append(cost)
            bodies.extend([body for body, _ in taken])
            if not one.acks_with_take:
                with one.server.cost(count) as cost:
                    one.ack([handle for _, handle in taken], batch, depth)
                ack.append(cost)
        messages.check_each_once(bodies, count)
        one.check_empty()
        figures = {"push_us": push.us, "take_us": sum(cost.us for cost in take)}
        if ack:
            figures["ack_us"] = sum(cost.us for cost in ack)
        figures["life_us"] = sum(figures.values())
        figures["life_total_us"] = sum(cost.total_us for cost in [push, *take, *ack])
        return figures
