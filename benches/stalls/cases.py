"""The worst cases. Each prepares a queue and then sends its commands, before the timer had a chance to do anything.

If `prepare` sets an instant (`fill.soon`), everything that it pushed or leased ends by then, and the server sleeps
through it. `asked` is the number of messages that the longest command was itself asked to touch.
"""
import time

from fill import BATCH, MARGIN_MS, POPPED
from messages import now_ms
from wire import encode

LARGE_BYTES, LARGE = 1 << 20, 400
MANY = 10_000
GROUPS = 100_000
PUSH_US, TAKE_US = 6.0, 6.0  # what a message may take while a queue is prepared, replica included


class Case:
    """`commands(fill)` are the commands that are sent, `asked(count)` what the longest of them is to touch."""

    def __init__(self, name, title, prepare, commands=lambda fill: [], asked=lambda count: 0, may_wait=True):
        self.name, self.title, self.prepare = name, title, prepare
        self.commands, self.asked, self.may_wait = commands, asked, may_wait


def words(*command):
    return lambda _: [command]


# --- what is in the queue ---

def due_at_once(fill):
    fill.push_due_at(fill.soon(PUSH_US))


def leases_end(fill):
    fill.push_ready()
    fill.take_until(fill.soon(TAKE_US))


def leases_end_limited(fill):
    fill.connection.call("DQ.CREATE", "q", "MAXINFLIGHT", fill.count)
    leases_end(fill)


def last_leases_end(fill):
    fill.connection.call("DQ.CREATE", "q", "RETRIES", 0)
    leases_end(fill)


def ttls_end(fill, *settings):
    """As they are due, so that nobody gets them before."""
    fill.connection.call("DQ.CREATE", "q", *settings)
    fill.push_due_at(fill.soon(PUSH_US), b"TTL", b"1")
    fill.instant += 1


def ttls_end_full(fill):
    ttls_end(fill, "MAXLEN", fill.count)


def ttls_end_trimmed(fill):
    ttls_end(fill, "DEADLEN", 10)


def ttls_of_ready_end(fill):
    fill.soon(PUSH_US)
    fill.push(fill.count, lambda _: (b"TTL", b"%d" % max(fill.instant - int(time.time() * 1000), 1)))


def large_ttls_end(fill):
    fill.connection.call("DQ.CREATE", "q", "DEADLEN", 0)
    body = b"x" * LARGE_BYTES
    instant = fill.soon(0) + 4_000 * fill.patience
    fill.instant = instant + 1
    for at in range(LARGE):
        fill.connection.call("DQ.PUSH", "q", body, "PRIORITY", at % fill.priorities - fill.priorities // 2,
                             "AT", instant, "TTL", 1)


def dead(fill):
    """Expired as they were due, and all of that is over."""
    fill.push(fill.count, lambda _: (b"DELAY", b"1", b"TTL", b"1"))
    until_dead(fill, fill.count)


def until_dead(fill, count):
    while fill.connection.call("DQ.LEN", "q", "dead") < count:
        time.sleep(0.05)


def delayed(fill):
    fill.push_scattered()


def delayed_among_dead(fill):
    """28 of 100 batches are delayed, the others dead."""
    fill.push(fill.count, lambda at: fill.scattered(at) if at % 25 < 7 else (b"DELAY", b"1", b"TTL", b"1"))
    until_dead(fill, fill.count - part(fill.count))


def named(fill):
    fill.push_scattered(ids=lambda number: b"m%d" % number)


def in_flight(fill):
    fill.push_ready()
    fill.take_until(int(time.time() * 1000) + 3_600_000)


