"""Measures queues from end to end, producers and workers, with the scenarios of bullmq-bench, and prints one table.

    python3 benches/end-to-end [--quick] [--only NAME,...] [--server PATH] [--module PATH] [--write FILE]

A contender has a server of its own, on one core, and producers and workers in one process on another. Each is measured
without an AOF and with one that is written to disk every second. The Node programs are measured by queues.mjs, the
Python workers by benches/workers/worker.py. Packages are installed into target/bench-end-to-end, once; what cannot be
installed is left out, and said.

add, bulk: jobs of 100 bytes added one after the other, and 50 at a time. one, many: jobs worked on a second by an empty
handler, one at a time and 100 at a time (Python: 64). Late: from the due time of a delayed job to the first line of its
handler.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "benches", "peers"))

from contenders.base import Missing  # noqa: E402
from contenders.bullmq import VERSION as BULLMQ, CLIENT_VERSION as IOREDIS  # noqa: E402
from options import add_server_and_module, chosen  # noqa: E402
from process import RedisServer, pin_load, stop_all  # noqa: E402
import steal  # noqa: E402

CARGO_TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
TARGET = os.path.join(CARGO_TARGET, "bench-end-to-end")
QUICK = 20  # the part of the jobs that --quick measures
WORK_SECONDS = 240
FIGURES = ["add", "bulk", "one", "many", "p50", "p99"]
HEAD = ["queue", "AOF", "add, jobs/s", "bulk, jobs/s", "one, jobs/s", "many, jobs/s", "late, half of them, ms",
        "late, 99 of 100, ms"]


def run(*words, cwd=ROOT, timeout=None):
    """Runs a program and returns what it prints. Raises Missing with its last line if it fails."""
    try:
        done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=timeout)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise Missing(str(error)) from error
    if done.returncode:
        reason = done.stderr.strip() or done.stdout.strip() or "no reason given"
        raise Missing(f"{words[0]}: {reason.splitlines()[-1]}")
    return done.stdout


def npm(name, *packages):
    """A directory with packages of npm."""
    directory = os.path.join(TARGET, name)
    stamp = os.path.join(directory, "installed")
    if not os.path.exists(stamp) or open(stamp).read() != repr(packages):
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        run("npm", "install", "--prefix", directory, "--no-audit", "--no-fund", "--silent", *packages)
        with open(stamp, "w") as file:
            file.write(repr(packages))
    return directory


def npm_version(directory, package):
    with open(os.path.join(directory, "node_modules", package, "package.json")) as file:
        return json.load(file)["version"]


class Node:
    """A contender of queues.mjs on Redis, in Node."""

    def __init__(self, name, *packages):
        self.name, self.packages = name, packages

    def prepare(self):
        self.directory = npm(self.name, *self.packages)
        return f"{self.name} {npm_version(self.directory, self.packages[0].split('@')[0])}"

    def server(self, lab, aof):
        return RedisServer(lab.server, *(["--appendonly", "yes"] if aof else []), *self.loads(lab))

    def loads(self, lab):
        return []

    def figures(self, port, factor):
        words = ["node", os.path.join(HERE, "queues.mjs"), self.name, port, factor, self.directory]
        return lines_of(run(*words, timeout=WORK_SECONDS))


class Ours(Node):
    def prepare(self):
        client = os.path.join(ROOT, "clients", "node")
        if not os.path.exists(os.path.join(client, "node_modules")):
            run("npm", "install", "--silent", "--no-package-lock", "--ignore-scripts", cwd=client)
        run("npm", "run", "--silent", "build", cwd=client)
        self.directory = client
        with open(os.path.join(client, "package.json")) as file:
            return f"dq {json.load(file)['version']}, Node"

    def loads(self, lab):
        return ["--loadmodule", lab.module]


class Python(Node):
    """A library of benches/workers/worker.py. It measures workers only."""

    def prepare(self):
        self.directory = os.path.join(TARGET, "python-" + self.name)
        python = os.path.join(self.directory, "bin", "python")
        if not os.path.exists(os.path.join(self.directory, "installed")):
            shutil.rmtree(self.directory, ignore_errors=True)
            run(sys.executable, "-m", "venv", self.directory)
            run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *self.packages)
            open(os.path.join(self.directory, "installed"), "w").close()
        self.python = python
        package = "dq-redis" if self.name == "dq" else self.name
        version = run(python, "-c", f"import importlib.metadata as m; print(m.version('{package}'))").strip()
        return f"{self.name} {version}, Python"

    def loads(self, lab):
        return ["--loadmodule", lab.module] if self.name == "dq" else []

    def figures(self, port, factor):
        worker = os.path.join(ROOT, "benches", "workers", "worker.py")
        counts = ["--messages", (3000 if self.name == "rq" else 20000) // factor, "--delayed", 1000 // factor]
        said = run(self.python, worker, self.name, "--url", f"redis://127.0.0.1:{port}", *counts, timeout=WORK_SECONDS)
        found = lines_of(said)
        return {"one" if self.name == "rq" else "many": found.pop("rate"), **found}


def lines_of(text):
    """The figures of a program: its lines of JSON, put together."""
    found = {}
    for line in text.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    return found


CONTENDERS = [
    Ours("dq"),
    Node("BullMQ", f"bullmq@{BULLMQ}", f"ioredis@{IOREDIS}"),
    Node("Bull", "bull@4.16.5"),
    Node("bee-queue", "bee-queue@2.0.0"),
    Python("dq", os.path.join(ROOT, "clients", "python")),
    Python("arq", "arq==0.28.0"),
    Python("rq", "rq==2.12.0"),
]


def machine():
    with open("/proc/cpuinfo") as cpus:
        model = next((line.split(":", 1)[1].strip() for line in cpus if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores, Linux {os.uname().release}"


def measure(lab, contenders, factor):
    """Returns the rows of the table and what was left out."""
    rows, missing = [], []
    for contender in contenders:
        try:
            title = contender.prepare()
        except (Missing, OSError) as error:
            missing.append(f"{contender.name}: {error}")
            continue
        for aof in (False, True):
            print(f"{title}, {'with' if aof else 'without'} an AOF …", file=sys.stderr, flush=True)
            watched = steal.Steal()
            try:
                figures = contender.figures(contender.server(lab, aof).port, factor)
                cells = [shown(figures.get(name), name) for name in FIGURES]
                rows.append([title, "every second" if aof else "no", *cells])
                print(f"  {figures}, {steal.told(watched.share())}", file=sys.stderr, flush=True)
            except (Missing, RuntimeError) as error:
                missing.append(f"{title}: {error}")
            finally:
                stop_all()
    return rows, missing


def shown(figure, name):
    if figure is None:
        return "–"
    return f"{figure:.2f}" if name in ("p50", "p99") else f"{figure:,.0f}"


def main():
    parser = argparse.ArgumentParser(prog="benches/end-to-end", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"1/{QUICK} of the jobs: believe the shape only")
    parser.add_argument("--only", help="these: " + ", ".join(sorted({one.name for one in CONTENDERS})))
    add_server_and_module(parser)
    parser.add_argument("--write", metavar="FILE",
                        help="write the table there too, unless the steal time was above the limit")
    lab = parser.parse_args()
    lab.module = os.path.abspath(lab.module)
    if not os.path.exists(lab.module):
        sys.exit(f"{lab.module} is not there; run: make build")
    contenders = chosen(CONTENDERS, lab.only, "contender")
    os.makedirs(TARGET, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and not without stopping the servers
    pin_load()
    watched, begun, load = steal.Steal(), time.monotonic(), os.getloadavg()[0]
    server = RedisServer(lab.server)
    version = server.version()
    server.stop()
    rows, missing = measure(lab, contenders, QUICK if lab.quick else 1)
    share = watched.share()
    node = run("node", "--version").strip() if shutil.which("node") else "no Node"
    quick = ", quick: believe the shape only" if lab.quick else ""
    python = sys.version.split()[0]
    table = [f"{version}, Node {node.lstrip('v')}, Python {python}; {machine()}; {time.strftime('%Y-%m-%d')}; "
             f"{steal.told(share)}; load {load:.1f} before; {time.monotonic() - begun:.0f} s{quick}",
             "", "| " + " | ".join(HEAD) + " |", "| --- | --- |" + " ---: |" * len(FIGURES)]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    table += [""] + [f"not measured: {line}" for line in missing]
    print("\n".join(table))
    if lab.write and share > steal.LIMIT:
        sys.exit(f"dq: {lab.write} is not written: {steal.told(share)}")
    if lab.write:
        with open(lab.write, "w") as file:
            file.write("\n".join(table) + "\n")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
