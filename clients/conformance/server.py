"""Servers with the module, each on a port and in a directory of its own.

``DQ_SERVER`` and ``DQ_MODULE`` name another server and another module, as for the other tests.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import redis

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = float(os.environ.get("DQ_PATIENCE", "1"))
# Lines that a healthy server never writes.
ALARMS = ("panicked", "BUG REPORT", "a bug in the module")
# What a server answers that has not carried out a command, and may do so later.
NOT_NOW = [
    b"LOADING Redis is loading the dataset in memory",
    b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    b"READONLY You can't write against a read only replica.",
    b"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    b"CLUSTERDOWN The cluster is down",
    b"TRYAGAIN Multiple keys request during rehashing of slot",
    b"NOREPLICAS Not enough good replicas to write.",
    b"MISCONF Errors writing to the AOF file",
]
# The same of a push.
OUT_OF_MEMORY = b"OOM command not allowed when used memory > 'maxmemory'."


def _printed(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def binary():
    """Returns the path of the server to test."""
    return _printed("scripts/find-server.sh")


def _module():
    return os.environ.get("DQ_MODULE") or _printed("scripts/find-module.sh", "debug")


def free_port():
    """Returns a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def eventually(what, condition, seconds=10.0):
    """Waits for a condition and returns its value. A server that cannot be asked, since it restarts, is asked again."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        try:
            value = condition()
        except (redis.ConnectionError, redis.TimeoutError):
            value = None
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


class Clock:
    """The time of day of a server, which can be set ahead. It needs a C compiler."""

    def __init__(self, directory):
        library, self._file = directory / "clock.so", directory / "clock"
        source = ROOT / "tests" / "server" / "support" / "clock.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        self._file.write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": str(library), "DQ_CLOCK": str(self._file)}

    def set(self, hours):
        """Sets it so many hours ahead of the true time; negative: behind."""
        with open(self._file, "r+b") as file:  # It is overwritten in place, because the server has mapped it.
            file.write((hours * 3_600_000).to_bytes(8, sys.byteorder, signed=True))


class Server:
    """A server that writes its AOF before each reply, so that nothing is lost when it is killed.

    It does not wait for the disk, which only a power cut would need.
    """

    def __init__(self, *arguments, module=True):
        self.port = free_port()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="dq-conformance-"))
        self._arguments = [*(["--loadmodule", _module()] if module else []), *arguments]
        self._process = None
        self.environment = {}
        """What is added to the environment when it is started."""
        self.admin = redis.Redis(port=self.port, protocol=3, socket_timeout=30)

    @property
    def url(self):
        """Returns where it is."""
        return f"redis://127.0.0.1:{self.port}"

    def boot(self, *more):
        """Starts it, or starts it again on the same port and data. Returns when it answers."""
        self.launch(*more)
        eventually("the server answers", self._answers, 30)
        return self

    def launch(self, *more):
        """Starts it and does not wait."""
        self._process = subprocess.Popen(
            [binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory), "--save", ""]
            + ["--logfile", str(self.directory / "log"), "--appendonly", "yes", "--appendfsync", "no"]
            + ["--enable-debug-command", "yes", "--enable-protected-configs", "yes", "--repl-diskless-sync-delay", "0"]
            + [*self._arguments, *more],
            stdout=subprocess.DEVNULL,
            env={**os.environ, **self.environment},
        )

    def _answers(self):
        try:
            return self.admin.ping()
        except redis.RedisError:
            assert self._process.poll() is None, (self.directory / "log").read_text()
            return False

    def signal(self, name):
        """Sends it a signal, such as STOP or CONT."""
        self._process.send_signal(getattr(signal, f"SIG{name}"))

    def kill9(self):
        """Kills it."""
        self._process.kill()
        self._process.wait()

    def close(self):
        """Ends it and removes its data. Fails if its log has an alarm."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        log = self.directory / "log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        shutil.rmtree(self.directory, ignore_errors=True)
        alarms = [line for line in lines if any(alarm in line for alarm in ALARMS)]
        assert not alarms, alarms

    # --- what tests look at ---

    def do(self, *words):
        """Sends a command."""
        return self.admin.execute_command(*words)

    def message(self, queue, id):
        """Returns the fields of a message, or an empty dictionary."""
        return {name.decode(): value for name, value in (self.do("DQ.GET", queue, id) or {}).items()}

    def info(self, queue):
        """Returns the fields of ``DQ.INFO``."""
        return {name.decode(): value for name, value in (self.do("DQ.INFO", queue) or {}).items()}

    def calls(self, command):
        """Returns how often a command was called."""
        stats = {name.lower(): count for name, count in self.admin.info("commandstats").items()}
        return stats.get(f"cmdstat_{command}", {}).get("calls", 0)

    def clear_calls(self):
        """Resets the counts of calls."""
        self.admin.config_resetstat()
