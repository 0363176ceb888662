"""A stream and one consumer group: XADD, XREADGROUP, XACK and XDEL. It has no delays, and is the lower bound for
memory."""
from contenders.base import Contender, chunks
from wire import encode, template


class Streams(Contender):
    name = "streams"
    title = "Streams"
    delays = False
    longest = ("xadd",)

    def open_queue(self):
        self.connection.call("XGROUP", "CREATE", self.queue, "g", "$", "MKSTREAM")

    def name_queue(self, queue):
        self.queue = queue
        self.add = template("XADD", queue, "*", "p", None)

    def encode_push(self, some, batch=1):
        """Encodes a batch as several commands in one write, because a stream cannot add several messages at once."""
        self.replies_each = min(batch, len(some))
        return [b"".join([self.add(self.payload(number)) for number, _, _ in group]) for group in chunks(some, batch)]

    def take(self, count, batch=1, depth=64):
        read = encode("XREADGROUP", "GROUP", "g", "c", "COUNT", batch, "STREAMS", self.queue, ">")
        replies = self.connection.pipeline([read] * -(-count // batch), depth)
        return [(fields[1], name) for reply in replies if reply for name, fields in reply[0][1]]

    def ack(self, handles, batch=1, depth=64):
        self.connection.pipeline([encode("XACK", self.queue, "g", *some) + encode("XDEL", self.queue, *some)
                                  for some in chunks(handles, batch)], depth, replies_each=2)

    def leftovers(self):
        return self.connection.call("XLEN", self.queue) + self.connection.call("XPENDING", self.queue, "g")[0]
