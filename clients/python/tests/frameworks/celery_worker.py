"""What the tests of Celery share: a server, the example as an application, and its workers as programs."""

import importlib
import os
import pathlib
import signal
import subprocess
import sys

import redis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "conformance"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "examples" / "celery"))

from server import PATIENCE, ROOT, Clock, Server, eventually

# Long enough to start a worker and to end a lease on a slow machine.
PATIENT = 60.0


def wait(what, condition):
    """Waits for a condition and returns its value."""
    return eventually(what, condition, PATIENT)


class Worker:
    """``celery worker`` with all its processes."""

    def __init__(self, log, environment, *words):
        self.log = log
        command = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-l", "INFO", "-n", f"{log.stem}@%h", *words]
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT / "examples" / "celery",
                env={**os.environ, **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def text(self):
        """Returns what it has logged."""
        return self.log.read_text(errors="replace")

    def ready(self):
        """Waits until it consumes."""

        def is_ready():
            assert self._process.poll() is None, self.text()
            return " ready." in self.text()

        wait("the worker is ready", is_ready)
        return self

    def kill9(self):
        """Kills all its processes."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def terminate(self):
        """Asks it to stop."""
        self._process.terminate()

    def stop(self):
        """Stops it and returns its exit code."""
        self.terminate()
        return self._process.wait(PATIENT * PATIENCE)


class Shop:
    """The example on a server of its own."""

    def __init__(self, directory, lease=30):
        self.server, self.clock = Server(), Clock(directory)
        self.server.environment = self.clock.environment
        self.server.boot()
        self._directory, self._workers = directory, []
        self._environment = {"REDIS_URL": self.server.url + "/0", "LEASE": str(lease)}
        os.environ.update(self._environment)
        sys.modules.pop("shop", None)
        self.tasks = importlib.import_module("shop")
        self.app = self.tasks.app

    def work(self, *words, **environment):
        """Starts a worker."""
        log = self._directory / f"worker{len(self._workers)}.log"
        worker = Worker(log, {**self._environment, **environment}, *words)
        self._workers.append(worker)
        return worker

    def said(self, key="done"):
        """Returns what the tasks have said, in order."""
        return [line.decode() for line in redis.Redis(port=self.server.port).lrange(key, 0, -1)]

    def number(self, *state):
        """Returns how many messages are in the queue."""
        return self.server.do("DQ.LEN", "celery", *state)

    def close(self):
        """Ends all."""
        for worker in self._workers:
            worker.kill9()
        self.app.close()
        self.server.close()
