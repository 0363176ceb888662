"""Measures the workers of all clients, and of other libraries, and prints a table for docs/performance.md.

python3 benches/workers [--only WORD …] [--quick]

It starts a server of its own with a release build of the module (DQ_MODULE), on one core, and each worker on another
one. What the programs need is installed into target/bench-workers, once; what cannot be installed is left out, and
said.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "benches/workers"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
OURS = TARGET / "bench-workers"
# The packages of each Python library, and how many messages it works on in about ten seconds.
PYTHON = {
    "dq": ([str(ROOT / "clients/python")], 60_000),
    "arq": (["arq"], 20_000),
    "taskiq": (["taskiq-redis"], 20_000),
    "dramatiq": (["dramatiq[redis]"], 20_000),
    "rq": (["rq"], 5_000),
}


def run(*words, cwd=ROOT, **environment):
    """Runs a program and returns what it prints. Its errors are shown."""
    done = subprocess.run(words, cwd=cwd, env=dict(os.environ, **environment), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}")
    return done.stdout


def module():
    """Returns the path of the module."""
    return os.environ.get("DQ_MODULE") or run("scripts/find-module.sh", "release").strip()


def on_core(core, *words):
    """Returns a command that runs on one core, if there are two."""
    return [*(["taskset", "-c", str(core)] if (os.cpu_count() or 1) > 1 and shutil.which("taskset") else []), *words]


def measured(*words, **environment):
    """Runs a worker. Returns the figures, which are its lines of JSON."""
    lines = run(*on_core(1, *map(str, words)), **environment).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


# --- each kind of worker: what it needs, then its figures ---


def rust(url, few):
    run("cargo", "bench", "--locked", "--quiet", "-p", "dq-client", "--no-run")
    return measured("cargo", "bench", "--locked", "--quiet", "-p", "dq-client", DQ_URL=url)


def go(url, few):
    if not shutil.which("go"):
        raise RuntimeError("install Go 1.19 or newer")
    workspace = TARGET / "clients/go/go.work"  # `make test-clients` makes it if there is no proxy for modules.
    environment = {"GOWORK": str(workspace)} if workspace.exists() else {}
    run("go", "build", "-o", OURS / "go", HERE / "go/worker.go", cwd=ROOT / "clients/go", **environment)
    return measured(OURS / "go", "-url", url, "-messages", 300_000 // few, GOMAXPROCS="1")


def node(url, few):
    client, other = ROOT / "clients/node", OURS / "bullmq"
    if not (client / "node_modules").exists():
        run("npm", "install", "--silent", "--no-package-lock", "--ignore-scripts", cwd=client)
    run("npm", "run", "--silent", "build", cwd=client)
    if not (other / "node_modules/ioredis").exists():  # BullMQ does not bring it.
        other.mkdir(exist_ok=True)
        run("npm", "install", "--silent", "--no-package-lock", "--prefix", other, "bullmq", "ioredis")
    counts = "--messages", 30_000 // few, "--delayed", 1000, "--rounds", 3 if few == 1 else 1
    return measured("node", HERE / "node.mjs", url, other, *counts)


def python(library, url, few):
    packages, messages = PYTHON[library]
    directory = OURS / library
    if not (directory / "done").exists():
        shutil.rmtree(directory, ignore_errors=True)
        run(sys.executable, "-m", "venv", directory)
        run(directory / "bin/pip", "install", "-q", "--disable-pip-version-check", *packages)
        (directory / "done").touch()
    counts = "--messages", messages // few, "--delayed", 1000
    return measured(directory / "bin/python", HERE / "worker.py", library, "--url", url, *counts)


def launcher(name):
    """Returns what runs a language of Debian's newest suite, with its libraries."""
    path = run("scripts/fetch-languages.sh", name).strip().partition("\t")[2]
    if not path:
        raise RuntimeError(f"{name} cannot be downloaded from Debian's archives")
    return path


def ruby(system, url, few):
    counts = (20_000 if system == "dq" else 10_000) // few, 1000 // few
    return measured(launcher("ruby-sid"), HERE / "worker.rb", system, url, *counts)


def laravel(url, few):
    """Its server is one of its own, which its tests know how to start."""
    environment = {"DQ_SERVER": run("scripts/find-server.sh").strip(), "DQ_MODULE": module()}
    return measured(launcher("php-sid"), HERE / "laravel.php", **environment)


KINDS = {"Rust": rust, "Go": go, "Node": node, "PHP": laravel}
KINDS.update({f"Ruby {name}": lambda url, few, name=name: ruby(name, url, few) for name in ("dq", "bridge", "sidekiq")})
KINDS.update({f"Python {name}": lambda url, few, name=name: python(name, url, few) for name in PYTHON})


def start(directory):
    """Starts a server. Returns its process, its URL, and what it is."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    binary = run("scripts/find-server.sh").strip()
    words = [binary, "--port", port, "--bind", "127.0.0.1", "--dir", directory, "--save", "", "--loadmodule", module()]
    server = subprocess.Popen(on_core(0, *map(str, words)), stdout=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, f"redis://127.0.0.1:{port}", run(binary, "--version").strip()
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the server does not start: {' '.join(map(str, words))}") from None
            time.sleep(0.05)


def tools():
    """Returns the versions of the languages that this machine has itself."""
    commands = {"Python": (sys.executable, "--version"), "Node": ("node", "--version"), "Go": ("go", "version")}
    return [f"{language} {re.search(r'[0-9.]+', run(*words)).group()}"
            for language, words in commands.items() if shutil.which(words[0])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="the kinds whose names contain this word")
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    given = parser.parse_args()
    OURS.mkdir(parents=True, exist_ok=True)
    rows, missing = [], []
    with tempfile.TemporaryDirectory(prefix="dq-bench-") as directory:
        server, url, version = start(directory)
        try:
            for kind, measure in KINDS.items():
                if given.only and not any(word.lower() in kind.lower() for word in given.only):
                    continue
                print(f"{kind} …", file=sys.stderr, flush=True)
                try:
                    rows += [(kind.split()[0], figures) for figures in measure(url, 10 if given.quick else 1)]
                except (RuntimeError, OSError) as error:
                    missing.append(f"{kind}: {error}")
        finally:
            server.kill()
            server.wait()
    print(f"\n{', '.join([version.split(' sha')[0], *tools()])}\n")
    print("| worker | messages a second | late, half of them, ms | late, 99 of 100, ms |\n| --- | ---: | ---: | ---: |")
    for language, figures in rows:
        late = [f"{figures[name]:.2f}" if name in figures else "–" for name in ("p50", "p99")]
        print(f"| {language}: {figures['worker']} | {figures['rate']:,.0f} | {late[0]} | {late[1]} |")
    for line in missing:
        print(f"not measured: {line}")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
