#!/usr/bin/env python3
"""A consumer with redis-py (pip install redis): python3 consumer.py [port]"""

import signal
import sys

import redis

QUEUE = "orders:close"
BLOCK_MS = 5000
PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 6379
# The socket must be more patient than BLOCK. decode_responses: payloads here are text.
r = redis.Redis(port=PORT, socket_timeout=BLOCK_MS / 1000 + 5, decode_responses=True)


def close_order(order):
    print("closing", order)


running = True


def stop(*_):
    global running
    running = False  # the message in hand is still finished


signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)

r.execute_command("DQ.PUSH", QUEUE, "order 1001", "ID", "order-1001", "DELAY", 2000)

while running:
    messages = r.execute_command("DQ.POP", QUEUE, "COUNT", 10, "BLOCK", BLOCK_MS)
    for id, payload, attempt, receipt in messages or []:  # None: nothing came in time
        try:
            close_order(payload)
        except Exception as error:
            state = r.execute_command("DQ.NACK", QUEUE, receipt, "ERROR", str(error))
            print(f"{id} failed at attempt {attempt}: {error}; now {state}", file=sys.stderr)
        else:
            # 0: the lease had ended and another consumer has the message. Work that takes long calls DQ.EXTEND.
            if r.execute_command("DQ.ACK", QUEUE, receipt) == 0:
                print(f"{id} was done too late", file=sys.stderr)
