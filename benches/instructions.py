#!/usr/bin/env python3
"""Counts the instructions of the hot commands under callgrind, and fails where one grew by more than a tenth.

Instructions repeat where time does not: the same build counts the same on a busy machine. Two things are counted:

- a command of the module with all that it calls, the server's own functions too;
- the whole server during push, pop and ack, without an AOF and with one. Beside it stand SET + GET + DEL, and three
  commands of a module that does nothing (benches/limit), which is the least that any module can cost.

The figures hold for one version of the server: that in benches/instructions.json. With another version, or without
valgrind, it says so and succeeds.

    benches/instructions.py [--write] [--cpu] [--functions] [--server PATH] [--module PATH]

--write makes what is counted now the figures that later runs are held against; --cpu measures the CPU time of the same
scenes too, without valgrind; --functions shows on which functions the instructions of a push and an ACKPOP are spent.
"""
import argparse
import atexit
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))

from options import add_server_and_module  # noqa: E402
from process import RedisServer  # noqa: E402
from wire import encode  # noqa: E402

BASELINE = os.path.join(HERE, "instructions.json")
GROWTH_ALLOWED = 0.10
MESSAGES = 4_000
DEPTH = 64
HUNDRED = 100
PAYLOAD = b"x" * 100
AOF = ("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
CPU_ROUNDS = 21
LIMIT_SOURCE = os.path.join(HERE, "limit", "limit.c")

# Each is taken by the ack of one that was delivered before.
IN_HAND = 64

# Figures of the whole server. In RATIOS: a figure, and what it is divided by. The goals are in peers/targets.py.
LIFE, LIFE_AOF = "life", "life with AOF"
WORKER, WORKER_AOF = "life by ACKPOP", "life by ACKPOP with AOF"
WORKER_HUNDREDS = "life by ACKPOP in hundreds"
HUNDREDS, HUNDREDS_AOF = "life in hundreds", "life in hundreds with AOF"
EMPTY, KEYS, KEYS_AOF = "three empty commands", "SET + GET + DEL", "SET + GET + DEL with AOF"
RATIOS = [(LIFE, EMPTY), (LIFE, KEYS), (HUNDREDS, KEYS), (LIFE_AOF, KEYS_AOF), (HUNDREDS_AOF, KEYS_AOF), (WORKER, LIFE),
          (WORKER, KEYS), (WORKER_AOF, KEYS_AOF), (WORKER_HUNDREDS, KEYS)]


class Loaded(RedisServer):
    """A server that is sent many commands. Its cron, which counts time, runs as seldom as it can."""

    def __init__(self, binary, *arguments, under=()):
        super().__init__(binary, "--hz", "1", "--dynamic-hz", "no", *arguments, under=under)

    def run(self, *commands):
        return self.connection.pipeline([encode(*command) for command in commands], DEPTH)


class Profiled(Loaded):
    """One under callgrind, whose profile is there once it was shut down."""

    def __init__(self, binary, *arguments):
        self.profile = tempfile.NamedTemporaryFile(prefix="dq-callgrind-")
        super().__init__(binary, *arguments, under=(
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.profile.name}"))

    def shut_down(self):
        """Shuts the server down cleanly: callgrind writes the profile when the process exits."""
        self.connection.send(encode("SHUTDOWN", "NOSAVE"))
        self.process.wait()
        self.stop()

    def dispatched(self):
        """Instructions of the module's commands by the number of their calls, each with all that it called. The names
        of their functions do not matter, nor what the compiler inlined."""
        found = {}
        for caller, _, calls, cost in self.calls():
            if caller.endswith("ModuleCommandDispatcher"):  # it calls a few small functions of the server as well
                found[calls] = max(cost, found.get(calls, 0))
        return found

    def all_instructions(self):
        """Instructions of the whole run but for the server's cron, which counts time and not commands."""
        with open(self.profile.name) as profile:
            total = next(int(line.split()[1]) for line in profile if line.startswith(("summary:", "totals:")))
        return total - sum(cost for _, called, _, cost in self.calls() if called == "serverCron")

    def calls(self):
        """The calls in the profile: who called, what, how often, and the instructions of all these calls."""
        return (cost for cost in self.costs() if cost[1] is not None)

    def costs(self):
        """The costs in the profile: the function, and what it called, how often, and the instructions; None and 0 for
        instructions of its own."""
        names, caller, called, calls = {}, "", "", None
        with open(self.profile.name) as profile:
            for line in profile:
                if line.startswith(("fn=", "cfn=")):
                    number, _, name = line.split("=", 1)[1].strip().partition(" ")  # a name is given only once
                    name = names.setdefault(number, name)
                    caller, called = (name, called) if line.startswith("fn=") else (caller, name)
                elif line.startswith("calls="):
                    calls = int(line[6:].split()[0])
                elif calls is not None:  # the line after that of the calls has their cost
                    yield caller, called, calls, int(line.split()[1])
                    calls = None
                elif line[0] in "0123456789+-*":
                    yield caller, None, 0, int(line.split()[1])

    def functions(self):
        """The instructions of the whole run by the functions that they belong to, without what these called."""
        found = collections.Counter()
        for function, called, _, cost in self.costs():
            found[function] += cost if called is None else 0
        return found


def receipts(replies):
    return [message[3] for reply in replies for message in reply]


# Each command of a scene is called a different number of times, which tells them apart in the profile. A scene returns
# for each figure the number of calls and of messages in each call.

def one_by_one(server):
    server.run(*[("DQ.PUSH", "q", PAYLOAD)] * (MESSAGES + 2))
    delivered = receipts(server.run(*[("DQ.POP", "q")] * (MESSAGES + 1)))
    server.run(*[("DQ.ACK", "q", receipt) for receipt in delivered[:MESSAGES]])
    return {"push": (MESSAGES + 2, 1), "pop": (MESSAGES + 1, 1), "ack": (MESSAGES, 1)}


def in_hundreds(server):
    batches = MESSAGES // HUNDRED
    server.run(*[("DQ.MPUSH", "q", HUNDRED, *[PAYLOAD] * HUNDRED)] * (batches + 2))
    delivered = receipts(server.run(*[("DQ.POP", "q", "COUNT", HUNDRED)] * (batches + 1)))
    server.run(*[("DQ.ACK", "q", *delivered[at:at + HUNDRED]) for at in range(0, MESSAGES, HUNDRED)])
    return {"push of 100": (batches + 2, HUNDRED), "pop of 100": (batches + 1, HUNDRED),
            "ack of 100": (batches, HUNDRED)}


def by_worker(server):
    held = pushes(server)
    while held:
        replies = server.run(*[("DQ.ACKPOP", "q", 1, receipt) for receipt in held])
        held = receipts([reply[1] for reply in replies if reply[1]])
    return {"ack and pop": (MESSAGES, 1)}


def by_worker_in_hundreds(server):
    batches = MESSAGES // HUNDRED
    server.run(*[("DQ.MPUSH", "q", HUNDRED, *[PAYLOAD] * HUNDRED)] * (batches + 1))
    held = receipts(server.run(("DQ.POP", "q", "COUNT", HUNDRED)))
    for _ in range(batches):
        (acked, messages), = server.run(("DQ.ACKPOP", "q", HUNDRED, *held, "COUNT", HUNDRED))
        held = receipts([messages])
    return {"ack and pop of 100": (batches, HUNDRED)}


def delayed(server):
    # Scattered over an hour, the same in every run.
    server.run(*[("DQ.PUSH", "q", PAYLOAD, "DELAY", 1 + n * 48_271 % 3_600_000) for n in range(1, MESSAGES + 1)])
    return {"delayed push": (MESSAGES, 1)}


def given_back(server):
    server.run(*[("DQ.MPUSH", "q", HUNDRED, *[PAYLOAD] * HUNDRED)] * (MESSAGES // HUNDRED))
    delivered = receipts(server.run(("DQ.POP", "q", "COUNT", MESSAGES)))
    server.run(*[("DQ.EXTEND", "q", receipt, "LEASE", 60_000) for receipt in [*delivered, delivered[-1]]])
    server.run(*[("DQ.NACK", "q", receipt, "DELAY", 5_000) for receipt in delivered])
    return {"extend": (MESSAGES + 1, 1), "nack": (MESSAGES, 1)}


def empty_commands(server):
    server.run(*[("LIMIT.PUSH", "q", PAYLOAD)] * MESSAGES)
    delivered = receipts(server.run(*[("LIMIT.POP", "q")] * MESSAGES))
    server.run(*[("LIMIT.ACK", "q", receipt) for receipt in delivered])
    return {}


def keys(server):
    names = [b"control:%d" % number for number in range(MESSAGES)]
    server.run(*[("SET", name, PAYLOAD) for name in names])
    server.run(*[("GET", name) for name in names])
    server.run(*[("DEL", name) for name in names])
    return {}


def pushes(server):
    """What comes before the first ACKPOP."""
    server.run(*[("DQ.PUSH", "q", PAYLOAD)] * MESSAGES)
    return receipts(server.run(("DQ.POP", "q", "COUNT", IN_HAND)))


def nothing(_):
    return {}


# The sums by what the server is started with; what it takes to start and to end is subtracted.
WHOLE = [("dq", (), {LIFE: one_by_one, HUNDREDS: in_hundreds, WORKER: by_worker,
                    WORKER_HUNDREDS: by_worker_in_hundreds, KEYS: keys}),
         ("dq", AOF, {LIFE_AOF: one_by_one, HUNDREDS_AOF: in_hundreds, WORKER_AOF: by_worker, KEYS_AOF: keys}),
         ("limit", (), {EMPTY: empty_commands})]


def count(binary, modules):
    """Instructions a message of each hot command, those of the whole server, and the server's version."""
    counted, whole = {}, {}
    for module, arguments, scenes in WHOLE:
        idle, _, _ = profiled(binary, modules[module], nothing, arguments)
        for name, scene in scenes.items():
            all_of_it, commands, version = profiled(binary, modules[module], scene, arguments)
            whole[name] = round((all_of_it - idle) / MESSAGES)
            if not arguments:
                counted.update(commands)
    for scene in (delayed, given_back):
        counted.update(profiled(binary, modules["dq"], scene, ())[1])
    return counted, whole, version


def profiled(binary, module, scene, arguments):
    """Instructions of the whole run, those of each command a message, and the server's version."""
    server = run_to_end(binary, module, scene, arguments)
    dispatched = server.dispatched()
    commands = {
        name: round(dispatched[calls] / calls / messages) for name, (calls, messages) in server.played.items()}
    return server.all_instructions(), commands, server.known_version


def run_to_end(binary, module, scene, arguments=()):
    """A server that has played a scene under callgrind, and has ended. It keeps what the scene returned."""
    server = Profiled(binary, "--loadmodule", module, *arguments)
    server.known_version = server.version()
    server.played = scene(server)
    server.shut_down()
    return server


def cpu_us(binary, modules):
    """CPU us a message of the same scenes in one server for each way to start it: the median of interleaved rounds."""
    rounds = {}
    for arguments in ((), AOF):
        server = Loaded(binary, *(word for module in modules.values() for word in ("--loadmodule", module)), *arguments)
        scenes = {name: scene for _, started, some in WHOLE if started == arguments for name, scene in some.items()}
        for _ in range(CPU_ROUNDS):
            for name, scene in scenes.items():
                with server.cost(MESSAGES) as cost:
                    scene(server)
                rounds.setdefault(name, []).append(cost.us)
        server.stop()
    return {name: sorted(figures)[len(figures) // 2] for name, figures in rounds.items()}


def show_functions(binary, module):
    """Prints on which functions the instructions of a push and of an ACKPOP are spent, those of the server too."""
    idle, pushed, worked = (run_to_end(binary, module, scene).functions() for scene in (nothing, pushes, by_worker))
    for command, before, after in (("push", idle, pushed), ("ACKPOP", pushed, worked)):
        spent = {name: (after[name] - before[name]) / MESSAGES for name in after}
        own = sum(cost for name, cost in spent.items() if "::" in name)
        print(f"{command}: {sum(spent.values()):,.0f} instructions, of which {own:,.0f} are the module's")
        for name, cost in sorted(spent.items(), key=lambda item: -item[1])[:10]:
            print(f"  {cost:7,.0f}  {name}")


def built_limit():
    """The module that does nothing, built where the temporary files are."""
    path = os.path.join(tempfile.mkdtemp(prefix="dq-limit-"), "limit.so")
    atexit.register(shutil.rmtree, os.path.dirname(path), ignore_errors=True)
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", path, LIMIT_SOURCE], check=True)
    return path


def compare(counted, before, title):
    """Prints the figures next to the earlier ones; returns those that have grown too much."""
    print(f"{title:48}now   before")
    for name, now in counted.items():
        print(f"  {name:38}{now:11,}{before.get(name, 'new'):>9}")
    return [f"{name}: {before[name]} to {now}" for name, now in counted.items()
            if name in before and now > before[name] * (1 + GROWTH_ALLOWED)]


def print_ratios(figures, unit):
    for ours, theirs in RATIOS:
        print(f"  {f'{ours} / {theirs}':54}{figures[ours] / figures[theirs]:5.2f} ({unit})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="make these the figures that later runs are held against")
    parser.add_argument("--cpu", action="store_true", help="measure the CPU time of the same too, without valgrind")
    parser.add_argument("--functions", action="store_true", help="show on which functions they are spent instead")
    add_server_and_module(parser)
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("instructions were not counted: there is no valgrind here")
        return
    if options.functions:
        show_functions(options.server, os.path.abspath(options.module))
        return
    modules = {"dq": os.path.abspath(options.module), "limit": built_limit()}
    counted, whole, version = count(options.server, modules)
    if options.write:
        with open(BASELINE, "w") as file:
            json.dump({"server": version, "instructions": counted, "whole": whole}, file, indent=2)
            file.write("\n")
    with open(BASELINE) as file:
        baseline = json.load(file)
    grown = compare(counted, baseline["instructions"], f"instructions a message, {version}")
    grown += compare(whole, baseline.get("whole", {}), "of the whole server")
    print_ratios(whole, "instructions")
    if options.cpu:
        figures = cpu_us(options.server, modules)
        print("CPU us a message of the server's main thread")
        for name, us in figures.items():
            print(f"  {name:38}{us:11.2f}")
        print_ratios(figures, "CPU")
    if version != baseline["server"]:
        print(f"not compared: the figures before are of {baseline['server']}")
    elif grown:
        sys.exit("grown by more than a tenth: " + "; ".join(grown)
                 + ". If that is meant, benches/instructions.py --write, and say why in the commit")


if __name__ == "__main__":
    main()
