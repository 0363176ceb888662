"""Many waiting messages on disk: the sizes of the RDB file and of the AOF, and the CPU time to save and to load
them."""
import os

import messages
from workloads.base import Workload, scaled

AOF = ("--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0")


class Persistence(Workload):
    name = "persistence"
    title = "RDB and AOF"
    peers = ("dq", "zset-lua", "zset-hash", "zset-list", "key-per-message", "streams", "set-get-del")

    def run(self, lab, contender):
        count = scaled(contender, lab.sizes.files)
        figures = {"messages": count, **self.rdb(lab, contender, count), **self.aof(lab, contender, count)}
        figures["aof_life_one_bytes"] = self.aof_life(lab, contender, count // 10, 1, 64)
        if contender.batches:
            figures["aof_life_bytes"] = self.aof_life(lab, contender, count // 10, 100, 8)
        return figures

    def rdb(self, lab, contender, count):
        idle = self.idle_seconds(lab, contender)
        one = contender(lab)
        directory = one.server.directory
        one.push(messages.due_at_random(count))
        with one.server.cost(count) as save:
            one.connection.call("SAVE")
        size = os.path.getsize(os.path.join(directory, "dump.rdb"))
        one.close(keep_files=True)
        load = self.loading(lab, contender, (), directory)
        return {"rdb_bytes": size / count - one.size, "save_seconds": save.cpu_seconds, "load_seconds": load - idle}

    def aof(self, lab, contender, count):
        idle = self.idle_seconds(lab, contender)
        one = contender(lab, arguments=AOF)
        directory = one.server.directory
        before = self.aof_bytes(one)
        one.push(messages.due_at_random(count))
        size = self.aof_bytes(one) - before
        one.close(keep_files=True)
        load = self.loading(lab, contender, AOF, directory)
        return {"aof_push_bytes": size / count - one.size, "aof_load_seconds": load - idle}

    def aof_life(self, lab, contender, count, batch, depth):
        """Returns the bytes per message, without its payload, for push + pop + ack in batches of this size."""
        one = contender(lab, arguments=AOF)
        before = self.aof_bytes(one)
        one.push(messages.due_now(count), batch, depth)
        taken = one.collect(count, batch, depth, ack=True)
        messages.check_each_once([body for body, _ in taken], count)
        size = self.aof_bytes(one) - before
        one.close()
        return size / count - one.size

    @staticmethod
    def aof_bytes(one):
        return int(one.server.info("persistence")["aof_current_size"])

    @staticmethod
    def loading(lab, contender, arguments, directory):
        """Returns the CPU seconds of a start that loads the files in the directory, which is then removed."""
        server = contender.start(lab, arguments, directory)
        seconds = server.cpu_ns() / 1e9
        server.stop()
        return seconds

    def idle_seconds(self, lab, contender):
        """Returns the CPU seconds of a start without data."""
        return self.loading(lab, contender, (), None)
