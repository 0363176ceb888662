"""Push, pop and ack of messages of 10 bytes to 8 MiB, one by one: CPU us per message, and MB of payload per CPU
second."""
import messages
from workloads.base import Workload
from workloads.life import Life

IN_FLIGHT_BYTES = 8 << 20


class PayloadSizes(Workload):
    name = "payload-sizes"
    title = "life by payload, CPU us a message"
    peers = ("dq", "zset-lua", "zset-hash", "streams", "beanstalkd", "set-get-del")

    def run(self, lab, contender):
        figures = {}
        for size in lab.sizes.payload_bytes:
            count = max(min(lab.sizes.payload_total_bytes // size, lab.sizes.payload_most), 4)
            one = contender(lab, size=size)
            lives = [Life.live(one, count, 1, max(min(64, IN_FLIGHT_BYTES // size), 1)) for _ in range(3)]
            one.close()
            us = min(life["life_us"] for life in lives)
            figures[str(size)] = {"messages": count, "life_us": us, "mb_a_cpu_second": size / us}
        return figures
