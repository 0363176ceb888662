"""A sorted set of payloads, from which a script moves a limited number of due ones at a time into a list. Consumers
take from the list. There is no ack."""
from contenders.base import POLL_MESSAGES
from contenders.zset_lua import ZsetLua
from messages import now_ms
from wire import encode

MIGRATE = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #due > 0 then
    redis.call('ZREM', KEYS[1], unpack(due))
    redis.call('RPUSH', KEYS[2], unpack(due))
end
return #due
"""


class ZsetList(ZsetLua):
    name = "zset-list"
    title = "sorted set moved to a list"

    def prepare(self):
        self.migrate = self.connection.call("SCRIPT", "LOAD", MIGRATE)

    def name_queue(self, queue):
        super().name_queue(queue)
        self.ready = f"{queue}:ready"

    def fall_due(self):
        return self.connection.call("EVALSHA", self.migrate, 2, self.queue, self.ready, now_ms(), POLL_MESSAGES)

    def take(self, count, batch=1, depth=64):
        pop = encode("LPOP", self.ready, batch) if batch > 1 else encode("LPOP", self.ready)
        replies = self.connection.pipeline([pop] * -(-count // batch), depth)
        bodies = [body for reply in replies if reply for body in reply] if batch > 1 else replies
        return [(body, None) for body in bodies if body is not None]
