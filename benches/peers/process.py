"""A server for one measurement: it has a free loopback port, a temporary directory and the first core.

CPU time is read from the kernel's account of each thread (/proc/PID/task/TID/schedstat), in ns. It depends little on
what else the machine does.
"""
import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time

import wire

START_SECONDS = 120  # a server that loads millions of messages from a slow disk is slow to start


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pin_load():
    """Runs the load on the second core, if there are two."""
    if os.cpu_count() > 1:
        os.sched_setaffinity(0, {1})


def prefer(process_id=0):
    """Gives a process, by default this one, its core whenever it wants it, if permitted: for servers, and for what
    measures waiting times and works. Such a process must not be a real-time process: Linux takes the core from those
    for 50 ms of a second (`sched_rt_runtime_us`), so a server would seem to stall for that long."""
    try:
        os.setpriority(os.PRIO_PROCESS, process_id, -20)
    except PermissionError:
        pass


def go_first():
    """Lets this process go before all others on its core, because it only needs it for moments. Returns whether that is
    permitted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        return True
    except PermissionError:
        return False


def _on_any_core():
    os.sched_setaffinity(0, range(os.cpu_count()))


class Cost:
    """The cost of a block of work to the server, in us per message: `with server.cost(messages) as cost: ...`."""

    def __init__(self, server, messages):
        self.server, self.messages = server, messages

    def __enter__(self):
        self.main, self.all, self.start = self.server.cpu_ns(), self.server.total_cpu_ns(), time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.start
        self.cpu_seconds = (self.server.cpu_ns() - self.main) / 1e9
        self.us = self.cpu_seconds * 1e6 / self.messages
        self.total_us = (self.server.total_cpu_ns() - self.all) / self.messages / 1000


_running = []


def running(process):
    """Registers an object whose `stop` must be called at the end of the workload that started it."""
    _running.append(process)


def stopped(process):
    if process in _running:
        _running.remove(process)


def stop_all():
    """Stops everything that is registered. Called after each workload and at the end of the run."""
    while _running:
        _running[-1].stop()


atexit.register(stop_all)


class Server:
    """A running server. `command(port, directory)` returns the command that starts it; `directory` may exist
    already."""

    def __init__(self, command, parse=wire.parse_resp, directory=None):
        self.parse = parse
        self.directory = directory or tempfile.mkdtemp(prefix="dq-bench-")
        self.port = free_port()
        self.process = subprocess.Popen(command(self.port, self.directory), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=_on_any_core)
        running(self)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.connection = self.connect()
                self.await_ready()
                if os.cpu_count() > 1:  # the main thread; those that free and write behind it are not in its way
                    os.sched_setaffinity(self.process.pid, {0})
                prefer(self.process.pid)
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"did not start: {' '.join(command(self.port, self.directory))}")
                time.sleep(0.02)

    def await_ready(self):
        """Returns whether the server is ready. By default it is ready once it listens."""

    def connect(self):
        return wire.Connection(self.port, self.parse)

    def connections(self, count):
        return [self.connect() for _ in range(count)]

    def stop(self, keep_files=False):
        stopped(self)
        self.process.kill()
        self.process.wait()
        if not keep_files:
            shutil.rmtree(self.directory, ignore_errors=True)

    def cost(self, messages):
        return Cost(self, messages)

    def cpu_ns(self):
        """Returns the CPU time of the main thread so far."""
        return self._thread_ns(self.process.pid)

    def total_cpu_ns(self):
        """Returns the CPU time of all threads so far."""
        return sum(self._thread_ns(thread) for thread in os.listdir(f"/proc/{self.process.pid}/task"))

    def _thread_ns(self, thread):
        with open(f"/proc/{self.process.pid}/task/{thread}/schedstat") as stat:
            return int(stat.read().split()[0])

    def wake_ups(self):
        """Returns how often the main thread has slept so far, until there was something to do."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))

    def memory_bytes(self):
        """Returns the resident memory, for servers that do not count their allocations."""
        with open(f"/proc/{self.process.pid}/statm") as stat:
            return int(stat.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class RedisServer(Server):
    """Redis or Valkey, without persistence unless `arguments` say otherwise. `under` is a program under which it
    runs."""

    def __init__(self, binary, *arguments, directory=None, under=()):
        super().__init__(lambda port, where: [
            *under, binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", where, "--save", "",
            "--appendonly", "no", "--enable-debug-command", "yes", "--maxclients", "10000", *arguments],
            directory=directory)

    def await_ready(self):
        while True:
            try:
                self.connection.call("PING")
                return
            except wire.ServerError as error:
                if not str(error).startswith("LOADING"):
                    raise
                time.sleep(0.02)

    def info(self, section):
        text = self.connection.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def version(self):
        info = self.info("server")
        return f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"

    def memory_bytes(self):
        """`used_memory`."""
        return int(self.info("memory")["used_memory"])

    def longest_us(self, *commands):
        """Returns the upper bound of the slowest bucket in the server's histograms of these commands, or of all
        commands, since CONFIG RESETSTAT."""
        reply = self.connection.call("LATENCY", "HISTOGRAM", *commands)
        return max([histogram[3][-2] for histogram in reply[1::2]], default=0)
