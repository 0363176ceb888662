"""Only a sorted set: a member is a payload that was made unique, and its score is the due time. A script takes and
removes due members. There is no ack, so a message is lost with the consumer that took it."""
from contenders.base import Contender, chunks
from messages import now_ms
from wire import encode, template

POP = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
return due
"""


class ZsetLua(Contender):
    name = "zset-lua"
    title = "sorted set + Lua"
    acks = False
    acks_with_take = True
    longest = ("zadd",)

    def prepare(self):
        self.pop = self.connection.call("SCRIPT", "LOAD", POP)

    def name_queue(self, queue):
        self.queue = queue
        self.add = template("ZADD", queue, None, None)

    def encode_push(self, some, batch=1):
        now = now_ms()
        if batch == 1:
            return [self.add(b"%d" % (due or now), self.payload(number)) for number, due, _ in some]
        return [encode("ZADD", self.queue, *[word for number, due, _ in group
                                             for word in (due or now, self.payload(number))])
                for group in chunks(some, batch)]

    def take(self, count, batch=1, depth=64):
        pop = encode("EVALSHA", self.pop, 1, self.queue, now_ms(), batch)
        replies = self.connection.pipeline([pop] * -(-count // batch), depth)
        return [(body, None) for reply in replies for body in reply]
