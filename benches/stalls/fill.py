"""Fills a queue quickly: large batches whose replies the server does not send (CLIENT REPLY OFF)."""
from messages import now_ms, payload
from wire import encode

BATCH = 100
PAYLOAD_BYTES = 100
POPPED = 10_000  # messages that a pop takes
SENT_BYTES = 4 << 20  # written at a time
MARGIN_MS = 1_500  # for catching up with the replica, and a little
LEAD_MS = 100  # before an instant, in which the server is put to sleep


class TooSlow(Exception):
    """The instant at which everything was to end came before the case was prepared."""


class Filler:
    """The queue `q` of a master. `patience` is how much more time than usual the preparations get."""

    def __init__(self, server, count, priorities, patience):
        self.server, self.connection = server, server.connection
        self.count, self.priorities, self.patience = count, priorities, patience
        self.instant = None  # when everything ends, Unix ms
        self.bodies = b"".join(b"$%d\r\n%b\r\n" % (PAYLOAD_BYTES, payload(at, PAYLOAD_BYTES)) for at in range(BATCH))

    def soon(self, us_a_message):
        """An instant that should come after a step that takes so long has ended."""
        self.instant = now_ms() + MARGIN_MS + int(self.count * us_a_message * self.patience / 1000)
        return self.instant

    def send(self, requests):
        """Sends requests, and waits until they are done."""
        self.connection.send(encode("CLIENT", "REPLY", "OFF"))
        waiting, size = [], 0
        for request in requests:
            waiting.append(request)
            size += len(request)
            if size > SENT_BYTES:
                self.connection.send(b"".join(waiting))
                waiting, size = [], 0
        self.connection.send(b"".join(waiting) + encode("CLIENT", "REPLY", "ON"))
        self.connection.reply()

    def push(self, count, options, ids=None):
        """Pushes in batches of one priority each, in turn. `options(batch)` are further words; `ids` names them."""
        self.send(self.batch(at, options(at), ids) for at in range(count // BATCH))

    def batch(self, at, options, ids):
        words = [b"PRIORITY", b"%d" % (at % self.priorities - self.priorities // 2), *options]
        if ids:
            words += [b"IDS", *[ids(at * BATCH + number) for number in range(BATCH)]]
        head = b"*%d\r\n$8\r\nDQ.MPUSH\r\n$1\r\nq\r\n$%d\r\n%d\r\n" % (
            3 + BATCH + len(words), len(str(BATCH)), BATCH)
        return head + self.bodies + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)

    def push_groups(self, groups, each):
        """Pushes so many messages into each group."""
        body = b"$1\r\nx\r\n" * each
        head = b"*%d\r\n$8\r\nDQ.MPUSH\r\n$1\r\nq\r\n$%d\r\n%d\r\n" % (5 + each, len(str(each)), each)
        self.send(b"%b%b$5\r\nGROUP\r\n$7\r\ng%06d\r\n" % (head, body, group) for group in range(groups))

    def push_ready(self):
        self.push(self.count, lambda _: ())

    def push_due_at(self, instant, *words):
        """All due at one instant."""
        self.push(self.count, lambda _: (b"AT", b"%d" % instant, *words))

    def push_scattered(self, ids=None):
        self.push(self.count, self.scattered, ids)

    @staticmethod
    def scattered(at):
        """Due within an hour from an hour from now on, batches in no order."""
        return b"DELAY", b"%d" % (3_600_000 + at * 48_271 % 3_600_000)

    def take_until(self, instant):
        """Delivers all messages, with leases that end at one instant or some ms around it."""
        for _ in range(0, self.count, POPPED):
            lease = max(instant - now_ms(), 1)
            self.send([encode("DQ.POP", "q", "COUNT", POPPED, "LEASE", lease)])

    def until_in_time(self):
        """Everything is prepared: fails if the instant came before."""
        if self.instant and now_ms() > self.instant - LEAD_MS:
            raise TooSlow
