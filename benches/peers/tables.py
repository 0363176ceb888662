"""The tables of the terminal, docs/performance.md and docs/internals/targets.md, made from the results of a run."""
import json
import os

from contenders import CONTENDERS
from targets import evaluate

BENCHES = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
NONE = "–"
ACKPOP = "dq with ACKPOP"
LONG_MS = 2  # a command that other clients notice


class Table:
    """A title, headings, and rows of text."""

    def __init__(self, title, headings, rows):
        self.title, self.headings, self.rows = title, headings, rows


def number(value, digits=None):
    """Three significant digits, or a fixed number of decimals; a dash if the figure was not measured."""
    if value is None:
        return NONE
    if digits is None:
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def bytes_in_words(size):
    return f"{size} B" if size < 1 << 10 else f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"


def machine_in_words(machine):
    cache = f", last cache {int(machine['cache'].rstrip('K')) / 1024:,.0f} MB" if machine.get("cache") else ""
    return f"{machine['cores']} cores ({machine['cpu']}{cache})"


def by_instructions(life):
    """How many times the instructions of SET + GET + DEL such a life costs (benches/instructions.py). Caches do not
    change it, while they decide about the same ratio of times."""
    counted = Results.beside("instructions.json").get("whole", {})
    control = counted.get("SET + GET + DEL with AOF" if life.endswith("with AOF") else "SET + GET + DEL")
    return number(counted[life] / control) if control and life in counted else NONE


def yes(value):
    return "yes" if value else "no"


class Results:
    """Looks figures up in the JSON of a run."""

    def __init__(self, results):
        self.raw = results

    def get(self, workload, contender, *path):
        value = self.raw["workloads"].get(workload, {}).get(contender)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    @staticmethod
    def beside(path):
        """What another bench wrote into this file of benches/; empty if there is none."""
        try:
            with open(os.path.join(BENCHES, path)) as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def of(self, workload):
        """The contenders that have figures of a workload, in the order of the tables."""
        measured = self.raw["workloads"].get(workload, {})
        return [(contender, measured[contender.name]) for contender in CONTENDERS if contender.name in measured]


def punctual(results, contender, rate, which):
    """A contender's figure at its usual way: waiting, or polled each second."""
    for how in ("waiting", "poll_1000ms"):
        figure = results.get("punctuality", contender.name, f"{rate}_{how}", which)
        if figure is not None:
            return figure
    return None


def central(results):
    rows = []
    for contender in CONTENDERS:
        name = contender.name
        if name in results.raw["skipped"]:
            rows.append([f"{contender.title} (not here: not measured)", *[NONE] * 6, yes(contender.acks)])
        elif any(name in figures for figures in results.raw["workloads"].values()):
            rows.append([
                contender.title, number(results.get("pushing", name, "pipeline_64_us")),
                number(results.get("life", name, "life_us")), number(results.get("life", name, "batch_life_us")),
                number(results.get("memory", name, "bytes"), 0), number(results.get("burst", name, "longest_ping_ms")),
                number(punctual(results, contender, 2000, "p99_ms")), yes(contender.acks)])
        if name == "dq" and (figures := results.get("worker", name, "memory")):
            lives = [number(figures.get(key)) for key in ("life_us", "batch_life_us")]
            rows.append([ACKPOP, NONE, *lives, *[NONE] * 3, yes(contender.acks)])
    return Table("dq and other queues", [
        "", "delayed push, µs", "push + pop + ack, µs", "the same in batches of 100, µs", "bytes per message",
        "longest PING, ms", "p99 lateness, ms", "ack"], rows)


def pushing(results):
    columns = ["pipeline_1_us", "pipeline_16_us", "pipeline_64_us", "connections_50_us"]
    return Table("Push with a random delay: CPU µs per message", [
        "", "no pipeline", "pipeline of 16", "pipeline of 64", "50 connections"],
        [[c.title, *[number(f.get(key)) for key in columns]] for c, f in results.of("pushing")])


