"""The interface of all contenders. One object is one queue on a server of its own.

Producing has two steps, `encode_push` and `push`, so that requests can be encoded in advance. Consuming is a poll:
`fall_due` (how the algorithm finds due messages), `take` and `ack`. `consume` is the whole loop of a consumer for some
time.
"""
import copy
import itertools
import time

from messages import CheckFailed
from process import RedisServer
import messages
import wire

POLL_MESSAGES = 1_000  # taken by one poll at most, before it asks again what is due
STALLED_SECONDS = 60
SETTLE_SECONDS = 2


class Missing(Exception):
    """The contender's program is not available and could not be installed."""


class Contender:
    name = ""  # in options and JSON
    title = ""  # in tables
    acks = True  # what a consumer took and did not finish is delivered again
    delays = True
    batches = True  # it has commands for many messages at once
    whole_seconds = False  # delays are whole seconds
    polled = True  # consumers ask again and again; otherwise the server serves waiting consumers
    on_redis = True
    acks_with_take = False  # a taken message is done: take and ack are one cost
    share = 1.0  # of a workload's messages, where all of them would take too long
    bulk = 1  # how many messages a push has where very many are to be there soon
    own_client = False  # not driven over our connections
    replies_each = 1  # replies to one push
    ping = wire.encode("PING")
    longest = ()  # commands in LATENCY HISTOGRAM that a push consists of

    def __init__(self, lab, size=100, arguments=(), directory=None):
        self.lab, self.size = lab, size
        self.server = self.start(lab, arguments, directory)
        self.connection = self.server.connection
        self.name_queue("q")
        self.prepare()
        self.open_queue()

    @classmethod
    def start(cls, lab, arguments, directory):
        return RedisServer(lab.server, *arguments, directory=directory)

    def prepare(self):
        """Prepares the server after its start, for example by loading scripts."""

    def open_queue(self):
        """Creates the named queue, if that is a step of its own."""

    def name_queue(self, queue):
        """Uses this queue from now on."""
        raise NotImplementedError

    def close(self, keep_files=False):
        self.server.stop(keep_files)

    def on_own_connection(self):
        """Returns the same queue over another connection, for another process."""
        other = copy.copy(self)
        other.connection = self.server.connect()
        return other

    def payload(self, number):
        return messages.payload(number, self.size)

    # --- producing ---

    def encode_push(self, some, batch=1):
        """Returns requests that push messages, `batch` in each. A batch has the due time of its first message."""
        raise NotImplementedError

    def push(self, some, batch=1, depth=64, wire=None):
        requests = self.encode_push(some, batch)
        return (wire or self.connection).pipeline(requests, depth, self.replies_each)

    # --- consuming ---

    def fall_due(self):
        """Does what a poll does before it takes messages."""

    def take(self, count, batch=1, depth=64):
        """Takes up to `count` due messages, as (payload, handle)."""
        raise NotImplementedError

    def ack(self, handles, batch=1, depth=64):
        """Acknowledges the messages with these handles."""

    def collect(self, count, batch=1, depth=64, ack=False):
        """Polls until `count` messages are taken. Acks the messages of each poll at once if asked to."""
        taken, deadline = [], time.monotonic() + STALLED_SECONDS
        while len(taken) < count:
            self.fall_due()
            some = self.take(min(count - len(taken), POLL_MESSAGES), batch, depth)
            if some:
                deadline = time.monotonic() + STALLED_SECONDS
                taken.extend(some)
                if ack:
                    self.ack([handle for _, handle in some], batch, depth)
            elif time.monotonic() > deadline:
                raise CheckFailed(f"only {len(taken)} of {count} messages came")
        return taken

    def consume(self, arrived, going_on, interval):
        """Runs a consumer that polls every `interval` seconds, calls `arrived(payload, ns)` for each message, and acks
        it."""
        batch = 100 if self.batches else 1
        wake = time.monotonic()
        while going_on():
            while True:
                self.fall_due()
                some = self.take(100, batch)
                ns = time.time_ns()
                for body, _ in some:
                    arrived(body, ns)
                self.ack([handle for _, handle in some], batch)
                if not some:
                    break
            wake += interval
            time.sleep(max(wake - time.monotonic(), 0))

    # --- checks ---

    def leftovers(self):
        """Returns what is left on the server at the end: the number of messages, or of keys."""
        return self.connection.call("DBSIZE")

    def check_empty(self):
        """Checks that nothing is left. The last acks of closed connections may take a moment to arrive."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self.leftovers():
            if time.monotonic() > deadline:
                raise CheckFailed(f"{self.leftovers()} left when all was done")
            time.sleep(0.05)


def chunks(items, size):
    """Splits the items into lists of `size`."""
    items = iter(items)
    while True:
        some = list(itertools.islice(items, size))
        if not some:
            return
        yield some
