"""The life of messages as workers have them: DQ.ACKPOP acks a message and takes the next one.

It is compared with push, pop and ack, and with SET, GET and DEL, in interleaved rounds on the same server: in a
pipeline of 64, one command at a time, in hundreds, and with an AOF.
"""
import messages
from workloads import control
from workloads.base import Workload, median
from workloads.durable_life import AOF
from workloads.life import BATCH, BATCH_DEPTH, Life
from wire import encode

PIPELINED = 64


class Worker(Workload):
    name = "worker"
    title = "push and ACKPOP, CPU us a message"
    peers = ("dq",)

    def run(self, lab, contender):
        figures = {}
        for way, arguments in (("memory", ()), ("aof", AOF)):
            one = contender(lab, arguments=arguments)
            figures[way] = self.in_rounds(one, lab.sizes.life, lab.sizes.rounds)
            one.close()
        return figures

    @classmethod
    def in_rounds(cls, one, count, times):
        cls.live(one, count // 4, PIPELINED)  # warms up
        rounds = []
        for _ in range(times):
            control_us = control.three_commands_us(one.server, count)
            three_us = Life.live(one, count, 1, PIPELINED)["life_us"]
            before = int(one.server.info("persistence").get("aof_current_size", 0))
            life_us = cls.live(one, count, PIPELINED)
            written = int(one.server.info("persistence").get("aof_current_size", 0)) - before
            batch_us = cls.live(one, count, BATCH_DEPTH, BATCH)
            rounds.append({"control_us": control_us, "life_us": life_us, "ratio": life_us / control_us,
                           "of_three": life_us / three_us, "aof_bytes": written / count - one.size,
                           "alone_of_three": cls.live(one, count // 4, 1) / cls.live_in_three(one, count // 4),
                           "batch_life_us": batch_us, "batch_ratio": batch_us / control_us})
        return {figure: median([each[figure] for each in rounds]) for figure in rounds[0]}

    @staticmethod
    def live(one, count, depth, batch=1):
        """Pushes all; then a worker with `depth` deliveries in hand acks each and takes the next. CPU us a message."""
        words = ("COUNT", batch) if batch > 1 else ()
        pop = encode("DQ.POP", one.queue, *words)
        bodies, held = [], []
        with one.server.cost(count) as cost:
            one.push(messages.due_now(count), batch, depth)
            while len(bodies) < count or held:
                requests = [encode("DQ.ACKPOP", one.queue, len(some), *some, *words) for some in held] or [pop] * depth
                replies = one.connection.pipeline(requests, depth)
                if held:
                    if [reply[0] for reply in replies] != [len(some) for some in held]:
                        raise messages.CheckFailed("an ack did not count")
                    replies = [reply[1] for reply in replies]
                bodies.extend(message[1] for reply in replies if reply for message in reply)
                held = [[message[3] for message in reply] for reply in replies if reply]
        messages.check_each_once(bodies, count)
        one.check_empty()
        return cost.us

    @staticmethod
    def live_in_three(one, count):
        """Pushes, takes and acks with one command at a time, each message before the next one."""
        with one.server.cost(count) as cost:
            one.push(messages.due_now(count), 1, 1)
            pop = encode("DQ.POP", one.queue)
            for _ in range(count):
                (message,) = one.connection.pipeline([pop], 1)[0]
                one.ack([message[3]], 1, 1)
        one.check_empty()
        return cost.us