def life(results):
    columns = ["push_us", "take_us", "ack_us", "life_us", "ratio", "batch_push_us", "batch_take_us", "batch_ack_us",
               "batch_life_us", "batch_ratio"]
    return Table("Push + pop + ack: CPU µs per message; × is relative to SET + GET + DEL in the same run", [
        "", "push", "pop", "ack", "sum", "×", "batches of 100: push", "pop", "ack", "sum", "×",
        "× by instructions", "in batches of 100"],
        [[c.title, *[number(f.get(key)) for key in columns], *instructions_of_lives(c)]
         for c, f in results.of("life")])


def instructions_of_lives(contender):
    """They are counted for dq alone."""
    if contender.name != "dq":
        return [NONE, NONE]
    return [by_instructions("life"), by_instructions("life in hundreds")]


def worker(results):
    return Table("Push + ACKPOP: CPU µs per message; × is relative to SET + GET + DEL in the same run", [
        "dq", "push + ACKPOP", "×", "× by instructions", "of push + pop + ack",
        "of the same without a pipeline", "in batches of 100, ×", "AOF bytes beyond the payload"],
        [worker_row(figures[way], words, counted) for _, figures in results.of("worker") for way, words, counted in (
            ("memory", "in memory", "life by ACKPOP"), ("aof", "with an AOF", "life by ACKPOP with AOF"))])


def worker_row(figures, words, counted):
    row = [words, number(figures.get("life_us")), number(figures.get("ratio")), by_instructions(counted),
           *[number(figures.get(key)) for key in ("of_three", "alone_of_three", "batch_ratio")]]
    return [*row, number(figures.get("aof_bytes")) if counted.endswith("with AOF") else NONE]


def durable_life(results):
    columns = ["life_us", "ratio", "batch_life_us", "batch_ratio"]
    return Table("With an AOF (everysec), and with a replica: CPU µs per message; × is relative to SET + GET + DEL "
                 "with the same", [
        "", "AOF: push + pop + ack", "×", "in batches of 100", "×", "replica: push + pop + ack", "×",
        "in batches of 100", "×"],
        [[c.title, *[number(f.get(way, {}).get(key)) for way in ("aof", "replica") for key in columns]]
         for c, f in results.of("durable-life")])


def memory(results):
    return Table("Memory per message beyond its payload of 100 bytes, bytes", [
        "", "messages", "delayed message", "remaining message after 90 % were acked"],
        [[c.title, number(f["messages"], 0), number(f["bytes"], 0), number(f.get("after_acks_bytes"), 0)]
         for c, f in results.of("memory")])


def queues(results):
    return Table("Many queues with one message each", [
        "", "queues", "bytes per queue, with payload", "push, CPU µs"], [
        [c.title, number(f["queues"], 0), number(f["bytes"], 0), number(f["push_us"])]
        for c, f in results.of("many-queues")])


def files(results):
    def written(c, which):
        return number(results.get("falling-due", c.name, which), 0)
    return Table("Files: bytes per message beyond its payload, CPU seconds for all messages", [
        "", "messages", "RDB bytes", "save, s", "load, s", "AOF bytes: push", "push + pop + ack", "in batches of 100",
        "AOF load, s", "AOF bytes when due", "replication bytes when due"],
        [[c.title, number(f["messages"], 0), number(f["rdb_bytes"], 0), number(f["save_seconds"]),
          number(f["load_seconds"]), number(f["aof_push_bytes"], 0), number(f.get("aof_life_one_bytes"), 0),
          number(f.get("aof_life_bytes"), 0), number(f["aof_load_seconds"]), written(c, "aof_bytes"),
          written(c, "replication_bytes")] for c, f in results.of("persistence")])