def some_in_flight(fill):
    fill.push_ready()
    fill.send([encode("DQ.POP", "q", "COUNT", min(MANY, fill.count // 2), "LEASE", 3_600_000)])


def done_ends(fill):
    """Completed in batches, so that all are kept until one instant or some ms around it."""
    fill.push_ready()
    instant = fill.soon(TAKE_US)
    for _ in range(0, fill.count, POPPED):
        fill.connection.call("DQ.ALTER", "q", "RETAIN", max(instant - int(time.time() * 1000), 1))
        fill.send([encode("DQ.POP", "q", "COUNT", POPPED, "NOACK")])


def group_rates_end(fill):
    """One message of each group was delivered at one instant, and at another one all groups may go on."""
    groups = min(GROUPS, fill.count // 2)
    period = int(MARGIN_MS + fill.count * TAKE_US * fill.patience / 1000)
    fill.connection.call("DQ.CREATE", "q", "GROUPRATE", 1, period)
    fill.push_groups(groups, fill.count // groups)
    fill.instant = now_ms() + period
    fill.send([encode("DQ.POP", "q", "COUNT", groups, "NOACK")])


def batch(fill):
    """All messages are members of one batch."""
    fill.push(fill.count, lambda at: (*fill.scattered(at), b"BATCH", b"b"))
    close_batch(fill)


def close_batch(fill):
    fill.connection.call("DQ.BATCH", "q", "b", "THEN", "all have ended")


def batches(fill):
    """Each hundred messages are members of one batch."""
    fill.push(fill.count, lambda at: (*fill.scattered(at), b"BATCH", b"b%d" % at))


def ttls_of_batch_end(fill):
    fill.push_due_at(fill.soon(PUSH_US), b"TTL", b"1", b"BATCH", b"b")
    close_batch(fill)
    fill.instant += 1


def batch_in_flight(fill):
    fill.push(fill.count, lambda _: (b"BATCH", b"b"))
    close_batch(fill)
    fill.take_until(now_ms() + 3_600_000)


def with_errors(fill):
    """Each message has an error of a past attempt."""
    fill.push(fill.count, lambda at: (*fill.scattered(at), b"ERROR", b"e" * 100))


def groups_paused(fill):
    """Each group has messages and is paused."""
    groups = min(GROUPS, fill.count // 2)
    fill.push_groups(groups, fill.count // groups)
    fill.send([encode("DQ.PAUSE", "q", "GROUP", f"g{group:06d}") for group in range(groups)])


# --- what is asked ---

def part(count):
    """280,000 of a million: the messages that `delayed_among_dead` leaves delayed."""
    batches = count // BATCH
    return (batches // 25 * 7 + min(batches % 25, 7)) * BATCH


def cancel_next(fill):
    return [("DQ.CANCEL", "q", *ids_of(fill, "delayed"))]


def ack_many(fill):
    return [("DQ.ACK", "q", *ids_of(fill, "inflight"))]


def ack_and_pop_many(fill):
    ids = ids_of(fill, "inflight")
    return [("DQ.ACKPOP", "q", len(ids), *ids, "COUNT", MANY)]


def ids_of(fill, state):
    """The ids of the first messages of a state. They are looked at while the case is prepared."""
    return [message[1] for message in fill.connection.call("DQ.PEEK", "q", state, "COUNT", MANY)]


def replace_many(fill):
    ids = [b"m%d" % (number * 7_919 % fill.count) for number in range(MANY)]
    return [("DQ.MPUSH", "q", MANY, *[b"new"] * MANY, "IDS", *ids, "REPLACE", "DELAY", 7_200_000)]


def gather_many(fill):
    return [("DQ.POP", "q", "COUNT", min(MANY, fill.count), "MIN", min(MANY, fill.count), "LINGER", 60_000)]


def one_by_one(fill):
    return [("DQ.REDRIVE", "q", "COUNT", 1)] * MANY


def every(count):
    return count


def many(count):
    return min(MANY, count)


CASES = [
    Case("due", "due at once", due_at_once),
    Case("due-pop", "due at once, POP", due_at_once, words("DQ.POP", "q")),
    Case("due-peek", "due at once, PEEK", due_at_once, words("DQ.PEEK", "q")),
    Case("leases", "leases end", leases_end),
    Case("leases-pop", "leases end, POP", leases_end, words("DQ.POP", "q")),
    Case("leases-ackpop", "leases end, ACKPOP", leases_end, words("DQ.ACKPOP", "q", 1, "nobody")),
    Case("leases-peek", "leases end, PEEK", leases_end, words("DQ.PEEK", "q")),
    Case("leases-info", "leases end, INFO", leases_end, words("DQ.INFO", "q")),
    Case("leases-len", "leases end, LEN", leases_end, words("DQ.LEN", "q", "ready")),
    Case("leases-scan", "leases end, SCAN COUNT 1,000", leases_end, words("DQ.SCAN", "q", 0, "COUNT", 1000),
         lambda _: 1000),
    Case("scan", "SCAN of all for the dead", delayed,
         lambda fill: [("DQ.SCAN", "q", 0, "COUNT", fill.count, "STATE", "dead")], every),
    Case("leases-alter", "leases end, ALTER", leases_end, words("DQ.ALTER", "q", "RETRIES", 3)),
    Case("leases-push", "leases end, PUSH", leases_end, words("DQ.PUSH", "q", "new")),
    Case("leases-limit", "leases end, POP at MAXINFLIGHT", leases_end_limited, words("DQ.POP", "q")),
    Case("leases-purge", "leases end, PURGE ready", leases_end, words("DQ.PURGE", "q", "ready"), every),
    Case("last-leases", "last leases end", last_leases_end),
    Case("last-leases-pop", "last leases end, POP", last_leases_end, words("DQ.POP", "q")),
    Case("last-leases-redrive", "last leases end, REDRIVE COUNT 1", last_leases_end,
         words("DQ.REDRIVE", "q", "COUNT", 1)),
    Case("ttls", "TTLs end", ttls_end),
    Case("ttls-pop", "TTLs end, POP", ttls_end, words("DQ.POP", "q")),
    Case("ttls-push", "TTLs end, PUSH at MAXLEN", ttls_end_full, words("DQ.PUSH", "q", "new")),
    Case("ttls-trimmed", "TTLs end, DEADLEN 10", ttls_end_trimmed, words("DQ.POP", "q")),
    Case("ttls-ready", "TTLs of ready messages end, POP", ttls_of_ready_end, words("DQ.POP", "q"), may_wait=False),
    Case("large", f"TTLs of {LARGE} x 1 MB end", large_ttls_end),
    Case("large-pop", f"TTLs of {LARGE} x 1 MB end, POP", large_ttls_end, words("DQ.POP", "q")),
    Case("deadlen", "all dead, ALTER DEADLEN 10", dead, words("DQ.ALTER", "q", "DEADLEN", 10)),
    Case("deadttl", "all dead, ALTER DEADTTL 1", dead, words("DQ.ALTER", "q", "DEADTTL", 1)),
    *[Case(f"dead-{kind.lower()}", f"all dead, DEADFORWARD {kind}", dead,
           words("DQ.ALTER", "q", "DEADFORWARD", kind, "{q}target")) for kind in ("STREAM", "LIST", "QUEUE")],
    Case("done", "times of done messages end", done_ends),
    Case("done-push", "times of done messages end, PUSH", done_ends, words("DQ.PUSH", "q", "new")),
    Case("done-peek", "times of done messages end, PEEK done", done_ends, words("DQ.PEEK", "q", "done")),
    Case("redrive", "all dead, REDRIVE", dead, words("DQ.REDRIVE", "q"), every),
    Case("redrive-singly", f"all dead, REDRIVE COUNT 1, {MANY:,} times", dead, one_by_one, lambda _: 1),
    Case("cancel", f"CANCEL of {MANY:,} in due order", delayed, cancel_next, many),
    Case("purge", "PURGE delayed of 28 %", delayed_among_dead, words("DQ.PURGE", "q", "delayed"), part),
    Case("promote", "PROMOTE", delayed, words("DQ.PROMOTE", "q"), every),
    Case("promote-many", f"PROMOTE COUNT {MANY:,}", delayed, words("DQ.PROMOTE", "q", "COUNT", MANY), many),
    Case("replace", f"MPUSH REPLACE of {MANY:,}", named, replace_many, many),
    Case("ack", f"ACK of {MANY:,}", in_flight, ack_many, many),
    Case("ackpop", f"ACKPOP of {MANY:,}, COUNT {MANY:,}", some_in_flight, ack_and_pop_many,
         lambda count: min(2 * MANY, count)),
    Case("gather", f"due at once, POP MIN {MANY:,}", due_at_once, gather_many, many),
    Case("gather-ttls", f"TTLs end, POP MIN {MANY:,}", ttls_end, gather_many),
    Case("group-rates", f"{GROUPS:,} groups at their rate may go on", group_rates_end),
    Case("group-rates-pop", f"{GROUPS:,} groups at their rate may go on, POP", group_rates_end, words("DQ.POP", "q")),
    Case("groups-paused", f"GROUPS COUNT 10 of {GROUPS:,} paused groups", groups_paused,
         words("DQ.GROUPS", "q", 0, "COUNT", 10)),
    Case("errors-memory", "MEMORY USAGE of messages with errors", with_errors, words("MEMORY", "USAGE", "q")),
    Case("errors-unlink", "UNLINK of messages with errors", with_errors, words("UNLINK", "q")),
    Case("batch-ttls", "TTLs of a batch end", ttls_of_batch_end),
    Case("batch-ack", f"ACK of {MANY:,} members of a batch", batch_in_flight, ack_many, many),
    Case("batch-purge", "PURGE of a batch", batch, words("DQ.PURGE", "q"), every),
    Case("batch-cancel", "BATCH CANCEL", batch, words("DQ.BATCH", "q", "b", "CANCEL"), every),
    Case("batch-cancel-one", f"BATCH CANCEL of {BATCH} among batches", batches,
         words("DQ.BATCH", "q", "b0", "CANCEL"), lambda _: BATCH),
]
