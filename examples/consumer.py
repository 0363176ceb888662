#!/usr/bin/env python3
"""A consumer with redis-py (pip install redis): python3 consumer.py [port]

Replace close_order with your own work. To give it something to do: redis-cli DQ.PUSH orders:close "order 1001"
"""

import contextlib
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time

import redis
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.retry import Retry

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 6379
QUEUE = "orders:close"
CONCURRENCY = 4  # how many messages are worked on at the same time
LEASE_MS = 30_000  # if this process dies, its messages are delivered again after this time
BLOCK_MS = 5_000
NAME = f"{QUEUE}@{socket.gethostname()}:{os.getpid()}"  # no spaces

logging.basicConfig(level=logging.INFO)
log = logging.getLogger()


def close_order(order, lost):
    """Does the work. `lost` is an Event: once it is set, another consumer may have the message, so stop and raise."""
    log.info("closing %s", order)
    if lost.wait(timeout=1):  # stands for work that takes a second
        raise RuntimeError("the lease was lost")


def connect(**options):
    return redis.Redis(port=PORT, decode_responses=True, **options)


r = connect(socket_timeout=2, retry=Retry(ExponentialBackoff(), 3))  # for everything but waiting; threads may share it
stopping = threading.Event()


@contextlib.contextmanager
def lease_kept(receipt):
    """Extends a lease at half time. The Event that it gives is set when the lease is lost."""
    lost, done = threading.Event(), threading.Event()

    def extend():
        end, pause = time.monotonic() + LEASE_MS / 1000, LEASE_MS / 2000
        while not done.wait(pause):
            sent = time.monotonic()
            try:
                if r.execute_command("DQ.EXTEND", QUEUE, receipt, "LEASE", LEASE_MS) is None:
                    break
                end, pause = sent + LEASE_MS / 1000, LEASE_MS / 2000
            except redis.RedisError:
                pause = 1
                if time.monotonic() > end:  # the server cannot be asked, and the lease has run out
                    break
        lost.set()

    threading.Thread(target=extend, daemon=True).start()
    try:
        yield lost
    finally:
        done.set()


def handle(id, payload, attempt, receipt):
    if stopping.is_set():  # it came together with the signal: given back, and this attempt is not counted
        r.execute_command("DQ.NACK", QUEUE, receipt, "NOCOUNT")
        return
    try:
        with lease_kept(receipt) as lost:
            close_order(payload, lost)
    except Exception as error:
        state = r.execute_command("DQ.NACK", QUEUE, receipt, "ERROR", str(error))
        log.warning("%s failed at attempt %d: %s; now %s", id, attempt, error, state or "not ours")
    else:
        if r.execute_command("DQ.ACK", QUEUE, receipt) == 0:
            log.warning("%s was done too late: its lease was lost", id)


def consume():
    """Takes one message at a time, so that no lease runs while its message waits in this process."""
    # The socket timeout must be longer than BLOCK. No retry: a pop that is sent again may lease a second message.
    waiting = connect(client_name=NAME, socket_timeout=BLOCK_MS / 1000 + 5, retry=Retry(NoBackoff(), 0))
    while not stopping.is_set():
        try:
            messages = waiting.execute_command("DQ.POP", QUEUE, "LEASE", LEASE_MS, "BLOCK", BLOCK_MS)
            for message in messages or []:  # None: nothing came in time
                handle(*message)
        except redis.RedisError as error:  # the next command reconnects
            log.error(error)
            stopping.wait(1)


def unblock():
    """Ends the waiting of idle threads. A message that has been delivered to one of them is not lost by it."""
    for client in r.client_list():
        if client["name"] == NAME:
            r.client_unblock(client["id"])


signals = queue.SimpleQueue()  # its put() may be called in a signal handler
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *received: signals.put(received))
threads = [threading.Thread(target=consume) for _ in range(CONCURRENCY)]
for thread in threads:
    thread.start()

signals.get()
stopping.set()
log.info("stopping")
for thread in threads:  # work that has begun is finished
    while thread.is_alive():
        with contextlib.suppress(redis.RedisError):
            unblock()  # again and again: a thread may have been about to wait
        thread.join(0.1)