def punctuality(results, rates_of_others=None):
    rows = []
    for c, runs in results.of("punctuality"):
        for run in runs.values():
            if rates_of_others and c.name != "dq" and run["rate"] not in rates_of_others:
                continue
            how = "blocks" if run["how"] == "waiting" else f"polls every {run['how'][5:-2]} ms"
            rows.append([c.title, how, number(run["rate"], 0), number(run["p50_ms"]), number(run["p99_ms"]),
                         number(run["max_ms"]), f"{run['early'] * 100:.0f} %", f"{run['server_cpu'] * 100:.1f} %",
                         number(run["us"])])
    return Table("Lateness: delivery time minus due time, ms", [
        "", "consumer", "messages/s", "p50", "p99", "max", "early", "server CPU", "µs per message"], rows)


def burst(results):
    return Table("All messages due at the same instant", [
        "", "messages", "longest PING, ms", "p99 PING, ms", "longest command, ms", "longest timer run, ms",
        "in exact order", "pop + ack, µs"],
        [[c.title, number(f["messages"], 0), number(f["longest_ping_ms"]), number(f["p99_ping_ms"]),
          number(f.get("longest_command_ms")), number(f.get("longest_timer_ms")), yes(f["in_order"]),
          number(f["deliver_us"])]
         for c, f in results.of("burst")])


def growth(results):
    sizes = [size for _, figures in results.of("growth")[:1] for size in figures["sizes"]]
    rows = []
    for c, figures in results.of("growth"):
        for kind in ("push", "pop"):
            values = [figures["sizes"].get(size, {}).get(f"{kind}_us") for size in sizes]
            if any(value is not None for value in values):
                longest = figures["longest_push_ms"] if kind == "push" else None
                rows.append([f"{c.title}, {kind}", *map(number, values), number(longest)])
    return Table("CPU µs per message, by the number of waiting messages", ["", *[f"{int(size):,}" for size in sizes],
                                                      "longest command, ms"], rows)


def stalls(results):
    """The cases with commands of more than LONG_MS: the longest of each kind over all numbers of priorities and of
    blocked clients; a dash if none was worth a line in the slow log."""
    kinds = ["command_ms", "effect_ms", "ping_ms"]
    played = results.beside("stalls/results.json")
    rows = {}
    for case in played.get("cases", []):
        rows.setdefault(case["title"], []).append(case)
    rows = {title: runs for title, runs in rows.items() if any(run["command_ms"] > LONG_MS for run in runs)}
    return Table(f"Worst cases with {played.get('messages', 0):,} messages: commands of more than {LONG_MS} ms", [
        "", "command, ms", "effect on a replica, ms", "PING, ms", "limit of the command, ms", "reached"],
        [[title, *[number(max(run[kind] for run in runs) or None) for kind in kinds], number(runs[0]["limit_ms"]),
          "NO" if any(run["missed"] for run in runs) else "yes"] for title, runs in rows.items()])


def waiters(results):
    rows = []
    for _, figures in results.of("waiters"):
        rows = [[f"{int(count):,}", number(run["delayed_us"]), number(run["served_us"])]
                for count, run in figures.items() if isinstance(run, dict)]
    return Table("A push to a queue with blocked clients (dq, no pipeline): CPU µs", [
        "blocked clients", "push that is not due yet", "push that is delivered to one of them, with the delivery"],
        rows)


def capabilities(results):
    rows = []
    for _, f in results.of("capabilities"):
        schedules = f"{f['schedules']:,} schedules"
        rows = [
            [f"pop at a rate limit that is reached, {f['limit_clients']:,} waiting clients",
             f"{number(f['limit_pop_us'])} µs"],
            ["the same without a pop: runs of the timer, CPU of the server",
             f"{number(f['limit_timer_runs'], 0)}, {percent(f['limit_cpu'])}"],
            [f"{schedules} with `EVERY 60000`: memory of each beyond its payload, with its id",
             f"{number(f['schedule_bytes'])} bytes"],
            ["a declaration", f"{number(f['schedule_us'])} µs"],
            ["a declaration that changes nothing", f"{number(f['unchanged_us'])} µs"],
            [f"their {number(f['runs_a_second'], 0)} runs a second, a consumer that waits", percent(f["waiting_cpu"])],
            ["the same, a consumer that polls ten times a second", percent(f["polling_cpu"])],
            [f"{f['known_ids']:,} ids of 20 bytes in a deduplication window: memory of each",
             f"{number(f['known_id_bytes'])} bytes"],
            *grouped(f), *forwarded(f)]
    return Table("Rate limits, schedules, deduplication windows, groups and forwarding (dq)", ["", "figure"], rows)


