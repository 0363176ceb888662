"""The conformance programs of a client, and how a test drives them."""

import functools
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time

from server import PATIENCE, ROOT

CLIENTS = ROOT / "clients"
ALL = ("python", "node", "go", "rust", "php", "ruby", "dqctl")


def _php():
    """Returns what runs PHP: ``DQ_PHP``, the newest that `make test-clients` has fetched, or that of this machine."""
    fetched = ROOT / "target/clients/php/php"
    return os.environ.get("DQ_PHP") or (str(fetched) if fetched.exists() else "php")


def _commands(client):
    """Returns the command lines of the worker, of the producer and of what calls all methods; a missing one is
    ``None``."""
    if client == "dqctl":
        built = (ROOT / "target/clients/dqctl").exists()  # `make test-clients` builds it.
        return ([sys.executable, str(CLIENTS / "conformance/dqctl/worker.py")] if built else None), None, None
    folder = CLIENTS / client / "conformance"
    run = {
        "python": ([sys.executable], ".py"),
        "node": (["node"], ".mjs"),
        "go": ([], ""),
        "php": ([_php()], ".php"),
        "rust": ([], ""),
        "ruby": ([_ruby()], ".rb"),
    }
    if client not in run:
        return None, None, None
    words, ending = run[client]
    if client in ("go", "rust"):  # `make test-clients` builds them.
        folder = ROOT / "target" / "clients" / client
    folder = pathlib.Path(os.environ.get("DQ_PROGRAMS", folder))
    found = [folder / f"{name}{ending}" for name in ("worker", "push", "calls")]
    if words and shutil.which(words[0]) is None:
        return None, None, None
    if client == "ruby" and not _has_redis_client(words[0]):
        return None, None, None
    if client == "node" and not (folder.parent / "dist").exists():  # `make test-clients` builds it.
        return None, None, None
    return tuple([*words, str(path)] if path.exists() else None for path in found)


def _ruby():
    """Returns the Ruby that runs the programs: that of ``DQ_RUBY``, the newest that was fetched, or the machine's."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    fetched = pathlib.Path(os.environ.get("DQ_SERVERS_DIR") or pathlib.Path(cache) / "dq-servers") / "ruby-sid/ruby"
    return os.environ.get("DQ_RUBY") or (str(fetched) if fetched.exists() else "ruby")


@functools.lru_cache(None)
def _has_redis_client(ruby):
    return subprocess.run([ruby, "-r", "redis-client", "-e", ""], capture_output=True).returncode == 0


def clients():
    """Returns the clients whose programs are there."""
    return [client for client in ALL if _commands(client)[0]]


class Program:
    """A worker that runs, and what it has said."""

    def __init__(self, client, url, *queues, environment=None, **options):
        words = [*_commands(client)[0], "--url", url]
        for name in queues:
            words += ["--queue", name]
        for name, value in options.items():
            words += ["--" + name.replace("_", "-"), str(value)]
        self._process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            errors="replace",
            start_new_session=True,
        )
        self._lines = queue.Queue()
        self.events = []
        self.errors = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    @property
    def pid(self):
        """Returns its process id."""
        return self._process.pid

    def is_alive(self):
        """Returns whether it runs."""
        return self._process.poll() is None

    def ready(self):
        """Waits until it consumes."""
        self.wait_for("ready")
        return self

    def wait_for(self, event, seconds=10.0, **fields):
        """Waits until it has said this and returns what it said."""
        return self.wait_for_all(1, event, seconds, **fields)[0]

    def wait_for_all(self, count, event, seconds=10.0, **fields):
        """Waits until it has said this so often and returns what it said."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            found = self.said(event, **fields)
            if len(found) >= count:
                return found
            left = end - time.monotonic()
            try:
                self.events.append(self._lines.get(timeout=max(0.0, left)))
            except queue.Empty:
                raise AssertionError(
                    f"not {count} times within {seconds} s: {event} {fields}; "
                    f"it said {self.events[-20:]} {self.errors[-20:]}"
                ) from None

    def said(self, event, **fields):
        """Returns what it has said so far of this kind."""
        while not self._lines.empty():
            self.events.append(self._lines.get())
        wanted = dict(fields, event=event)
        return [said for said in self.events if all(said.get(name) == value for name, value in wanted.items())]

    def signal(self, name):
        """Sends it a signal."""
        self._process.send_signal(getattr(signal, f"SIG{name}"))

    def kill9(self):
        """Kills it, and the worker that it may have started: that one would go on for ever, and work for the next
        server that gets the port of its own."""
        if self.is_alive():
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def exit_code(self, seconds=10.0):
        """Waits for its end and returns its exit code."""
        return self._process.wait(seconds * PATIENCE)

    def stop(self):
        """Ends it by a signal. Returns the exit code and how many seconds that took."""
        begun = time.monotonic()
        self.signal("TERM")
        return self.exit_code(), time.monotonic() - begun

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(json.loads(line))

    def _read_errors(self):
        for line in self._process.stderr:
            self.errors.append(line.rstrip())


def can_push(client):
    """Returns whether the client has a program that pushes."""
    return _commands(client)[1] is not None


def push(client, url, *messages, environment=None, seconds=30.0):
    """Pushes messages with the producer of a client. Returns what it printed for each."""
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run(
        [*_commands(client)[1], "--url", url],
        input=lines,
        capture_output=True,
        text=True,
        env=environment,
        timeout=seconds * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Producer:
    """A producer of a client that goes on while a test does other things."""

    def __init__(self, client, url):
        self._process = subprocess.Popen(
            [*_commands(client)[1], "--url", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def push(self, **message):
        """Pushes a message. Returns what the producer printed."""
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        """Ends it."""
        self._process.kill()
        self._process.wait()


def can_call(client):
    """Returns whether the client has a program that calls all its methods."""
    return _commands(client)[2] is not None


def calls(client, url, seconds=30.0):
    """Has a client call all its methods."""
    done = subprocess.run(
        [*_commands(client)[2], "--url", url], stderr=subprocess.PIPE, text=True, timeout=seconds * PATIENCE
    )
    assert done.returncode == 0, done.stderr


def folder(client):
    """Returns the directory of a client."""
    return pathlib.Path(CLIENTS / client)
