"""Plants a fault into a copy of a client, one for each point of the suite, and expects the suite to notice each.

python clients/conformance/planted.py [--turn 2/3] [CLIENT ...]

With ``--turn 2/3`` it plants the second third of the faults of each client.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import planted_php
import planted_ruby
import planted_rust
from planted_rules import RULES
from program import clients
from server import ROOT

HERE = pathlib.Path(__file__).resolve().parent
# What is broken, where, how, and the tests that are to notice it: a point, or a point and a part of names.
FAULTS = {
    "python": [
        (
            "1 pops more than it can work on",
            "worker/fetcher.py",
            '"COUNT", self._asked',
            '"COUNT", self._asked + 1',
            "test_1",
        ),
        ("1 works on few by default", "worker/__init__.py", "concurrency: int = 8", "concurrency: int = 1", "test_1"),
        (
            "2 extends leases too late",
            "worker/reporter.py",
            "due - time.monotonic()",
            "due + 2 * lane.lease - time.monotonic()",
            "test_2",
        ),
        ("2 does not hear of losses", "worker/listener.py", "lane.noticed(text(reason), receipt)", "pass", "test_2"),
        ("2 does not watch its own clock", "worker/clock.py", "delivery.end <= now", "False", "test_2"),
        (
            "2 lets a handler block what extends",
            "worker/handlers.py",
            "_may_begin(lane, delivery):",
            "_hold(lane):",
            "test_2",
        ),
        (
            "2 begins to extend when the default lease would need it",
            "worker/reporter.py",
            "else pause)",
            "else pause if lane.asked_lease_ms else max(pause, 7.5))",
            "test_2",
        ),
        ("3 retries what is rejected", "worker/outcome.py", '["DEAD", "ERROR"', '["ERROR"', "test_3"),
        ("3 asks for a retry after no time", "worker/outcome.py", "not 0 <= delay <= _LONGEST_MS", "False", "test_3"),
        ("3 fails for a long result", "worker/outcome.py", "len(stored) > RESULT_BYTES", "False", "test_3"),
        (
            "3 fails for a result that is no JSON",
            "worker/outcome.py",
            'return ACK._replace(error=f"the result is no',
            'raise error\n        (f"the result is no',
            "test_3",
        ),
        ("3 stores texts as JSON", "worker/outcome.py", "isinstance(result, str) and not as_json", "False", "test_3"),
        ("3 never acks with the next pop", "worker/lane.py", "outcome is ACK and self.collecting", "False", "test_3"),
        (
            "3 rejects what it cannot decode",
            "worker/outcome.py",
            "if isinstance(error, Reject):",
            'if isinstance(error, Reject) or type(error).__name__ == "UnknownTask":',
            "test_3",
        ),
        ("3 does not log that a message is dead", "worker/log.py", '"; now dead" if', '"" if', "test_3"),
        ("4 counts what it gives back", "worker/outcome.py", '"DQ.NACK", ["NOCOUNT"]', '"DQ.NACK", []', "test_4"),
        (
            "4 does not end its pops",
            "worker/fetcher.py",
            "thread.join(0.02)",
            "thread.join(9)",
            "test_4",
        ),
        ("4 unblocks pops that are put off", "source.py", '("MULTI",), ("DQ.ACK", key, "#"), ', "", "test_4"),
        (
            "5 does not pop after an error",
            "worker/fetcher.py",
            "self._pause(error)\n        ",
            "return\n        ",
            "test_5",
        ),
        (
            "5 drops outcomes that were refused",
            "worker/reporter.py",
            "and is_transient(reply):\n                again",
            "and False:\n                again",
            "test_5",
        ),
        ("6 repeats pushes for a minute", "queue.py", "PUSH_SECONDS = 10", "PUSH_SECONDS = 60", "test_6"),
        ("6 does not repeat pushes", "queue.py", "isinstance(error, (ConnectionLost, OutOfMemory))", "False", "test_6"),
        ("6 repeats pushes under new ids", "queue.py", '            given["id"] = uuid', "            uuid", "test_6"),
        (
            "9 needs HELLO",
            "source.py",
            "except redis.ResponseError:\n            pass",
            "except ZeroDivisionError:\n            pass",
            "test_9",
        ),
        ("7 loses headers", "context.py", 'headers(self.meta.get("headers"))', "{}", "test_7"),
        ("8 does not miss the module", "errors.py", "the server has not loaded the module dq", "no", "test_8"),
        ("8 pops without a name", "worker/fetcher.py", ', "AS", self._worker.consumer]', "]", "test_8"),
        (
            "9 takes ids for valid UTF-8",
            "wire.py",
            'value.decode("utf-8", "surrogateescape")',
            'value.decode("utf-8", "replace")',
            "test_9",
        ),
    ],
    "go": [
        ("1 pops more than it can work on", "fetch.go", '"COUNT", f.asked)', '"COUNT", f.asked+1)', "test_1"),
        (
            "1 works on few messages by default",
            "worker.go",
            "defaultConcurrency = 8",
            "defaultConcurrency = 1",
            "test_1",
        ),
        ("1 works on one message after the other", "lane.go", "go d.run()", "d.run()", "test_1"),
        (
            "2 extends leases too late",
            "lane.go",
            "now.Add(left), now.Add(l.half(left))",
            "now.Add(left), now.Add(left*2)",
            "test_2",
        ),
        ("2 does not hear of losses", "listen.go", "l.hear(reason, receipt)", "_ = receipt", "test_2"),
        ("2 does not watch its own clock", "lane.go", "case !d.end.After(now):", "case false:", "test_2"),
        (
            "2 begins to extend when the default lease would need it",
            "lane.go",
            "l.lookAt(d.due)\n\t\tl.ringAt(earlier(d.end, d.limit))\n\t}\n\tl.working",
            "if l.settings.lease > 0 { l.lookAt(d.due) } "
            "else { l.lookAt(now.Add(defaultLease / 4 * time.Millisecond)) }"
            "\n\t\tl.ringAt(earlier(d.end, d.limit))\n\t}\n\tl.working",
            "test_2",
        ),
        ("3 retries what is rejected", "outcome.go", '"DEAD", "ERROR"', '"ERROR"', "test_3"),
        (
            "3 never acks with the next pop",
            "lane.go",
            "case o.command == acked.command && l.collecting:",
            "case false:",
            "test_3",
        ),
        ("3 has the server refuse what is no time", "errors.go", "d < 0 || d > longestDelay", "false", "test_3"),
        (
            "3 has the server refuse long results",
            "outcome.go",
            "case len(m.result) > resultBytes:",
            "case false:",
            "test_3",
        ),
        (
            "3 rejects what it cannot decode",
            "mux.go",
            "return &payloadError{reflect.TypeOf(&value).Elem(), err}",
            "return &payloadError{reflect.TypeOf(&value).Elem(), ErrReject}",
            "test_3",
        ),
        ("3 does not say that a message is dead", "event.go", 'end = "; now dead"', 'end = " "', "test_3"),
        ("4 counts what it gives back", "outcome.go", 'words: []any{"NOCOUNT"}', "words: nil", "test_4"),
        ("4 does not end its pops", "worker.go", "go w.endPops(popped)", "", "test_4"),
        (
            "4 unblocks pops that are put off",
            "worker.go",
            '[]any{"MULTI"}, []any{"DQ.ACK", l.key, "#"}, []any{"CLIENT", "UNBLOCK", id},\n\t\t\t\t\t[]any{"EXEC"})',
            '[]any{"CLIENT", "UNBLOCK", id})',
            "test_4",
        ),
        (
            "5 does not pop after an error",
            "fetch.go",
            "waitFor(l.worker.running.Done(), pauses.next())",
            "pauses.next(); return",
            "test_5",
        ),
        ("5 drops outcomes that were refused", "report.go", "if isTransient(refused) {", "if false {", "test_5"),
        (
            "6 does not repeat pushes",
            "push.go",
            "again := isLost ||",
            "again := isLost && false ||",
            "test_6",
        ),
        (
            "6 repeats pushes under new ids",
            "push.go",
            "for made && len(c.ids) < n {",
            "for false {",
            "test_6",
        ),
        ("6 repeats pushes for a minute", "push.go", "pushTimeout = 10 *", "pushTimeout = 60 *", "test_6"),
        ("7 loses headers", "lane.go", 'texts(meta["headers"])', "texts(nil)", "test_7"),
        (
            "8 does not say that the module is missing",
            "errors.go",
            '"the server has not loaded the module dq: " + ',
            "",
            "test_8",
        ),
        ("8 pops without a name", "fetch.go", ', "AS", f.name)', ")", "test_8"),
        ("9 needs HELLO", "fetch.go", 'reply, err = f.ask(0, "CLIENT", "ID")', "return err", "test_9"),
        (
            "9 takes ids for valid UTF-8",
            "reply.go",
            "string(raw(reply))",
            "string([]rune(string(raw(reply))))",
            "test_9",
        ),
    ],
    "node": [
        ("1 pops more than it can work on", "thread/lane.js", "String(room)", "String(room + 1)", "test_1"),
        ("1 works on few by default", "worker.js", "CONCURRENCY = 8", "CONCURRENCY = 1", "test_1"),
        (
            "2 extends leases too late",
            "thread/lane.js",
            "due: isKnown ? now + this.#half(left) : now",
            "due: now + 2 * left",
            "test_2",
        ),
        ("2 does not hear of losses", "thread/listener.js", "lane.noticed(notice)", "undefined", "test_2"),
        ("2 does not watch its own clock", "thread/lane.js", "delivery.end <= now", "false", "test_2"),
        (
            "2 begins to extend when the default lease would need it",
            "thread/lane.js",
            "due: isKnown ? now + this.#half(left) : now",
            "due: now + (this.config.lease ? left / 2 : 7500)",
            "test_2",
        ),
        ("3 retries what is rejected", "outcome.js", "'DEAD', 'ERROR'", "'ERROR'", "test_3"),
        ("3 asks for a retry after no time", "errors.js", "return typeof after === 'number'", "return true", "test_3"),
        ("3 has the server refuse long results", "outcome.js", "bytes.length > RESULT_BYTES", "false", "test_3"),
        ("3 stores texts as JSON", "outcome.js", "typeof result === 'string' && !job.isJob()", "false", "test_3"),
        ("3 never acks with the next pop", "thread/popper.js", "lane.collecting = true", "", "test_3"),
        (
            "3 rejects what it cannot decode",
            "job.js",
            "new errors_js_1.DqError(",
            "new errors_js_1.UnrecoverableError(",
            "test_3",
        ),
        (
            "3 does not log that a message is dead",
            "thread/lane.js",
            "isDead: state === 'dead'",
            "isDead: false",
            "test_3",
        ),
        ("4 counts what it gives back", "outcome.js", "['DQ.NACK', 'NOCOUNT']", "['DQ.NACK']", "test_4"),
        ("4 does not end its pops", "thread/engine.js", "await this.#endPop()", "", "test_4"),
        (
            "4 unblocks pops that are put off",
            "thread/engine.js",
            "await link.send(['MULTI']);",
            "return link.send(['CLIENT', 'UNBLOCK', id]);",
            "test_4",
        ),
        ("5 does not pop after an error", "thread/popper.js", "await this.#pause(error)", "return", "test_5"),
        ("5 spins on errors", "thread/popper.js", "await this.#lane.pause(", "void (", "test_5"),
        (
            "5 drops outcomes that were refused",
            "thread/settle.js",
            "(isPop || ",
            "(isPop && ",
            "test_5",
        ),
        ("6 does not repeat pushes", "push.js", "!again || ", "true || ", "test_6"),
        (
            "6 repeats pushes under new ids",
            "push.js",
            "(given.id ?? null) === null && this",
            "false && this",
            "test_6",
        ),
        ("6 repeats pushes for a minute", "push.js", "PUSH_TIMEOUT_MS = 10_000", "PUSH_TIMEOUT_MS = 60_000", "test_6"),
        ("7 loses headers", "job.js", "this.#headers ??=", "this.#headers ??= {} ??", "test_7"),
        ("8 does not miss the module", "refusals.js", "not loaded the module dq", "refused", "test_8"),
        (
            "8 pops without a name",
            "thread/lane.js",
            ", 'AS', (0, job_js_1.unpacked)(this.config.consumer)]",
            "]",
            "test_8",
        ),
        (
            "9 needs HELLO",
            "thread/popper.js",
            "if (!(error instanceof errors_js_1.Refused))\n",
            "",
            "test_9",
        ),
        ("9 takes ids for valid UTF-8", "bytes.js", "String.fromCharCode(0xdc00 + first)", "'\\ufffd'", "test_9"),
    ],
}
FAULTS["rust"] = planted_rust.FAULTS
FAULTS["php"] = list(planted_php.FAULTS)
for client, more in RULES.items():
    FAULTS[client] += more
FAULTS["ruby"] = planted_ruby.FAULTS
# Where the sources of a client are.
SOURCES = {"python": "src/dq_client", "go": ".", "ruby": "."}
# The programs in Rust are built one after the other, so that what they depend on is built once.
BUILDING = Lock()
EXTRA = {
    "_hold(lane):": (
        "worker/handlers.py",
        "    def _may_begin(",
        "    def _hold(self, lane: Any) -> bool:\n        with lane.lock:\n"
        "            __import__('time').sleep(3)\n        return True\n\n    def _may_begin(",
    ),
    **planted_ruby.EXTRA,
}


def copy(client, directory):
    """Copies a client. Returns the folder in which faults are planted."""
    if client == "rust":
        ignored = shutil.ignore_patterns("target", "node_modules", ".git")
        return shutil.copytree(ROOT, directory / "dq", ignore=ignored) / "clients/rust/src"
    if client == "php":
        return shutil.copytree(HERE.parent / client, directory / client) / "src"
    if client != "node":
        return shutil.copytree(HERE.parent / client / SOURCES[client], directory / "dq_client")
    for part in ("dist", "conformance"):
        shutil.copytree(HERE.parent / client / part, directory / part)
    shutil.copy(HERE.parent / client / "package.json", directory)
    (directory / "node_modules").symlink_to((HERE.parent / client / "node_modules").resolve())
    return directory / "dist"


def sources(client):
    """Returns the folder of the repository that has the files in which the faults of a client are planted."""
    folders = {"rust": "src", "php": "src", "node": "dist", **SOURCES}
    return HERE.parent / client / folders[client]


def fitting(folder, file, old):
    """Returns the text of a file, in which a fault replaces ``old``."""
    text = (folder / file).read_text()
    assert old in text, f"{file} no longer has {old!r}: plant this fault in another way"
    return text


def change(folder, file, old, new):
    """Replaces a text in a file."""
    text = fitting(folder, file, old)
    (folder / file).write_text(text.replace(old, new))


def prepare(client, folder):
    """Builds a copy of a client, if it is to be built. Returns the environment in which the suite drives the copy."""
    environment = dict(os.environ, PYTHONPATH=str(folder.parent))
    if client in ("node", "php"):
        environment["DQ_PROGRAMS"] = str(folder.parent / "conformance")
    if client == "ruby":
        environment["DQ_PROGRAMS"] = str(folder / "conformance")
    if client == "rust":
        programs, target = folder.parent / "programs", ROOT / "target/clients/planted"
        with BUILDING:
            # To Cargo, all copies are one package: it compares the times of the files.
            (folder / "lib.rs").touch()
            command = "cargo build --locked --quiet -p dq-client --example worker --example push".split()
            subprocess.run(command, cwd=folder, env=dict(environment, CARGO_TARGET_DIR=str(target)), check=True)
            programs.mkdir()
            for program in ("worker", "push"):
                shutil.copy(target / "debug/examples" / program, programs)
        environment["DQ_PROGRAMS"] = str(programs)
    if client == "go":
        workspace = os.environ.get("GOWORK")  # `make test-clients` sets it if there is no proxy for modules.
        if workspace:
            text = pathlib.Path(workspace).read_text().replace(str(HERE.parent / "go"), str(folder))
            (folder / "go.work").write_text(text)
            environment["GOWORK"] = str(folder / "go.work")
        for program in ("worker", "push"):
            sources = f"conformance/{program}.go", "conformance/redigo.go"
            command = ["go", "build", "-o", str(folder / "programs" / program), *sources]
            subprocess.run(command, cwd=folder, env=environment, check=True)
        environment["DQ_PROGRAMS"] = str(folder / "programs")
    return environment


def is_noticed(client, fault):
    """Returns whether the suite fails with a fault."""
    name, file, old, new, tests = fault
    with tempfile.TemporaryDirectory(prefix="dq-planted-") as directory:
        folder = copy(client, pathlib.Path(directory))
        change(folder, file, old, new)
        if new in EXTRA:
            change(folder, *EXTRA[new])
        point, _, names = tests.partition(" ")
        files = [path.name for path in sorted(HERE.glob(f"{point}_*.py"))] + (["-k", names] if names else [])
        try:
            environment = prepare(client, folder)
        except subprocess.CalledProcessError:
            print(f"MISSED  {client}: {name} (it does not build: plant it in another way)", flush=True)
            return False
        if "in an event loop" in name:
            environment["DQ_FACE"] = "asyncio"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "--client", client, "-p", "no:cacheprovider", *files],
            cwd=HERE,
            env=environment,
            capture_output=True,
            text=True,
        )
    last = done.stdout.strip().splitlines()[-1:]
    print(f"{'noticed' if done.returncode == 1 else 'MISSED '} {client}: {name} ({' '.join(last)})", flush=True)
    return done.returncode == 1


def main(arguments):
    """Plants the faults whose turn it is. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--turn", default="1/1", metavar="N/PARTS")
    options.add_argument("clients", nargs="*", default=[client for client in FAULTS if client in clients()])
    asked = options.parse_args(arguments)
    turn, parts = (int(number) for number in asked.turn.split("/"))
    if not 1 <= turn <= parts:
        options.error(f"--turn {asked.turn}: a part is a number from 1 to {parts}")
    faults = [(client, fault) for client in asked.clients for fault in FAULTS[client][turn - 1 :: parts]]
    with ThreadPoolExecutor(6) as pool:
        # Whether a fault shows may depend on times: one that was missed on a busy machine is tried a second time.
        noticed = list(pool.map(lambda planted: is_noticed(*planted) or is_noticed(*planted), faults))
    return 0 if all(noticed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