def grouped(f):
    """The rows of groups."""
    ways = [("plain", "without groups"), ("grouped", f"in {f['groups']:,} groups"),
            ("half", f"half of them in {f['groups']:,} groups"),
            ("blocked", "in one group, so all but one are blocked")]
    return [[f"{f['grouped']:,} messages {words}: push, pop with ack, memory beyond the payload",
             f"{number(f[way + '_push_us'])} µs, {number(f[way + '_finish_us'])} µs, {number(f[way + '_bytes'])} bytes"]
            for way, words in ways]


def forwarded(f):
    """The rows of forwarding."""
    return [[f"forwarding {f['forwarded']:,} due messages into a {kind}: messages a second, CPU of each",
             f"{number(f[kind + '_a_second'], 0)}, {number(f[kind + '_us'])} µs"] for kind in ("stream", "list")]


def percent(share):
    return f"{share * 100:.1f} % of a core"


def deletion(results):
    return Table("Deleting a queue of waiting messages: time of the command, ms", ["", "messages", "DEL", "UNLINK"], [
        [c.title, number(f["messages"], 0), number(f["del_ms"]), number(f["unlink_ms"])]
        for c, f in results.of("deletion")])


def payloads(results):
    sizes = [size for _, figures in results.of("payload-sizes")[:1] for size in figures]

    def cell(figures):
        return f"{number(figures['life_us'])} ({number(figures['mb_a_cpu_second'])})" if figures else NONE

    return Table("Push + pop + ack by the size of the payload: CPU µs (MB per second of CPU)", [
        "", *[bytes_in_words(int(size)) for size in sizes]], [
        [c.title, *[cell(figures.get(size)) for size in sizes]] for c, figures in results.of("payload-sizes")])


def targets(results):
    return Table("Targets", ["", "figure", "goal", "reached"], [
        [row["what"], f"{number(row['figure'])} {row['unit']}".strip(), f"≤ {row['goal']:g} {row['unit']}".strip(),
         "yes" if row["reached"] else "NO"] for row in evaluate(results)])


def missed_targets(results):
    every = targets(results)
    rows = [row[:-1] for row in every.rows if row[-1] == "NO"]
    return Table(f"The {len(rows)} of {len(every.rows)} targets that are not reached", every.headings[:-1], rows)


# By the names of the markers in the documents.
TABLES = {"contenders": central, "pushing": pushing, "life": life, "worker": worker,
          "durable-life": durable_life, "memory": memory,
          "queues": queues, "files": files, "punctuality": punctuality, "burst": burst, "growth": growth,
          "waiters": waiters, "capabilities": capabilities, "deletion": deletion, "payloads": payloads,
           "targets": targets}


def compared(make):
    """The rows of the contenders that the pages compare in detail. The first table and the charts have all of them."""
    def some(results):
        table = make(results)
        titles = [c.title for c in CONTENDERS if c.name in ("dq", "zset-lua", "bullmq", "streams", "set-get-del")]
        return Table(table.title, table.headings, [row for row in table.rows if row[0] in titles])
    return some


# With those that another bench makes and prints. The pages show less than the terminal.
PUBLISHED = {**TABLES, "stalls": stalls, "targets": missed_targets,
             "punctuality": compared(lambda results: punctuality(results, rates_of_others=[2000])),
             **{name: compared(TABLES[name]) for name in
                ("life", "pushing", "memory", "queues", "burst", "durable-life", "files", "payloads", "deletion")}}
