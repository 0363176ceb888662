"""Servers, and command lines as a page shows them."""
import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "install.md")


def run(*command, **how):
    """Runs a command and returns what it prints; fails with all of its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **how)
    assert done.returncode == 0, f"{shlex.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def blocks(heading, kind):
    """The blocks of a kind, such as sh, in a section of docs/install.md."""
    with open(PAGE, encoding="utf-8") as page:
        sections = re.split(r"^## ", page.read(), flags=re.M)
    section = next(section for section in sections if section.startswith(heading + "\n"))
    return re.findall(rf"^```{kind}\n(.*?)^```", section, flags=re.M | re.S)


def session(text):
    """The commands of a session and what each prints."""
    for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = step.partition("\n")
        yield command, output


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, *words):
    """Sends one command and returns the first line of the reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        parts = [word.encode() for word in words]
        connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        return connection.makefile("rb").readline().decode().strip()


def wait_until(what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


class Shell:
    """A directory with a server, and a PATH in which the servers and redis-cli mean this server and its port."""

    def __init__(self, server):
        self.dir = tempfile.mkdtemp(prefix="dq-dist-")
        self.port = free_port()
        self.log = os.path.join(self.dir, "server.log")
        self.process = None
        self.bin = os.path.join(self.dir, "bin")
        os.mkdir(self.bin)
        for name in ("redis-server", "valkey-server"):
            self.script(name, f'exec {shlex.quote(server)} "$@" --port {self.port}')
        self.script("sudo", 'exec "$@"')
        self.environment = {
            **os.environ,
            "PATH": self.bin + os.pathsep + os.environ["PATH"],
            "DQ_URL": f"redis://127.0.0.1:{self.port}",
        }

    def script(self, name, line):
        """Puts a program into the PATH."""
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as script:
            script.write(f"#!/bin/sh\n{line}\n")
        os.chmod(path, 0o755)

    def run(self, line, cwd, ends=(0,)):
        """Runs a command line and returns what it prints."""
        done = subprocess.run(["bash", "-ec", line], cwd=cwd, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode in ends, f"{line}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def play(self, text, cwd):
        """Does what a session shows and expects what it prints. `timeout` ends workers, so its exit code is right
        too."""
        for command, expected in session(text):
            found = self.run(command, cwd, ends=(0, 124))
            wanted = [line.split() for line in expected.splitlines()]
            if wanted and all(word.isupper() for word in wanted[0]):
                del wanted[0]  # the heading of a table, which is printed only to a terminal
            assert [line.split() for line in found.splitlines()] == wanted, \
                f"$ {command}\nprinted:\n{found}\nand the page says:\n{expected}"

    def start(self, line, cwd):
        """Starts a server by a command line, and waits until it has loaded its data."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=cwd, env=self.environment, stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL)
        wait_until("the server answers", self._answers)

    def _answers(self):
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise AssertionError(f"the server ended:\n{log.read()[-3000:]}")
        with contextlib.suppress(OSError):
            return ask(self.port, "PING") == "+PONG"
        return False

    def stop(self):
        """Ends the server as its service does, so that it saves what it must."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            if self.process and self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            shutil.rmtree(self.dir)
