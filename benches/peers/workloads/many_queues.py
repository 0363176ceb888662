"""Memory of many queues that hold one message each: `used_memory` a queue, its payload included; for dq MEMORY USAGE
of one of them too, which leaves out the place of the key and what the schedule holds."""
import messages
from workloads.base import Workload


class ManyQueues(Workload):
    name = "many-queues"
    title = "queues of one message, bytes a queue"
    peers = ("dq", "zset-lua", "zset-hash", "key-per-message", "streams")

    def run(self, lab, contender):
        one = contender(lab)
        count = lab.sizes.queues
        before = one.server.memory_bytes()
        requests = []
        for message in messages.due_at_random(count):
            one.name_queue(f"q{message[0]:07d}")
            requests.extend(one.encode_push([message]))
            one.open_queue()
        with one.server.cost(count) as cost:
            one.connection.pipeline(requests, 64, one.replies_each)
        figures = {"queues": count, "bytes": (one.server.memory_bytes() - before) / count, "push_us": cost.us}
        if one.name == "dq":
            figures["usage_bytes"] = one.connection.call("MEMORY", "USAGE", one.queue, "SAMPLES", 0)
        return figures
