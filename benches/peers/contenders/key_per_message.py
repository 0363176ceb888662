"""One key per message, and five more keys for the states: the design of github.com/hdt3213/delayqueue (Go).

A push is SET msg:<id> with a TTL beyond the due time, HSET of the remaining retries, and ZADD to `pending` with the due
time in whole seconds. A poll moves all due messages from `pending` to the list `ready`, and all messages whose lease
ended from `unack` to the list `retry`. A script moves one id from a list to `unack`; the body is read with GET. An ack
is ZREM, DEL and HDEL. The scripts here were written for this benchmark with the same steps.
"""
import time

from contenders.base import Contender
from messages import now_ms
from wire import encode, template

LEASE_SECONDS = 5  # its defaults
TTL_SECONDS = 3_600
RETRIES = 3

# Moves all due messages at once, and pushes them in pieces, because a call in a script takes a limited number of
# arguments.
FALL_DUE = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '0', ARGV[1])
for first = 1, #due, 3998 do
    redis.call('LPUSH', KEYS[2], unpack(due, first, math.min(first + 3997, #due)))
end
if #due > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[1], '0', ARGV[1]) end
"""

TAKE = """
local id = redis.call('RPOP', KEYS[1])
if id then redis.call('ZADD', KEYS[2], ARGV[1], id) end
return id
"""

RETRY = """
local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '0', ARGV[1])
for _, id in ipairs(ended) do
    if redis.call('HINCRBY', KEYS[2], id, -1) >= 0 then
        redis.call('LPUSH', KEYS[3], id)
    else
        redis.call('HDEL', KEYS[2], id)
        redis.call('SADD', KEYS[4], id)
    end
end
if #ended > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[1], '0', ARGV[1]) end
"""


class KeyPerMessage(Contender):
    name = "key-per-message"
    title = "one key per message (hdt3213)"
    batches = False
    whole_seconds = True
    replies_each = 3
    longest = ("set", "hset", "zadd")

    def prepare(self):
        self.scripts = {text: self.connection.call("SCRIPT", "LOAD", text) for text in (FALL_DUE, TAKE, RETRY)}

    def name_queue(self, queue):
        self.pending, self.ready, self.unack, self.retry, self.retries, self.garbage = (
            f"dp:{queue}:{part}" for part in ("pending", "ready", "unack", "retry", "retry:cnt", "garbage"))
        self.body = f"dp:{queue}:msg:".encode()
        self.store = template("SET", None, None, "EX", None)
        self.count = template("HSET", self.retries, None, RETRIES)
        self.add = template("ZADD", self.pending, None, None)

    @staticmethod
    def _id(number):
        return b"%08x-0000-4000-8000-%012x" % (number * 2654435761 % (1 << 32), number)  # of the length of a UUID

    def encode_push(self, some, batch=1):
        now, requests = now_ms(), []
        for number, due, delay in some:
            name = self._id(number)
            requests.append(self.store(self.body + name, self.payload(number), b"%d" % (delay // 1000 + TTL_SECONDS))
                            + self.count(name) + self.add(b"%d" % ((due or now) // 1000), name))
        return requests

    def _run(self, script, *words):
        return encode("EVALSHA", self.scripts[script], *words)

    def fall_due(self):
        seconds = int(time.time())
        self.connection.pipeline([
            self._run(FALL_DUE, 2, self.pending, self.ready, seconds),
            self._run(RETRY, 4, self.unack, self.retries, self.retry, self.garbage, seconds)], 2)

    def take(self, count, batch=1, depth=64):
        lease = int(time.time()) + LEASE_SECONDS
        take = self._run(TAKE, 2, self.ready, self.unack, lease)
        names = [name for name in self.connection.pipeline([take] * count, depth) if name]
        bodies = self.connection.pipeline([encode("GET", self.body + name) for name in names], depth)
        return list(zip(bodies, names))

    def ack(self, handles, batch=1, depth=64):
        self.connection.pipeline([encode("ZREM", self.unack, name) + encode("DEL", self.body + name)
                                  + encode("HDEL", self.retries, name) for name in handles], depth, replies_each=3)
