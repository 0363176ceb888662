"""Workers of all clients, while they and their server are killed: each message is worked on and acked, and acked once.

python clients/conformance/soak.py [--seconds N] [--seed N] [--client NAME …] [--planted]

Each client has a queue of its own, its producer and two workers. What happens is drawn from the seed that is printed;
how the processes take turns is not repeated. A message that was worked on twice needs a reason: a handler failed, a
worker was killed or stopped, or the server was away for as long as a lease lasts.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import planted
import program
import server

LEASE_MS = 5000
GRACE_MS = 1000
WORKERS, CONCURRENCY = 2, 8
# Messages a second. The handlers of dqctl are processes.
RATES = collections.defaultdict(lambda: 30.0, dqctl=3.0)
# How long a handler may take from what it says of its end until the worker knows it: a process still has to exit.
EXIT_MS = collections.defaultdict(int, dqctl=500)
# How often something is killed or stopped on average, and how long it is away at most.
CALM_SECONDS = 0.8
AWAY_SECONDS = 1.0
# Within this time everything is done once nothing is killed any more.
PATIENCE = 60.0


def now():
    """Returns Unix milliseconds."""
    return time.time_ns() // 1_000_000


class Life:
    """A process of a worker, and how it ended."""

    def __init__(self, client, url, name):
        self.client = client
        self.program = program.Program(client, url, f"{name}={CONCURRENCY}", lease=LEASE_MS, grace=GRACE_MS)
        self.ended, self.since = None, None
        """``killed`` or ``stopped``, and when that began, in Unix ms."""

    def kill(self):
        """Kills it, and what it has started."""
        self.ended, self.since = "killed", now()
        if self.client == "dqctl":  # The program around it ends by itself.
            children = pathlib.Path(f"/proc/{self.program.pid}/task/{self.program.pid}/children").read_text()
            os.kill(int(children), signal.SIGKILL)
            self.program.exit_code()
        self.program.kill9()

    def stop(self):
        """Has it stop. Returns its exit code."""
        self.ended, self.since = "stopped", now()
        self.program.signal("TERM")
        return self.program.exit_code()


class Site:
    """The queue of one client, with its producer and its workers."""

    def __init__(self, client, url, seed):
        self.client, self.url, self.queue = client, url, f"soak-{client}"
        self.random = random.Random(f"{seed} {client}")
        self.lives, self.workers = [], [None] * WORKERS
        self.ids, self.unanswered = {}, queue.Queue()
        self.gone = {}
        """When a message was seen to be gone, in Unix ms."""

    def start(self, place):
        """Starts a worker."""
        self.workers[place] = life = Life(self.client, self.url, self.queue)
        self.lives.append(life)

    def produce(self, until):
        """Pushes until an instant. An id is pushed again until it is answered."""
        words = program._commands(self.client)[1] or program._commands("python")[1]
        producer = subprocess.Popen(
            [*words, "--url", self.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        while time.monotonic() < until:
            id = f"{self.client}-{len(self.ids)}"
            message = {"queue": self.queue, "id": id, "payload": json.dumps(self._work())}
            if self.random.random() < 0.3:
                message["delay"] = self.random.randrange(500)
            answer = {"error": None}
            while "error" in answer:
                producer.stdin.write(json.dumps(message) + "\n")
                producer.stdin.flush()
                answer = json.loads(producer.stdout.readline())
            self.ids[id] = answer["id"]
            time.sleep(self.random.expovariate(RATES[self.client]))
        producer.stdin.close()
        producer.wait()

    def _work(self):
        drawn = self.random.random()
        if drawn < 0.7:
            return {"do": "ok"}
        if drawn < 0.9:
            return {"do": "hang", "ms": self.random.randrange(1, 1000)}
        return {"do": "fail", "text": "on purpose", "times": self.random.randrange(1, 3)}

    def events(self, *kinds):
        """Returns what the workers have said, with who said it."""
        return [(life, said) for life in self.lives for kind in kinds for said in life.program.said(kind)]

    def look(self, admin):
        """Notes which of the messages that were worked on are gone."""
        done = {said["id"] for _, said in self.events("end") if said["how"] == "ok"} - self.gone.keys()
        pipeline = admin.pipeline(transaction=False)
        for id in done:
            pipeline.execute_command("DQ.GET", self.queue, id)
        for id, reply in zip(done, pipeline.execute()):
            if not reply:
                self.gone[id] = now()

    # --- judgement ---

    def faults(self, info, outages):
        """Returns what is wrong, and how often messages were begun again for which reason."""
        faults = []
        totals = {name: info.get(name) for name in ("pushed", "acked", "ready", "delayed", "inflight", "dead")}
        wanted = dict(totals, pushed=len(self.ids), acked=len(self.ids), ready=0, delayed=0, inflight=0, dead=0)
        if totals != wanted:
            faults.append(f"the queue has {totals}, and should have {wanted}")
        spoken = collections.defaultdict(list)
        for life, said in self.events("start", "end"):
            spoken[said["id"]].append((said["at"], said["event"] == "end", life, said))
        begun_again = collections.Counter()
        for id in self.ids:
            story = sorted(spoken[id], key=lambda item: item[:2])
            if not any(said.get("how") == "ok" for *_, said in story):
                faults.append(f"{id} is gone, and nobody has worked on it: {[said for *_, said in story]}")
            starts = [(at, life, said) for at, is_end, life, said in story if not is_end]
            for (before, life, said), (at, _, again) in zip(starts, starts[1:]):
                # A worker may tell of an end when another one has begun the message again.
                next_here = min(
                    (when for when, whose, _ in starts if whose is life and when > before), default=math.inf
                )
                ends = {
                    end["how"]: when
                    for when, is_end, whose, end in story
                    if is_end and whose is life and before <= when < max(next_here, at)
                }
                met = [outage for outage in outages if outage[0] <= at and outage[1] >= before]
                reason = _reason(life, ends, at, met)
                begun_again[reason] += 1
                if reason is None:
                    worker = f"its worker {life.ended or 'went on'} at {life.since}, and the server was away {met}"
                    faults.append(f"{id} was begun again without a reason: {said} {ends} {again}; {worker}")
            for at, _, said in starts:
                if at > self.gone.get(id, at):
                    faults.append(f"{id} was begun after it was acked, at {self.gone[id]}: {said}")
        return faults, begun_again


def _reason(life, ends, at, outages):
    """Returns why a message that a worker had begun was begun again at an instant, or ``None``. ``ends`` is how its
    handler ended there, and when."""
    if "fail" in ends:
        return "failed"
    if life.ended and at >= life.since:
        is_done = "ok" in ends and ends["ok"] < life.since + GRACE_MS - EXIT_MS[life.client]
        if life.ended == "killed" or not is_done or outages:
            return life.ended
    return "server away" if any(end - begin >= LEASE_MS / 2 for begin, end in outages) else None


class Soak:
    """A server, sites, and what happens to them."""

    def __init__(self, clients, seconds, seed):
        self.random, self.seconds = random.Random(seed), seconds
        self.server = server.Server().boot()
        self.sites = [Site(client, self.server.url, seed) for client in clients]
        self.counts, self.codes, self.outages = collections.Counter(), [], []

    def run(self):
        """Runs everything. Returns the faults."""
        for site in self.sites:
            words = "LEASE", LEASE_MS, "RETRIES", -1, "BACKOFF", 50, 200, "DEDUPE", 604800000
            self.server.do("DQ.CREATE", site.queue, *words)
            for place in range(WORKERS):
                site.start(place)
        until = time.monotonic() + self.seconds
        producers = [threading.Thread(target=site.produce, args=[until]) for site in self.sites]
        for producer in producers:
            producer.start()
        while time.monotonic() < until:
            time.sleep(self.random.expovariate(1 / CALM_SECONDS))
            self._do_something()
            for site in self.sites:
                site.look(self.server.admin)
        for producer in producers:
            producer.join()
        for site in self.sites:
            end = time.monotonic() + PATIENCE
            while not self._is_done(site) and time.monotonic() < end:
                time.sleep(0.05)
            site.look(self.server.admin)
            self.codes += [(site.client, life.stop()) for life in site.workers]
        return self._judge()

    def _do_something(self):
        """Kills or stops a worker or the server, and starts it again after a while."""
        away, place = self.random.uniform(0, AWAY_SECONDS), self.random.randrange(WORKERS)
        site, drawn = self.random.choice(self.sites), self.random.random()
        if drawn < 0.15:
            begun = now()
            self.server.kill9()
            time.sleep(away)
            self.server.boot()
            self.outages.append((begun, now()))
            self.counts["servers killed"] += 1
            return
        life = site.workers[place]
        life.program.ready()
        if drawn < 0.6:
            life.kill()
            self.counts["workers killed"] += 1
        else:
            self.codes.append((site.client, life.stop()))
            self.counts["workers stopped"] += 1
        time.sleep(away / 2)
        site.start(place)

    def _is_done(self, site):
        info = self.server.info(site.queue)
        return not (info["ready"] or info["delayed"] or info["inflight"])

    def _judge(self):
        found = [f"a worker of {client} that was stopped exited with {code}" for client, code in self.codes if code]
        print("| client | messages | begun again after | of it a failure | a kill | a stop | other |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for site in self.sites:
            faults, again = site.faults(self.server.info(site.queue), self.outages)
            found += faults
            other = again.total() - again["failed"] - again["killed"] - again["stopped"]
            figures = len(site.ids), again.total(), again["failed"], again["killed"], again["stopped"], other
            print(f"| {site.client} |", *(f"{figure} |" for figure in figures))
        print(
            dict(self.counts), "longest time without a server:", max((e - b for b, e in self.outages), default=0), "ms"
        )
        return found

    def close(self):
        """Ends everything."""
        for site in self.sites:
            for life in site.lives:
                life.program.kill9()
        self.server.close()


def plant(directory):
    """Makes a copy of the Python client that acks messages before it works on them, and has it driven."""
    folder = planted.copy("python", pathlib.Path(directory))
    begins = "            self._worker.start_handlers("
    acks = '            self._link.ask("DQ.ACK", self._lane.key, *(message[3] for message in messages))\n'
    planted.change(folder, "worker/fetcher.py", begins, acks + begins)
    os.environ.update(planted.prepare("python", folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("DQ_SOAK_SECONDS", "600")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DQ_SEED", random.randrange(1 << 32))))
    parser.add_argument("--client", action="append", choices=program.clients())
    parser.add_argument(
        "--planted", action="store_true", help="expect that messages are lost, by a fault of the client"
    )
    given = parser.parse_args()
    print(f"DQ_SEED={given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="dq-soak-") as directory:
        if given.planted:
            plant(directory)
        soak = Soak(["python"] if given.planted else given.client or program.clients(), given.seconds, given.seed)
        try:
            faults = soak.run()
        finally:
            soak.close()
    for fault in faults[:20]:
        print(fault)
    print(f"{len(faults)} faults")
    return int(bool(faults) != given.planted)


if __name__ == "__main__":
    sys.exit(main())
