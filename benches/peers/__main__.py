"""Compares dq with other ways to keep delayed messages, each on a server of its own, in one run.

    python3 benches/peers [--quick] [--only workload,...] [--contender name,...] [--server PATH] [--module PATH]
                          [--json FILE]

The main figure is the CPU time of the server's main thread per message, in us, which depends little on how busy the
machine is. Every contender is checked: each message must arrive exactly once, and nothing may be left. A failed check
fails the run.
"""
import argparse
import gc
import glob
import json
import os
import platform
import signal
import subprocess
import sys
import time
import traceback

from contenders import CONTENDERS
from contenders.base import Missing
from process import RedisServer, pin_load, stop_all
from sizes import Sizes
from options import add_server_and_module, chosen
from tables import TABLES, Results, machine_in_words
from workloads import WORKLOADS
import report
import steal


class Lab:
    """The paths and sizes of a run."""

    def __init__(self, options):
        self.target = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", "target"))
        self.node_packages = os.path.join(self.target, "bench-node")
        self.server = options.server
        self.module = os.path.abspath(options.module)
        self.sizes = Sizes(options.quick)
        if not os.path.exists(self.module):
            sys.exit(f"{self.module} is not there; run: make build")


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="benches/peers", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small part of the messages, in about three minutes")
    parser.add_argument("--only", help="these workloads: " + ", ".join(w.name for w in WORKLOADS))
    parser.add_argument("--contender", help="these contenders: " + ", ".join(c.name for c in CONTENDERS))
    add_server_and_module(parser)
    parser.add_argument("--json", help="write the results there too; with --only or --contender into those of before")
    return parser.parse_args(arguments)


def machine():
    """The processor and its last cache, on which the ratios to SET, GET and DEL depend."""
    model = "unknown"
    with open("/proc/cpuinfo") as cpus:
        model = next((line.split(":", 1)[1].strip() for line in cpus if line.startswith("model name")), model)
    return {"cpu": model, "cores": os.cpu_count(), "cache": last_cache(), "kernel": platform.release(),
            "python": platform.python_version()}


def last_cache():
    """The size of the largest cache, such as "32768K"; None if the system does not say."""
    found = sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"))
    if not found:
        return None
    with open(found[-1]) as size:
        return size.read().strip()


def commit():
    """Returns the commit that is checked out, or None outside a repository."""
    known = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return known.stdout.strip() or None


def measure(lab, workloads, contenders, results):
    """Runs all workloads with all contenders, and records what was skipped and what failed."""
    for workload in workloads:
        suited = [one for one in contenders if workload.suits(one) and one.name not in results["skipped"]]
        print(f"{workload.name}: {workload.title}", flush=True)
        for contender in suited:
            start, watched = time.monotonic(), steal.Steal()
            try:
                results["workloads"].setdefault(workload.name, {})[contender.name] = workload().run(lab, contender)
                said = f"{time.monotonic() - start:.1f} s, {steal.told(watched.share())}"
            except Missing as missing:
                results["skipped"][contender.name] = said = str(missing)
            except Exception as error:  # the others are still measured; the run fails
                traceback.print_exc()
                results["failed"].append(f"{workload.name}, {contender.name}: {error!r}")
                said = f"FAILED: {error!r}"
            finally:
                stop_all()
            gc.collect()
            print(f"  {contender.title:28} {said}", flush=True)


def renewed(path, results):
    """Returns earlier results, updated with the figures that were measured now."""
    with open(path) as file:
        before = json.load(file)
    for workload, figures in results["workloads"].items():
        before["workloads"].setdefault(workload, {}).update(figures)
    return {**results, "seconds": before["seconds"], "steal": max(results["steal"], before.get("steal", 0)),
            "workloads": before["workloads"], "skipped": {**before["skipped"], **results["skipped"]}}


def main():
    options = options_of(sys.argv[1:])
    if not os.path.exists("/proc/self/schedstat"):
        sys.exit("the bench reads what a server costs from /proc: it needs Linux")
    lab = Lab(options)
    workloads = chosen(WORKLOADS, options.only, "workload")
    contenders = chosen(CONTENDERS, options.contender, "contender")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and not without stopping the servers
    pin_load()
    gc.disable()
    start, watched = time.monotonic(), steal.Steal()
    server = RedisServer(lab.server)
    results = {"when": time.strftime("%Y-%m-%d"), "commit": commit(), "quick": options.quick,
               "server": server.version(), "machine": machine(), "skipped": {}, "failed": [], "workloads": {}}
    server.stop()
    measure(lab, workloads, contenders, results)
    results["seconds"] = round(time.monotonic() - start)
    results["steal"] = watched.share()
    if options.json and results["steal"] > steal.LIMIT:
        results["failed"].append(f"{options.json} is not written: {steal.told(results['steal'])}")
        options.json = None
    if options.json and (options.only or options.contender) and os.path.exists(options.json):
        results = renewed(options.json, results)
    for make in TABLES.values():
        table = make(Results(results))
        if table.rows:
            report.show(table)
    if options.json:
        report.write_json(results, options.json)
    for name, reason in results["skipped"].items():
        print(f"\nskipped: {name}: {reason}")
    quick = ", quick: believe the shape only" if options.quick else ""
    print(f"\n{machine_in_words(results['machine'])}")
    print(f"{results['server']}, {results['seconds']} s, {steal.told(results['steal'])}{quick}")
    if results["failed"]:
        sys.exit("FAILED CHECKS\n  " + "\n  ".join(results["failed"]))


if __name__ == "__main__":
    main()
