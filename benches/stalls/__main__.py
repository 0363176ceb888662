"""Plays the worst cases of dq, and prints how long the server was busy with one thing in each.

    python3 benches/stalls [--quick] [--messages N] [--only case,...] [--priorities 1,256] [--waiting 0,16] [--strict]
                           [--server PATH] [--module PATH] [--json FILE]

Each case piles up work or asks for much at once, on a master with a replica, with 1 and with 256 priorities, with and
without blocked clients. The figures are what the servers count themselves: the longest command, the longest turn of a
blocked client, the longest run of the timer, and on the replica the longest effect and the longest run of its timer.
The limit of each is 2 ms, and 1.5 us for each message that the command was itself asked to touch. PING is what another
client saw, which includes what the servers do not count, such as a turn of a blocked client that got nothing. Its limit
is 4 ms beyond the longest command, because it may come behind a turn and a timer run as well. Pauses of the machine are
watched and left out of it. A case that misses a limit is played up to three times, and the least of each figure counts:
what the machine does happens now and then, and what dq does happens each time.
"""
import argparse
import gc
import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "peers"))

from options import add_server_and_module, chosen  # noqa: E402
from process import RedisServer, pin_load, stop_all  # noqa: E402
import report  # noqa: E402

from cases import CASES  # noqa: E402
from figures import LIMIT_MS, judge, limit_ms, table_of  # noqa: E402
from play import TooSlow, play  # noqa: E402

MESSAGES, QUICK_MESSAGES = 1_000_000, 100_000
TRIES = 3  # for a case that misses its limit
SLOW_MACHINE_TRIES = 4  # the time for preparing a case doubles with each


def numbers(text):
    return [int(number) for number in text.split(",")]


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="benches/stalls", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_MESSAGES:,} messages instead of {MESSAGES:,}")
    parser.add_argument("--messages", type=int, help="so many messages")
    parser.add_argument("--only", help="these cases: " + ", ".join(case.name for case in CASES))
    parser.add_argument("--priorities", type=numbers, default=[1, 256], help="numbers of priorities, default 1,256")
    parser.add_argument("--waiting", type=numbers, default=[0, 16], help="numbers of blocked clients, default 0,16")
    parser.add_argument("--strict", action="store_true", help="fail if a limit is missed")
    add_server_and_module(parser)
    parser.add_argument("--json", help="write the results there too")
    return parser.parse_args(arguments)


def measured(options, case, messages, priorities, waiting):
    """The figures of one case: the least of each over the times that it was played."""
    best = None
    for _ in range(TRIES):
        figures = played_in_time(options, case, messages, priorities, waiting)
        best = figures if best is None else {key: min(value, best[key]) for key, value in figures.items()}
        if not judge(best, limit_ms(case.asked(messages))):
            break
    return best


def played_in_time(options, case, messages, priorities, waiting):
    for attempt in range(SLOW_MACHINE_TRIES):
        try:
            return play(options.server, options.module, case, messages, priorities, waiting, patience=2 ** attempt)
        except TooSlow:
            continue
        finally:
            stop_all()
    raise TooSlow(f"{case.name} could not be prepared in time: the machine is too busy")


def main():
    options = options_of(sys.argv[1:])
    if not os.path.exists("/proc/self/schedstat"):
        sys.exit("the bench uses /proc and needs Linux")
    options.module = os.path.abspath(options.module)
    if not os.path.exists(options.module):
        sys.exit(f"{options.module} is not there; run: make build")
    messages = options.messages or (QUICK_MESSAGES if options.quick else MESSAGES)
    cases = chosen(CASES, options.only, "case")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and not without stopping the servers
    pin_load()
    gc.disable()
    start = time.monotonic()
    version = RedisServer(options.server).version()
    stop_all()
    results = {"when": time.strftime("%Y-%m-%d"), "server": version, "messages": messages, "cases": [], "failed": []}
    for case in cases:
        for priorities in options.priorities:
            for waiting in options.waiting if case.may_wait else [0]:
                name = f"{case.name}, {priorities} priorities, {waiting} waiting"
                try:
                    figures = measured(options, case, messages, priorities, waiting)
                except Exception as error:  # the others are still played; the run fails
                    results["failed"].append(f"{name}: {error!r}")
                    print(f"{name}: FAILED: {error!r}", flush=True)
                    continue
                limit = limit_ms(case.asked(messages))
                missed = judge(figures, limit)
                results["cases"].append({"case": case.name, "title": case.title, "priorities": priorities,
                                         "waiting": waiting, "limit_ms": limit, **figures, "missed": missed})
                longest = max([figures[key] for key in missed], default=0)
                said = f"MISSED: {', '.join(missed)}, {longest:.1f} ms" if missed else "REACHED"
                print(f"{name}: {said}", flush=True)
                gc.collect()
    results["seconds"] = round(time.monotonic() - start)
    report.show(table_of(results))
    if options.json:
        report.write_json(results, options.json)
    missed = sum(bool(case["missed"]) for case in results["cases"])
    cases = len(results["cases"])
    print(f"\n{version}, {messages:,} messages, {results['seconds']} s: {missed} of {cases} cases missed"
          f" the limit of {LIMIT_MS} ms, and 1.5 us for each message that the command was asked to touch")
    if results["failed"]:
        sys.exit("FAILED\n  " + "\n  ".join(results["failed"]))
    if missed and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
