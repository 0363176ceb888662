"""Sees the pauses of the machine: a process on each core that asks nobody anything, and notes when it ran too late.
Sees to it that the servers of a case have their cores for themselves.
"""
import gc
import multiprocessing
import os
import time

GAP_SECONDS = 0.002
LATE_NS = 1_000_000


def first(process_id):
    """Where it may, a process that needs its core for moments goes before all others on it."""
    try:
        os.sched_setscheduler(process_id, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        pass


def preferred(process_id):
    """Where it may, a server gets its core whenever it wants it. It must not be a real-time process: Linux takes the
    core from those for 50 ms of a second (`sched_rt_runtime_us`), and the server would seem to stall for that long."""
    try:
        os.setpriority(os.PRIO_PROCESS, process_id, -20)
    except PermissionError:
        pass


class Watch:
    """`with Watch() as watch: ...`, then `watch.pauses`: start and end of each, in ns on the monotonic clock."""

    def __enter__(self):
        context = multiprocessing.get_context("fork")
        self.watchers = []
        for core in range(min(os.cpu_count(), 2)):  # those of the servers
            pipe, theirs = context.Pipe()
            process = context.Process(target=_watch, args=(core, theirs), daemon=True)
            process.start()
            pipe.recv()
            self.watchers.append((pipe, process))
        return self

    def __exit__(self, *_):
        self.pauses = []
        for pipe, process in self.watchers:
            pipe.send("stop")
            self.pauses.extend(pipe.recv())
            process.join()

    def paused_ns(self, start, end):
        """How much of this time the machine paused, on either core."""
        paused = 0
        for from_, to in sorted(self.pauses):
            from_ = max(from_, start)
            if min(to, end) > from_:
                paused += min(to, end) - from_
                start = to
        return paused

    def longest_ms(self):
        return max([(to - from_) / 1e6 for from_, to in self.pauses], default=0)


def _watch(core, pipe):
    gc.disable()
    os.sched_setaffinity(0, {core})
    first(0)
    pipe.send("ready")
    pauses = []
    last = time.monotonic_ns()
    while not pipe.poll():
        time.sleep(GAP_SECONDS)
        now = time.monotonic_ns()
        due = last + int(GAP_SECONDS * 1e9)
        if now > due + LATE_NS:
            pauses.append((due, now))
        last = now
    pipe.send(pauses)
