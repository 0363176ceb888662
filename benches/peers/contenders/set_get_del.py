"""SET, GET and DEL of one key per message: not a queue, but the cost of three of the server's own commands."""
import collections

from contenders.base import Contender
from wire import template


class SetGetDel(Contender):
    name = "set-get-del"
    title = "SET, GET, DEL (no queue)"
    acks = False
    delays = False
    batches = False
    longest = ("set",)

    def name_queue(self, queue):
        self.key = f"{queue}:".encode()
        self.set, self.get, self.delete = template("SET", None, None), template("GET", None), template("DEL", None)
        self.keys = collections.deque()

    def encode_push(self, some, batch=1):
        keys = [self.key + b"%010d" % number for number, _, _ in some]
        self.keys.extend(keys)
        return [self.set(key, self.payload(number)) for key, (number, _, _) in zip(keys, some)]

    def take(self, count, batch=1, depth=64):
        keys = [self.keys.popleft() for _ in range(min(count, len(self.keys)))]
        return list(zip(self.connection.pipeline([self.get(key) for key in keys], depth), keys))

    def ack(self, handles, batch=1, depth=64):
        self.connection.pipeline([self.delete(key) for key in handles], depth)
