"""A server for each test, and programs of a framework that run on it until the test ends."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "conformance"))

from server import PATIENCE, Clock, Server, eventually

EXAMPLES = pathlib.Path(__file__).resolve().parents[4] / "examples"
# How many seconds a slow machine needs to start processes.
PATIENT = 60.0


class Program:
    """A worker of a framework, with all processes that it starts."""

    def __init__(self, words, directory, log, environment):
        self._log = log
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [str(pathlib.Path(sys.executable).parent / words[0]), *words[1:]],
                cwd=directory,
                env={
                    **os.environ,
                    "PYTHONUNBUFFERED": "1",
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "PYTHONPATH": str(directory),
                    **environment,
                },
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def ready(self, text):
        """Waits until it has logged this text. Returns the program."""

        def logged():
            log = self._log.read_text(errors="replace")
            assert self._process.poll() is None, log
            return text in log

        wait(f"the log has {text!r}", logged)
        return self

    def kill9(self):
        """Kills all its processes."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def stop(self):
        """Asks it to end, and waits until it has. Returns the exit code."""
        self._process.terminate()
        return self._process.wait(PATIENT * PATIENCE)


@pytest.fixture
def server():
    """A server that runs."""
    server = Server()
    try:
        yield server.boot()
    finally:
        server.close()


@pytest.fixture
def clock(server, tmp_path):
    """The clock of the server."""
    clock = Clock(tmp_path)
    server.kill9()
    server.environment = clock.environment
    server.boot()
    return clock


@pytest.fixture
def start(server, tmp_path):
    """Starts programs in the folder of an example."""
    programs = []

    def start(example, *words, **environment):
        log = tmp_path / f"{len(programs)}.log"
        program = Program(words, EXAMPLES / example, log, {"REDIS_URL": server.url, **environment})
        programs.append(program)
        return program

    yield start
    for program in programs:
        program.kill9()


@pytest.fixture
def produce(server):
    """Runs a few lines of Python in the folder of an example, as another program. Returns what they print."""

    def produce(example, lines, **environment):
        directory = EXAMPLES / example
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(directory),
            "REDIS_URL": server.url,
            **environment,
        }
        done = subprocess.run(
            [sys.executable, "-c", lines],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180 * PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return produce


@pytest.fixture
def done(server):
    """Returns what the tasks of the examples have said, in order."""
    return lambda: [line.decode() for line in server.do("LRANGE", "done", 0, -1)]


def wait(what, condition):
    """Waits as long as a slow machine needs to start processes and to end leases."""
    return eventually(what, condition, PATIENT)


def orders(lines):
    """Returns the orders that the lines are about."""
    return {int(line.split()[1]) for line in lines}


def survive(server, worker, push, done):
    """Kills a worker, kills the server, and restarts both workers in turn, each while orders are worked on."""
    pushed = 0

    def more():
        nonlocal pushed
        before = len(orders(done()))
        push(range(pushed, pushed + 20))
        pushed += 20
        wait("they are worked on", lambda: len(orders(done())) > before)

    workers = [worker(), worker()]
    more()
    workers[0].kill9()
    workers[0] = worker()
    more()
    server.kill9()
    server.boot()
    more()
    for i in range(2):
        assert workers[i].stop() == 0
        workers[i] = worker()
    wait("all orders are charged", lambda: orders(done()) == set(range(pushed)))
