"""dq: DQ.PUSH or DQ.MPUSH, DQ.POP, DQ.ACK. Consumers wait with BLOCK."""
import time

from contenders import waiting
from contenders.base import Contender, chunks
from process import RedisServer
from wire import encode, template


class Dq(Contender):
    name = "dq"
    title = "dq"
    polled = False
    longest = ("dq.push",)

    @classmethod
    def start(cls, lab, arguments, directory):
        return RedisServer(lab.server, "--loadmodule", lab.module, *arguments, directory=directory)

    def name_queue(self, queue):
        self.queue = queue
        self.push_now = template("DQ.PUSH", queue, None)
        self.push_at = template("DQ.PUSH", queue, None, "AT", None)

    def encode_push(self, some, batch=1):
        if batch == 1:
            return [self.push_at(self.payload(number), b"%d" % due) if due else self.push_now(self.payload(number))
                    for number, due, _ in some]
        return [encode("DQ.MPUSH", self.queue, len(group), *[self.payload(number) for number, _, _ in group],
                       *(("AT", group[0][1]) if group[0][1] else ()))
                for group in chunks(some, batch)]

    def take(self, count, batch=1, depth=64):
        pop = encode("DQ.POP", self.queue, "COUNT", batch) if batch > 1 else encode("DQ.POP", self.queue)
        replies = self.connection.pipeline([pop] * -(-count // batch), depth)
        return [(message[1], message[3]) for reply in replies if reply for message in reply]

    def ack(self, handles, batch=1, depth=64):
        self.connection.pipeline([encode("DQ.ACK", self.queue, *some) for some in chunks(handles, batch)], depth)

    def consume(self, arrived, going_on, interval):
        pop = encode("DQ.POP", self.queue, "COUNT", 100, "BLOCK", 10_000)

        def on_reply(reply):
            if isinstance(reply, int):  # of an ack
                return None
            ns = time.time_ns()
            for message in reply or ():
                arrived(message[1], ns)
            return encode("DQ.ACK", self.queue, *[message[3] for message in reply]) + pop if reply else pop

        waiting.serve(self.server.connections(waiting.CONNECTIONS), pop, on_reply, going_on)

    def leftovers(self):
        """Returns the number of messages, because the key of an empty queue remains."""
        info = self.server.info("dq")
        return sum(int(info[f"dq_{state}"]) for state in ("delayed", "ready", "inflight", "dead"))
