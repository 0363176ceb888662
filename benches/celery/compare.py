"""Celery on dq beside Celery's own Redis transport: what is lost, done twice and late when processes die.

    pip install ./clients/python[celery] 'celery[redis]'
    python benches/celery/compare.py

Each runs by itself, on a server that writes its AOF before each reply, with two workers of two processes each. 400
tasks of 0.2 s with acks_late are sent: 100 at once, the others with a countdown of 15 s to two minutes. After 3 s a
worker is killed with -9 and another one started, after 20 s the server is killed with -9 and restarted, after 30 s and
40 s each worker is stopped with SIGTERM in turn and another one started. After three minutes it is counted. It needs a
module (DQ_MODULE) and a server (DQ_SERVER), and takes ten minutes.
"""

import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "clients" / "conformance"))

from server import Server

TASKS, AT_ONCE, FIRST, LAST, COUNTED_AFTER, LATE_SECONDS = 400, 100, 15, 120, 180, 1
CONTENDERS = [
    ("dq", "dq", {}),
    ("Redis transport", "redis", {}),
    ("Redis transport, `visibility_timeout` 30 s", "redis", {"visibility_timeout": 30}),
]


class Workers:
    """Two workers, each of which can be replaced."""

    def __init__(self, directory, environment):
        self._directory, self._environment, self._running, self._started = directory, environment, {}, 0

    def start(self, name):
        """Starts a worker and does not wait for it."""
        self._started += 1
        words = ["-A", "tasks", "worker", "-c", "2", "-l", "INFO", "-n", f"{name}{self._started}@%h"]
        with open(self._directory / f"{name}{self._started}.log", "wb") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "celery", *words],
                cwd=HERE,
                env={**os.environ, **self._environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_ready(self):
        """Waits until all consume."""
        while not all(" ready." in log.read_text() for log in self._directory.glob("*.log")):
            time.sleep(0.1)

    def kill9(self, name):
        """Kills a worker with all its processes."""
        os.killpg(self._running[name].pid, signal.SIGKILL)
        self._running[name].wait()

    def stop(self, name):
        """Has a worker end what it has begun."""
        self._running[name].terminate()
        self._running[name].wait()

    def close(self):
        """Kills all."""
        for name in self._running:
            self.kill9(name)


def scenario(scheme, options):
    """Returns for each task how late each of its runs began."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="dq-celery-"))
    server = Server().boot()
    record = directory / "record"
    record.touch()
    environment = {
        "BROKER_URL": f"{scheme}://127.0.0.1:{server.port}/0",
        "BROKER_OPTIONS": json.dumps(options),
        "RECORD": str(record),
    }
    workers = Workers(directory, environment)
    try:
        for name in ("a", "b"):
            workers.start(name)
        workers.wait_until_ready()
        begin = time.monotonic()
        subprocess.run([sys.executable, __file__, "push"], env={**os.environ, **environment}, check=True)
        _sleep_until(begin + 3)
        workers.kill9("a")
        workers.start("a")
        _sleep_until(begin + 20)
        server.kill9()
        server.boot()
        for at, name in ((30, "a"), (40, "b")):
            _sleep_until(begin + at)
            workers.stop(name)
            workers.start(name)
        while time.monotonic() < begin + COUNTED_AFTER:
            time.sleep(1)
    finally:
        workers.close()
        server.close()
    runs = collections.defaultdict(list)
    for line in record.read_text().splitlines():
        number, late = line.split()
        runs[int(number)].append(float(late))
    return runs


def push():
    """Sends all tasks."""
    sys.path.insert(0, str(HERE))
    from tasks import record

    for number in range(TASKS):
        countdown = FIRST + (number - AT_ONCE) / (TASKS - AT_ONCE) * (LAST - FIRST) if number >= AT_ONCE else None
        record.apply_async((number, time.time() + (countdown or 0)), countdown=countdown)


def _sleep_until(at):
    time.sleep(max(0, at - time.monotonic()))


def main():
    """Prints the table."""
    late = f"delayed tasks that began more than {LATE_SECONDS} s late"
    print(f"| broker | not run within {COUNTED_AFTER} s | done twice | {late} | the latest of them |")
    print("| --- | --- | --- | --- | --- |")
    for title, scheme, options in CONTENDERS:
        runs = scenario(scheme, options)
        late = [min(runs[number]) for number in range(AT_ONCE, TASKS) if number in runs]
        cells = [
            TASKS - len(runs),
            sum(len(begun) > 1 for begun in runs.values()),
            sum(seconds > LATE_SECONDS for seconds in late),
            f"{max(late, default=0):.1f} s",
        ]
        print(f"| {title} | {' | '.join(str(cell) for cell in cells)} |", flush=True)


if __name__ == "__main__":
    push() if sys.argv[1:] == ["push"] else main()
