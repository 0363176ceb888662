#!/usr/bin/env python3
"""Measures the module inside a real server, against the server's own commands in the same run.

Figures are CPU time of the server's main thread (/proc/PID/task/PID/schedstat), which does not depend on how busy
the machine is otherwise, the server's own LATENCY HISTOGRAM, used_memory, and INFO dq. The server is pinned to the
first core and the load to the second where there are two. Standard library only.

    benches/server.py [--quick] [--server PATH] [--module PATH] [--json FILE]
"""
import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PAYLOAD = b"x" * 100


class Connection:
    """RESP2 over a socket: requests are written in bulk, replies are only counted or parsed on demand."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = self.socket.makefile("rb", buffering=1 << 20)

    def call(self, *words):
        self.socket.sendall(encode(words))
        return self.reply()

    def pipeline(self, commands):
        self.socket.sendall(b"".join(map(encode, commands)))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.buffer.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.buffer.read(size + 2)[:-2]
        if kind == b"*":
            return None if int(rest) < 0 else [self.reply() for _ in range(int(rest))]
        if kind == b":":
            return int(rest)
        if kind == b"-":
            raise RuntimeError(rest.decode())
        return rest


def encode(words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Server:
    def __init__(self, binary, module, *extra):
        self.dir = tempfile.mkdtemp(prefix="dq-bench-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        arguments = [binary, "--port", str(self.port), "--dir", self.dir, "--save", "", "--appendonly", "no",
                     "--loadmodule", module, *extra]
        pin = (lambda: os.sched_setaffinity(0, {0})) if os.cpu_count() > 1 else None
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, preexec_fn=pin)
        deadline = time.time() + 20
        while True:
            try:
                self.connection = Connection(self.port)
                if self.connection.call("PING") == b"PONG":
                    break
            except OSError:
                if time.time() > deadline or self.process.poll() is not None:
                    sys.exit("the server did not start; run it by hand with the same --loadmodule to see why")
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def cpu_ns(self):
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/schedstat") as stat:
            return int(stat.read().split()[0])

    def info(self, section):
        text = self.connection.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def longest_us(self, command):
        """Upper bound of the slowest bucket of LATENCY HISTOGRAM, us."""
        reply = self.connection.call("LATENCY", "HISTOGRAM", command)
        return reply[1][3][-2] if reply else 0


def measure(server, wire, messages):
    """CPU us a message of requests that are encoded beforehand: list of (bytes, replies)."""
    connection = server.connection
    before = server.cpu_ns()
    answers = []
    for request, replies in wire:
        connection.socket.sendall(request)
        answers.append([connection.reply() for _ in range(replies)])
    return (server.cpu_ns() - before) / messages / 1000, answers


def pipelined(commands, depth=64):
    encoded = [encode(command) for command in commands]
    return [(b"".join(encoded[at:at + depth]), len(encoded[at:at + depth])) for at in range(0, len(encoded), depth)]


def life(server, count):
    """push, pop and ack of ready messages, one a command, and SET, GET, DEL of as many keys: CPU us each."""
    figures = {}
    keys = [b"key:%d" % n for n in range(count)]
    for name, commands in (("SET", [("SET", key, PAYLOAD) for key in keys]),
                           ("GET", [("GET", key) for key in keys]),
                           ("DEL", [("DEL", key) for key in keys])):
        figures[name], _ = measure(server, pipelined(commands), count)
    figures["push"], answers = measure(server, pipelined([("DQ.PUSH", "q", PAYLOAD)] * count), count)
    pushed = [identifier for batch in answers for identifier in batch]
    figures["pop"], answers = measure(server, pipelined([("DQ.POP", "q")] * count), count)
    popped = [message[0][0] for batch in answers for message in batch]
    assert popped == pushed, "each message once, in push order"
    receipts = [message[0][3] for batch in answers for message in batch]
    figures["ack"], answers = measure(server, pipelined([("DQ.ACK", "q", receipt) for receipt in receipts]), count)
    assert sum(sum(batch) for batch in answers) == count and server.connection.call("DQ.LEN", "q") == 0
    return figures


def batches(server, count, size=100):
    """The same life with deliveries and acks of a hundred: CPU us a message."""
    figures = {}
    figures["push"], _ = measure(server, pipelined([("DQ.PUSH", "q", PAYLOAD)] * count), count)
    wire = pipelined([("DQ.POP", "q", "COUNT", size)] * (count // size), 8)
    figures["pop x100"], answers = measure(server, wire, count)
    receipts = [[message[3] for message in reply] for batch in answers for reply in batch]
    wire = pipelined([("DQ.ACK", "q", *some) for some in receipts], 8)
    figures["ack x100"], answers = measure(server, wire, count)
    assert sum(sum(batch) for batch in answers) == count
    return figures


def delayed(server, count, window_ms=3_600_000):
    """Pushes due at random times: CPU us, bytes beyond the payload, and a ZADD of a 12-byte member beside it."""
    order = random.Random(1)
    delays = [order.randrange(1_000_000, 1_000_000 + window_ms) for _ in range(count)]
    before = int(server.info("memory")["used_memory"])
    cpu, _ = measure(server, pipelined([("DQ.PUSH", "d", PAYLOAD, "DELAY", delay) for delay in delays]), count)
    after = int(server.info("memory")["used_memory"])
    zadd, _ = measure(server, pipelined([("ZADD", "z", delay, b"%012d" % n) for n, delay in enumerate(delays)]), count)
    return {"push delayed": cpu, "ZADD": zadd, "bytes a message": (after - before) / count - len(PAYLOAD)}


def growth(server, count):
    """Pushes one by one at random times: the longest command that the server saw."""
    server.connection.call("CONFIG", "RESETSTAT")
    order = random.Random(2)
    step = 100_000
    first = last = 0.0
    for at in range(0, count, step):
        commands = [("DQ.PUSH", "g", PAYLOAD, "DELAY", order.randrange(3_600_000, 7_200_000)) for _ in range(step)]
        cpu, _ = measure(server, pipelined(commands), step)
        first, last = first or cpu, cpu
    return {"longest push us": server.longest_us("dq.push"), "push at the start": first, "push at the end": last}


def burst(server, count):
    """Messages due at one instant: the longest run of the timer, and the order in which they are delivered."""
    connection = server.connection
    due = int(time.time() * 1000) + 1_000 + count // 20
    for wire in pipelined([("DQ.PUSH", "b", n, "AT", due) for n in range(count)], 256):
        connection.socket.sendall(wire[0])
        for _ in range(wire[1]):
            connection.reply()
    assert time.time() * 1000 < due, "the pushes took too long; the burst would come in parts"
    before = int(server.info("dq")["dq_timer_moved"])
    while int(server.info("dq")["dq_timer_moved"]) - before < count:
        time.sleep(0.005)
    figures = {"longest timer run us": int(server.info("dq")["dq_timer_longest_us"])}
    expected = 0
    while messages := connection.call("DQ.POP", "b", "COUNT", 1000, "NOACK"):
        for message in messages:
            assert int(message[1]) == expected, "order in a burst is exact"
            expected += 1
    assert expected == count
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    parser.add_argument("--server", default=os.environ.get("DQ_SERVER", "redis-server"))
    parser.add_argument("--module", default=os.environ.get("DQ_MODULE", "target/release/libdq.so"))
    parser.add_argument("--json", help="write the figures there too")
    options = parser.parse_args()
    module = os.path.abspath(options.module)
    if not os.path.exists(module):
        sys.exit(f"{module} is not there; run: make build")
    if os.cpu_count() > 1:
        os.sched_setaffinity(0, {1})
    scale = 10 if options.quick else 1
    runs = [
        ("one by one, pipeline of 64, CPU us", life, 300_000 // scale),
        ("in hundreds, CPU us a message", batches, 1_000_000 // scale),
        ("delayed, pipeline of 64", delayed, 1_000_000 // scale),
        ("all due at one instant", burst, 1_000_000 // scale),
        ("growth", growth, 5_000_000 // scale),
    ]
    results = {}
    for title, run, count in runs:
        with Server(options.server, module) as server:
            results[title] = figures = run(server, count)
        print(f"{title} ({count:,} messages)")
        for name, value in figures.items():
            print(f"  {name:22} {value:10.2f}")
    one, hundreds, late = (results[title] for title, _, _ in runs[:3])
    own = one["SET"] + one["GET"] + one["DEL"]
    ratios = {
        "push + pop + ack / (SET + GET + DEL)": (one["push"] + one["pop"] + one["ack"]) / own,
        "pop + ack in hundreds / (GET + DEL)": (hundreds["pop x100"] + hundreds["ack x100"]) / (one["GET"] + one["DEL"]),
        "delayed push / ZADD": late["push delayed"] / late["ZADD"],
    }
    print("ratios")
    for name, value in ratios.items():
        print(f"  {name:38} {value:6.2f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({**results, "ratios": ratios}, file, indent=2)


if __name__ == "__main__":
    main()
