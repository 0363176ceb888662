"""How the cost of a push and of a pop grows with the number of waiting messages, from ten thousand to five million, and
the longest of all these single pushes."""
import messages
from contenders.base import chunks
from workloads.base import Workload

STEP = 100_000
SAMPLES = 3


class Growth(Workload):
    name = "growth"
    title = "CPU us by how many wait"
    peers = ("dq", "zset-lua", "set-get-del")

    def run(self, lab, contender):
        one = contender(lab)
        figures, waiting = {}, 0
        one.connection.call("CONFIG", "RESETSTAT")
        longest = 0
        for size in lab.sizes.growth:
            sample = min(lab.sizes.growth_sample, size // (2 * SAMPLES))
            while waiting < size - sample * SAMPLES:
                step = min(STEP, size - sample * SAMPLES - waiting)
                one.push(messages.due_at_random(step, waiting))
                waiting += step
            pushes, pops = [], []
            for _ in range(SAMPLES):
                with one.server.cost(sample) as cost:
                    one.push(messages.due_at_random(sample, waiting))
                waiting += sample
                pushes.append(cost.us)
            longest = one.server.longest_us(*one.longest)
            for _ in range(SAMPLES if one.delays else 0):
                pops.append(self.pop_us(one, sample, waiting))
            figures[str(waiting)] = {"push_us": min(pushes), **({"pop_us": min(pops)} if pops else {})}
        one.close()
        return {"sizes": figures, "longest_push_ms": longest / 1000}

    @staticmethod
    def pop_us(one, sample, first):
        """Takes due messages one by one while the others wait. They are acked afterwards."""
        one.push(messages.due_now(sample, first))
        with one.server.cost(sample) as cost:
            taken = one.collect(sample, 1, 64)
        messages.check_each_once([body for body, _ in taken], sample, first)
        if not one.acks_with_take:
            for some in chunks([handle for _, handle in taken], 1_000):
                one.ack(some, 100, 8)
        return cost.us
