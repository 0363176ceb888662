#!/usr/bin/env python3
"""Counts the instructions of the hot commands under callgrind, and fails where one grew by more than a tenth.

Instructions repeat where time does not: the same build counts the same on a busy machine. What is counted is a command's
handler with all that it calls, the server's own functions too, so the figures hold for one version of the server: that
in benches/instructions.json. With another version, or without valgrind, it says so and succeeds.

    benches/instructions.py [--write] [--server PATH] [--module PATH]

--write makes what is counted now the figures that later runs are held against.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))

from process import RedisServer  # noqa: E402
from wire import encode  # noqa: E402

BASELINE = os.path.join(HERE, "instructions.json")
GROWTH_ALLOWED = 0.10
MESSAGES = 4_000
DEPTH = 64
HUNDRED = 100
PAYLOAD = b"x" * 100


class Profiled(RedisServer):
    """A server under callgrind, whose profile is there once it was shut down."""

    def __init__(self, binary, module):
        self.profile = tempfile.NamedTemporaryFile(prefix="dq-callgrind-")
        super().__init__(binary, "--loadmodule", module, under=(
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.profile.name}"))

    def run(self, *commands):
        return self.connection.pipeline([encode(*command) for command in commands], DEPTH)

    def shut_down(self):
        """Ends the server by its own will: callgrind writes the profile as the process ends."""
        self.connection.send(encode("SHUTDOWN", "NOSAVE"))
        self.process.wait()
        self.stop()

    def instructions(self, function):
        """Instructions of a function with all that it called, in the whole run."""
        annotated = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--tree=none", "--threshold=100", self.profile.name],
            capture_output=True, text=True, check=True).stdout
        found = [line for line in annotated.splitlines() if re.search(rf":{re.escape(function)}( |$)", line)]
        if not found:
            raise RuntimeError(f"{function} is not in the profile: was the module built without symbols?")
        # The function stands there once more for each file of which something was inlined; the first is all of it.
        return max(int(line.split("(")[0].replace(",", "")) for line in found)


def receipts(replies):
    return [message[3] for reply in replies for message in reply]


def one_by_one(server):
    server.run(*[("DQ.PUSH", "q", PAYLOAD)] * MESSAGES)
    delivered = receipts(server.run(*[("DQ.POP", "q")] * MESSAGES))
    server.run(*[("DQ.ACK", "q", receipt) for receipt in delivered])
    return {"push": "push::push", "pop": "pop::pop", "ack": "ack::ack"}


def in_hundreds(server):
    batches = MESSAGES // HUNDRED
    server.run(*[("DQ.MPUSH", "q", HUNDRED, *[PAYLOAD] * HUNDRED)] * batches)
    delivered = receipts(server.run(*[("DQ.POP", "q", "COUNT", HUNDRED)] * batches))
    server.run(*[("DQ.ACK", "q", *delivered[at:at + HUNDRED]) for at in range(0, MESSAGES, HUNDRED)])
    return {"push of 100": "mpush::mpush", "pop of 100": "pop::pop", "ack of 100": "ack::ack"}


def delayed(server):
    # Scattered over an hour, the same in every run.
    server.run(*[("DQ.PUSH", "q", PAYLOAD, "DELAY", 1 + n * 48_271 % 3_600_000) for n in range(1, MESSAGES + 1)])
    return {"delayed push": "push::push"}


def given_back(server):
    server.run(*[("DQ.MPUSH", "q", HUNDRED, *[PAYLOAD] * HUNDRED)] * (MESSAGES // HUNDRED))
    delivered = receipts(server.run(("DQ.POP", "q", "COUNT", MESSAGES)))
    server.run(*[("DQ.EXTEND", "q", receipt, "LEASE", 60_000) for receipt in delivered])
    server.run(*[("DQ.NACK", "q", receipt, "DELAY", 5_000) for receipt in delivered])
    return {"extend": "extend::extend", "nack": "nack::nack"}


def count(binary, module):
    """Instructions a message of each hot command, and the server's version."""
    counted = {}
    for scene in (one_by_one, in_hundreds, delayed, given_back):
        server = Profiled(binary, module)
        version = server.version()
        handlers = scene(server)
        server.shut_down()
        for name, handler in handlers.items():
            counted[name] = round(server.instructions(f"dq::commands::{handler}") / MESSAGES)
    return counted, version


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="make these the figures that later runs are held against")
    parser.add_argument("--server", default=os.environ.get("DQ_SERVER", "redis-server"))
    parser.add_argument("--module", default=os.environ.get("DQ_MODULE", os.path.join(
        os.environ.get("CARGO_TARGET_DIR", "target"), "release", "libdq.so")))
    options = parser.parse_args()
    if not (shutil.which("valgrind") and shutil.which("callgrind_annotate")):
        print("instructions were not counted: there is no valgrind here")
        return
    counted, version = count(options.server, os.path.abspath(options.module))
    if options.write:
        with open(BASELINE, "w") as file:
            json.dump({"server": version, "instructions": counted}, file, indent=2)
            file.write("\n")
    with open(BASELINE) as file:
        baseline = json.load(file)
    grown = []
    print(f"instructions a message, {version}{'':12}now   before")
    for name, now in counted.items():
        before = baseline["instructions"].get(name)
        print(f"  {name:34}{now:8}{before if before is not None else 'new':>9}")
        if before is not None and now > before * (1 + GROWTH_ALLOWED):
            grown.append(f"{name}: {before} to {now}")
    if version != baseline["server"]:
        print(f"not compared: the figures before are of {baseline['server']}")
    elif grown:
        sys.exit("grown by more than a tenth: " + "; ".join(grown)
                 + ". If that is meant, benches/instructions.py --write, and say why in the commit")


if __name__ == "__main__":
    main()
