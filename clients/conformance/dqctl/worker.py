"""``dqctl work`` as the suite drives it: a command for each message, and the worker's log, make the lines."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve()
DQCTL = HERE.parents[3] / "target/clients/dqctl"

LOCK = threading.Lock()
# The messages that are worked on.
RUNNING = set()
# Why those are lost whose commands are being ended, as far as the log has said it.
REASONS = {}
STOPPING = threading.Event()
# What the program writes into the pipe when no command runs any more.
LAST = "last\n"


def say(event, **fields):
    """Writes a line. The lock is held."""
    sys.stdout.write(json.dumps(dict(fields, event=event)) + "\n")
    sys.stdout.flush()


def from_commands(pipe, has_limit):
    """Passes on what commands say."""
    for line in pipe:
        if line == LAST:
            return
        said = json.loads(line)
        event, id = said.pop("event"), said["id"]
        with LOCK:
            if event == "start":
                RUNNING.add(id)
                say("start", **said)
            elif event == "end":
                RUNNING.discard(id)
                say("end", **said)
            elif id not in REASONS and STOPPING.is_set():
                lost(id, "stopping", said["at"])
            elif id not in REASONS and not has_limit:
                lost(id, "lease", said["at"])  # By the clock of the worker, before the server has said so.


def from_log(log):
    """Says what the worker decides."""
    for line in log:
        try:
            said = json.loads(line)
        except ValueError:
            sys.stderr.write(line)
            continue
        id, now = said.get("id"), time.time_ns() // 1_000_000
        with LOCK:
            if said["event"] == "lost":
                REASONS[id] = said["reason"]
                lost(id, said["reason"], now)
            elif said["event"] == "failed" and id in RUNNING:
                RUNNING.discard(id)
                say("end", id=id, how="fail", at=now)
        if said["event"] == "listening":
            threading.Thread(target=until_healthy, args=[said["address"]], daemon=True).start()
        if said["level"] != "info" or said["event"] == "stopped":
            sys.stderr.write(line)


def until_healthy(address):
    """Says when the worker reaches its server."""
    while True:
        try:
            urllib.request.urlopen(f"http://{address}/healthz", timeout=5).close()
        except OSError:
            time.sleep(0.01)
            continue
        with LOCK:
            return say("ready")


def lost(id, reason, at):
    """A command is ended because its message is lost."""
    if id in RUNNING:
        RUNNING.discard(id)
        say("lost", id=id, reason=reason, at=at)
        say("end", id=id, how="lost", at=at)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--queue", action="append", required=True)
    parser.add_argument("--lease", type=int)
    parser.add_argument("--grace", type=int)
    parser.add_argument("--name")
    parser.add_argument("--time-limit", type=int)
    given = parser.parse_args()
    words = [str(DQCTL), "work", "--url", given.url, "--log-format", "json", "--listen", "127.0.0.1:0"]
    for queue in given.queue:
        words += ["--queue", queue]
    for option in ("lease", "grace", "time_limit"):
        if getattr(given, option) is not None:
            words += ["--" + option.replace("_", "-"), f"{getattr(given, option)}ms"]
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        # Open for both, so that it does not end between two commands.
        reading = os.fdopen(os.open(pipe, os.O_RDWR), encoding="utf-8")
        worker = subprocess.Popen(
            [*words, "--", sys.executable, "-I", "-S", str(HERE.with_name("handler.py"))],
            env=dict(os.environ, CONFORMANCE_PIPE=pipe),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )

        def stop(number, _):
            STOPPING.set()
            worker.send_signal(number)

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        commands = threading.Thread(target=from_commands, args=[reading, given.time_limit is not None], daemon=True)
        commands.start()
        log = threading.Thread(target=from_log, args=[worker.stderr], daemon=True)
        log.start()
        code = worker.wait()
        log.join(1)
        # A command may have said its end and exited just before the worker did.
        with open(pipe, "w") as writing:
            writing.write(LAST)
        commands.join(1)
        with LOCK:
            say("stopped")
        os._exit(code)


if __name__ == "__main__":
    main()
