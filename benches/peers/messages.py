"""Messages of the benchmark: tuples (number, due, delay) with `due` in Unix ms and `delay` in ms. Two zeros mean at
once.

The number is in the first ten bytes of the payload, so that a consumer can identify the message.
"""
import random
import time

NUMBER_BYTES = 10


def _orders(size, random_numbers):
    """Returns `size` bytes of JSON as applications send it: the same fields with different values."""
    lines = []
    while size > 0:
        lines.append(b'{"order":%d,"customer":"c%06d","total":"%d.%02d","currency":"EUR","close":%s}' % (
            random_numbers.randrange(10**9), random_numbers.randrange(10**6), random_numbers.randrange(1_000),
            random_numbers.randrange(100), random_numbers.choice([b"true", b"false"])))
        size -= len(lines[-1])
    return b"".join(lines)


# The bytes that follow the number. Each message takes them from a different offset.
FILLING = _orders(1 << 20, random.Random(0))


class CheckFailed(Exception):
    """A contender lost, repeated or kept a message, or broke a promise that the benchmark checks."""


def now_ms():
    return time.time_ns() // 1_000_000


def payload(number, size):
    """Returns a payload of `size` bytes that begins with the number."""
    rest = size - NUMBER_BYTES
    at = number * 7_919 & 0xfffff
    if at + rest <= len(FILLING):
        return b"%010d" % number + FILLING[at:at + rest]
    return b"%010d" % number + (FILLING * (rest // len(FILLING) + 1))[:rest]


def number_of(body):
    return int(body[:NUMBER_BYTES])


def due_now(count, first=0):
    return [(number, 0, 0) for number in range(first, first + count)]


def due_at(due, count, first=0):
    """Returns messages that are all due at one instant."""
    delay = max(due - now_ms(), 0)
    return [(number, due, delay) for number in range(first, first + count)]


def due_at_random(count, first=0, seed=1, earliest=3_600_000, window=3_600_000):
    """Returns messages that are due at random within an hour that begins in an hour, so that none falls due during the
    run."""
    order, now = random.Random(seed + first), now_ms()
    delays = [order.randrange(earliest, earliest + window) for _ in range(count)]
    return [(first + at, now + delay, delay) for at, delay in enumerate(delays)]


def check_each_once(bodies, count, first=0):
    """Checks that exactly the numbers from `first` on arrived, each once."""
    seen = bytearray(count)
    for body in bodies:
        at = number_of(body) - first
        if not 0 <= at < count:
            raise CheckFailed(f"message {at + first} was not pushed")
        if seen[at]:
            raise CheckFailed(f"message {at + first} came twice")
        seen[at] = 1
    missing = seen.count(0)
    if missing:
        raise CheckFailed(f"{missing} of {count} messages never came")
