"""Ids in a sorted set, bodies in a hash. A script moves due ids to a second sorted set, with the end of the lease as
score, and returns the bodies. An ack removes both. Each poll also looks for leases that ended."""
from contenders.base import Contender, chunks
from messages import now_ms
from wire import encode, template

LEASE_MS = 30_000

POP = """
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local taken = {}
for at, id in ipairs(ids) do
    redis.call('ZREM', KEYS[1], id)
    redis.call('ZADD', KEYS[2], ARGV[3], id)
    taken[2 * at - 1] = id
    taken[2 * at] = redis.call('HGET', KEYS[3], id)
end
return taken
"""

RECLAIM = """
local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 100)
for _, id in ipairs(ended) do
    redis.call('ZREM', KEYS[1], id)
    redis.call('ZADD', KEYS[2], ARGV[1], id)
end
"""


class ZsetHash(Contender):
    name = "zset-hash"
    title = "sorted set + hash"
    replies_each = 2
    longest = ("zadd", "hset")

    def prepare(self):
        self.pop = self.connection.call("SCRIPT", "LOAD", POP)
        self.reclaim = self.connection.call("SCRIPT", "LOAD", RECLAIM)

    def name_queue(self, queue):
        self.delayed, self.processing, self.bodies = f"{queue}:delayed", f"{queue}:processing", f"{queue}:bodies"
        self.store = template("HSET", self.bodies, None, None)
        self.add = template("ZADD", self.delayed, None, None)

    @staticmethod
    def _id(number):
        return b"m%011d" % number

    def encode_push(self, some, batch=1):
        now = now_ms()
        if batch == 1:
            store, add = self.store, self.add
            return [store(self._id(number), self.payload(number)) + add(b"%d" % (due or now), self._id(number))
                    for number, due, _ in some]
        return [encode("HSET", self.bodies, *[word for number, _, _ in group
                                              for word in (self._id(number), self.payload(number))])
                + encode("ZADD", self.delayed, *[word for number, due, _ in group
                                                 for word in (due or now, self._id(number))])
                for group in chunks(some, batch)]

    def fall_due(self):
        self.connection.call("EVALSHA", self.reclaim, 2, self.processing, self.delayed, now_ms())

    def take(self, count, batch=1, depth=64):
        now = now_ms()
        pop = encode("EVALSHA", self.pop, 3, self.delayed, self.processing, self.bodies, now, batch, now + LEASE_MS)
        replies = self.connection.pipeline([pop] * -(-count // batch), depth)
        return [(reply[at + 1], reply[at]) for reply in replies for at in range(0, len(reply), 2)]

    def ack(self, handles, batch=1, depth=64):
        self.connection.pipeline([encode("ZREM", self.processing, *some) + encode("HDEL", self.bodies, *some)
                                  for some in chunks(handles, batch)], depth, replies_each=2)
