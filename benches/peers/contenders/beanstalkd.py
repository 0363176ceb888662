"""beanstalkd: put, reserve, delete in its own protocol, pipelined. Its delays are whole seconds."""
import os
import shutil
import time

from contenders import waiting
from contenders.base import Contender, Missing
from process import Server
from wire import Incomplete, ServerError

LARGEST_JOB_BYTES = 1 << 24
LEASE_SECONDS = 30
ANSWERS = (b"INSERTED", b"DELETED", b"TIMED_OUT", b"NOT_FOUND", b"USING", b"WATCHING", b"DEADLINE_SOON")


def parse(data, at):
    """Parses the reply at an offset: (id, body) of a reserved job, the body of statistics, or the words of another
    line."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    words, after = bytes(data[at:end]).split(), end + 2
    if words[0] in (b"RESERVED", b"OK"):
        size = int(words[-1])
        if len(data) < after + size + 2:
            raise Incomplete
        body = bytes(data[after:after + size])
        return (words[1], body) if words[0] == b"RESERVED" else body, after + size + 2
    if words[0] not in ANSWERS:
        return ServerError(b" ".join(words).decode()), after
    return words, after


class Beanstalkd(Contender):
    name = "beanstalkd"
    title = "beanstalkd"
    on_redis = False
    batches = False
    whole_seconds = True
    polled = False
    ping = b"peek 0\r\n"

    @classmethod
    def start(cls, lab, arguments, directory):
        program = shutil.which("beanstalkd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
        if not program:
            raise Missing("beanstalkd is not installed: scripts/install-deps.sh bench")
        return Server(lambda port, where: [program, "-l", "127.0.0.1", "-p", str(port), "-z", str(LARGEST_JOB_BYTES)],
                      parse, directory)

    def name_queue(self, queue):
        """Does nothing, because all messages are in the default tube."""

    def encode_push(self, some, batch=1):
        return [b"put 0 %d %d %d\r\n%b\r\n" % (-(-delay // 1000), LEASE_SECONDS, self.size, self.payload(number))
                for number, _, delay in some]

    def take(self, count, batch=1, depth=64):
        replies = self.connection.pipeline([b"reserve-with-timeout 0\r\n"] * count, depth)
        return [(body, name) for name, body in (reply for reply in replies if isinstance(reply, tuple))]

    def ack(self, handles, batch=1, depth=64):
        self.connection.pipeline([b"delete %b\r\n" % name for name in handles], depth)

    def consume(self, arrived, going_on, interval):
        reserve = b"reserve\r\n"

        def on_reply(reply):
            if not isinstance(reply, tuple):  # of a delete
                return None
            arrived(reply[1], time.time_ns())
            return b"delete %b\r\n" % reply[0] + reserve

        waiting.serve(self.server.connections(waiting.CONNECTIONS), reserve, on_reply, going_on)

    def leftovers(self):
        self.connection.send(b"stats\r\n")
        lines = dict(line.split(b": ", 1) for line in self.connection.reply().splitlines() if b": " in line)
        return sum(int(lines[b"current-jobs-" + state])
                   for state in (b"ready", b"reserved", b"delayed", b"buried"))
