"""Plays one case on a master with a replica, and returns its figures.

The server must meet its commands with all the work piled up, before the timer runs. The master therefore sleeps through
the instant at which everything ends (DEBUG SLEEP), with the commands right behind in the same read. The replica is
stopped meanwhile (SIGSTOP), and goes on when the effects have been sent to it.
"""
import multiprocessing
import os
import signal
import time

from contenders import waiting as blocked_clients
from fill import LEAD_MS, Filler, TooSlow
from figures import LOGGED_US, longest_ms, timer_ms
from messages import now_ms
from probe import Prober
from process import RedisServer
from watch import Watch
from wire import ServerError, encode

__all__ = ["TooSlow", "play"]

POP = encode("DQ.POP", "q", "COUNT", 10, "BLOCK", 0, "NOACK")
PING = encode("PING")
DEPTH = 64  # of the pipeline, if the server does not sleep
CALM_SECONDS = 0.3
PATIENCE_SECONDS = 60
SLEEPS_ON_MS = 50  # after the instant
QUIET = ("--repl-diskless-sync-delay", "0", "--repl-timeout", "600", "--repl-backlog-size", "512mb",
         "--client-output-buffer-limit", "replica 0 0 0", "--slowlog-max-len", "1000000",
         "--slowlog-log-slower-than", str(LOGGED_US))


def play(binary, module, case, count, priorities, waiting, patience):
    master, replica = pair(binary, module)
    fill = Filler(master, count, priorities, patience)
    case.prepare(fill)
    commands = case.commands(fill)
    until_equal(master, replica)
    until_calm(master)
    until_calm(replica)
    fill.until_in_time()
    for server in (master, replica):
        server.connection.call("SLOWLOG", "RESET")
    with (BlockedClients(master, waiting), Watch() as watch,
          Prober(master, PING) as prober, Prober(replica, PING) as other):
        replica.process.send_signal(signal.SIGSTOP)
        try:
            woken = ask(master, commands, fill.instant)
        finally:
            replica_woken = time.monotonic_ns()
            replica.process.send_signal(signal.SIGCONT)
        until_calm(master)
        until_calm(replica)
    until_equal(master, replica)
    command, turn = longest_ms(master)
    effect, _ = longest_ms(replica)
    return {"command_ms": command, "turn_ms": turn, "timer_ms": timer_ms(master), "effect_ms": effect,
            "replica_timer_ms": timer_ms(replica), "ping_ms": watch.longest_wait_ms(prober.waits, woken),
            "replica_ping_ms": watch.longest_wait_ms(other.waits, replica_woken)}


def pair(binary, module):
    master = RedisServer(binary, "--loadmodule", module, *QUIET)
    replica = RedisServer(binary, "--loadmodule", module, *QUIET, "--replicaof", f"127.0.0.1 {master.port}")
    if os.cpu_count() > 1:
        os.sched_setaffinity(replica.process.pid, {1})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while replica.info("replication")["master_link_status"] != "up":
        patiently(deadline, "the replica did not connect")
    return master, replica


def ask(master, commands, instant):
    """Sends the commands; if there is an instant, they are the first thing that the server sees after it. Returns when
    the server woke up, on the monotonic clock in ns."""
    requests = [encode(*words) for words in commands]
    if instant is None:
        woken = time.monotonic_ns()
        master.connection.pipeline(requests, DEPTH)
        return woken
    time.sleep(max(instant - LEAD_MS - now_ms(), 0) / 1000)
    seconds = (instant + SLEEPS_ON_MS - now_ms()) / 1000
    woken = time.monotonic_ns() + int(seconds * 1e9)
    try:
        master.connection.pipeline([encode("DEBUG", "SLEEP", f"{seconds:.3f}"), *requests], 1 + len(requests))
    except ServerError as refused:
        if "QUEUEFULL" not in str(refused):
            raise
    return woken


def until_equal(master, replica):
    """The replica has applied all that the master sent."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while replica.info("replication")["slave_repl_offset"] != master.info("replication")["master_repl_offset"]:
        patiently(deadline, "the replica did not catch up")


def until_calm(server):
    """The timer has not spent its budget for a while: it has no more to do."""
    seen, since, deadline = None, time.monotonic(), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < since + CALM_SECONDS:
        now = server.info("dq")["dq_timer_over_budget"]
        if now != seen:
            seen, since = now, time.monotonic()
        patiently(deadline, "the timer did not come to rest")


def patiently(deadline, reason):
    if time.monotonic() > deadline:
        raise RuntimeError(reason)
    time.sleep(0.02)


class BlockedClients:
    """A number of clients in a process of their own, each of which blocks again after it was served."""

    def __init__(self, server, count):
        self.server, self.count, self.process = server, count, None

    def __enter__(self):
        if not self.count:
            return
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        connections = self.server.connections(self.count)
        self.process = context.Process(target=block, args=(connections, theirs), daemon=True)
        self.process.start()
        for connection in connections:
            connection.close()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while int(self.server.info("dq")["dq_blocked_clients"]) < self.count:
            patiently(deadline, "the clients did not block")

    def __exit__(self, *_):
        if self.process:
            self.pipe.send("stop")
            self.process.join()


def block(connections, pipe):
    blocked_clients.serve(connections, POP, lambda reply: POP if reply else None, lambda: not pipe.poll())
